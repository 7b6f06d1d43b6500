"""Routes HTTP requests as the ASGI app of one host: checks the origin, and finds the endpoint of a path. Every request is a
client of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, cast, final

from ..daemon.apps import AppError
from ..daemon.logs import RepeatedWarning
from ..daemon.memory import SMALL
from ..errors.printable import cut
from .a2a.endpoint import A2AEndpoint
from .answers import NO_SNIFFING, WITHOUT_BODY, Answer, plain_text
from .calls import CallRunner, HttpContextBackend, agent_of
from .health import Liveness, Readiness
from .origins import LOOPBACK_NAMES, METHODS, Cors, Origins, host_name_of, is_host_name, is_origin, is_public
from .requests import GatewayRequest, in_task
from .resource_metadata import WELL_KNOWN, ResourceMetadata

if TYPE_CHECKING:
    from ..daemon.host import Host
    from ..daemon.settings import Settings
    from .asgi import Receive, Scope, Send
    from .tracing.tracing import Tracing

MAX_SHOWN: Final = 255
"""Characters of a header that the log shows: as many as a name may have."""

MAX_HOSTS: Final = 64
"""Names of hosts of which is kept whether they are admitted."""

PROBES: Final = frozenset({"healthz", "readyz", "metrics"})
"""Asked for every few seconds, for as long as the daemon runs: no spans are recorded."""

_CHALLENGED: Final = (401, 403)
"""The statuses of refusals that may tell where to get a token."""

_REFUSED: Final = 400
"""The least status of what is refused."""

_LOCAL_HINT: Final = "add a token, or allow everybody: --http-open"
_HOST_HINT: Final = (
    "answer to this name, too: --http-host NAME; behind a proxy, name the public address: --http-url URL"
)
_ORIGIN_HINT: Final = "let the web pages of this origin call: --http-origin ORIGIN"


class Endpoint(Protocol):
    """Answers the requests of some paths."""

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        """Return the answer; None if it is sent, or the client has gone. `path` is percent-encoded, without the first slash."""
        ...


@final
class Gateway:
    """An ASGI app. `address` is what is listened on, empty where it is not known; with `local` that is this machine alone.

    Raises `AppError` where an extra is missing, and for names of hosts and origins that fit nothing.
    """

    def __init__(self, host: Host, *, local: bool, address: str = "") -> None:
        settings = host.settings
        self._host = host
        self._origins = _origins(settings, local=local, address=address)
        self._local_only = local and host.access.provider is None and not settings.http_open
        self._cors = Cors(self._origins, agent_of(host).api_keys)
        self._stranger_refused = RepeatedWarning("http.stranger_refused")
        self._host_refused = RepeatedWarning("http.request_refused")
        self._origin_refused = RepeatedWarning("http.request_refused")
        self.calls: Final = CallRunner(host)
        self._metadata: Final = ResourceMetadata(host, self.calls, "mcp" if settings.http_mcp else "")
        self._endpoints: Final[Mapping[str, Endpoint]] = self._chosen_endpoints(host)
        self._a2a: Final[Endpoint] = A2AEndpoint(host, self.calls) if host.bridge is None else self._endpoints["mcp"]
        self._begin_at_once: Final = (
            self._a2a if host.bridge is None else None,
            self._endpoints.get("operations"),
        )
        """Those that call `in_task` themselves before they wait."""
        self._admits_host: Final = lru_cache(MAX_HOSTS)(self._origins.admits_host)
        self.context_backend: Final = HttpContextBackend(host, self.calls.access)
        """For what runs for no request."""

    def _chosen_endpoints(self, host: Host) -> dict[str, Endpoint]:
        """What there is beside A2A, by what its paths begin with. Raises `AppError` where an extra is missing."""
        found: dict[str, Endpoint] = {
            "healthz": Liveness(),
            WELL_KNOWN: self._metadata,
            "readyz": Readiness(lambda: self.calls.closed, agent_of(host).probe_store, host.spawn),
        }
        settings = host.settings
        if settings.http_operations:
            from .operations import DocumentEndpoint, OperationsEndpoint  # late: only who chose it pays for it

            found["operations"] = OperationsEndpoint(host, self.calls)
            found["openapi.json"] = DocumentEndpoint(host, self.calls)
        if settings.http_mcp:
            from .mcp.endpoint import PATH, McpEndpoint  # late: it loads the dialect

            found[PATH] = McpEndpoint(host, self.calls)
            if settings.http_url is not None:
                self._metadata.warn_of_audience(settings.http_url)
        if settings.http_metrics:
            if find_spec("prometheus_client") is None:
                raise AppError("--http-metrics needs prometheus-client: pip install 'discreet[metrics]'")
            from .metrics import MetricsEndpoint  # late: it loads the extra's library

            found["metrics"] = MetricsEndpoint(host, self.calls)
        if settings.http_page:
            from .page.endpoint import PageEndpoint

            found[""] = found["page"] = PageEndpoint(host, self.calls, local_only=self._local_only)
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(GatewayRequest(scope, receive), send)
        elif scope["type"] == "lifespan":
            await _no_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, request: GatewayRequest, send: Send) -> None:
        tracing, kept = self._host.tracing, None
        if self._origins.any_allowed or is_public(request.path):
            send = self._cors.adding_headers(request, send)
        if tracing is not None and request.path not in PROBES:
            request.record = kept = cast("Tracing", tracing).begin_http(request.scope)  # there is but one
            if kept is not None:
                send = kept.watched(send)
        try:
            answer = self._refusal(request) or await self._respond(request, send)
            if answer is not None:
                if answer.status in _CHALLENGED:
                    self._metadata.add_to(answer, request)
                await self._send(answer, send)
        except Exception as exc:
            if kept is not None:
                kept.error = type(exc).__name__
            raise
        finally:
            if kept is not None:
                cast("Tracing", tracing).end_http(kept)

    async def _respond(self, request: GatewayRequest, send: Send) -> Answer | None:
        path, began = request.path, monotonic()
        if (
            path == "*" and request.scope.get("raw_path") == b"*"
        ):  # the server itself is asked (RFC 9110, section 9.3.7)
            return Answer(204, media_type="", headers={"allow": METHODS})
        endpoint = self._endpoint(request.method, path)
        if endpoint not in self._begin_at_once:
            await in_task()
        answer = await endpoint.respond(request, path, send)
        if self.calls.recent is None or answer is None or request.noted or path in PROBES:
            return answer
        if request.failure is not None or answer.status >= _REFUSED:
            await self.calls.note_refused(request, answer.status, monotonic() - began)
        return answer

    def _endpoint(self, method: str, path: str) -> Endpoint:
        """Find the endpoint of a path by its first segment, or its first two. Other paths are A2A's, where they may begin with a
        tenant. The root is the page's, but for JSON-RPC. A path with a second slash in front is A2A's, too: clients join it so.
        """
        first, _, rest = path.partition("/")
        if not first and (rest or method == "POST"):
            return self._a2a
        endpoint = self._endpoints.get(first) or self._endpoints.get(f"{first}/{rest.partition('/')[0]}")
        return endpoint or self._a2a

    async def _send(self, answer: Answer, send: Send) -> None:
        """Send a whole answer. It counts in the memory budget until the client has taken most of it."""
        size = len(answer.body)
        headers: list[tuple[bytes, bytes]] = [NO_SNIFFING]
        if answer.media_type:
            headers.append((b"content-type", answer.media_type.encode("latin-1")))
        if answer.status not in WITHOUT_BODY:
            headers.append((b"content-length", b"%d" % size))
        if answer.headers:
            headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
        self._host.memory.add("replies", size)
        try:
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await send({"type": "http.response.body", "body": answer.body, "more_body": size > SMALL})
            if size > SMALL:  # this waits until there is room for more
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._host.memory.add("replies", -size)

    def _refusal(self, request: GatewayRequest) -> Answer | None:
        """What strangers' web pages get. Whether they may read it is for the CORS rules to say."""
        address = request.address if self._local_only else ""
        if address not in ("127.0.0.1", "") and not _is_loopback(address):
            self._stranger_refused(hint=f"only this machine may call; {_LOCAL_HINT}")
            return plain_text(403, f"only callers on this machine are answered; {_LOCAL_HINT}")
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if not self._admits_host(host):
            self._host_refused(host=cut(host or "", MAX_SHOWN), hint=_HOST_HINT)
            return plain_text(421, f"unknown host; to {_HOST_HINT}")
        if origin is None and "sec-fetch-site" not in request.headers:  # a program, not a browser
            return None
        for_all = origin is not None and self._cors.is_for_all(request)
        if self._cors.is_preflight(request):
            if origin is not None and (for_all or self._origins.allows_cross_origin(origin)):
                return self._cors.preflight()
        elif for_all or (self._origins.admits_origin(origin, host) and not _is_embedded_elsewhere(request)):
            return None
        self._origin_refused(origin=cut(origin or "", MAX_SHOWN), hint=_ORIGIN_HINT)
        return plain_text(403, f"origin not allowed; to {_ORIGIN_HINT}")


def _is_embedded_elsewhere(request: GatewayRequest) -> bool:
    """Whether a browser asks for something that a page of another site embeds, such as an image: then it names no origin, but
    says so (Fetch Metadata, section 2). Links to here may be followed."""
    headers = request.headers
    if "origin" in headers or headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _is_loopback(address: str) -> bool:
    """Whether a client is on this machine. One without an IP address is: a unix socket, or a test."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True


def _origins(settings: Settings, *, local: bool, address: str) -> Origins:
    for origin in settings.http_origins or ():
        if origin != "*" and not is_origin(origin):
            raise AppError(f"--http-origin {origin}: an origin is http:// or https:// and a host, without a path")
    for given in settings.http_hosts or ():
        if not is_host_name(given):
            raise AppError(f"--http-host {given}: a name or an address, without scheme, port and path")
    hosts: list[str] | None = None
    if settings.http_hosts is not None:
        hosts = [host.strip("[]") for host in settings.http_hosts]
    elif local:
        hosts = [*LOOPBACK_NAMES, *([address] if address else [])]
    if hosts is None and settings.card_key and not settings.http_url:
        raise AppError(
            "--card-key signs where the agent is called: beyond this machine it needs --http-url, or --http-host"
        )
    if hosts is not None and settings.http_url and (name := host_name_of(settings.http_url)):
        hosts.append(name)
    return Origins(hosts, settings.http_origins or ())


async def _no_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
