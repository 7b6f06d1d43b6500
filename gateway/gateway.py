"""The ASGI app of one host: who may ask at all, and which endpoint a path belongs to. Every request is a client of its own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, cast, final

from starlette.responses import Response

from ..daemon.apps import AppError
from ..daemon.logs import RepeatedWarning
from ..daemon.memory import SMALL
from ..errors.printable import cut
from .a2a.endpoint import A2AEndpoint
from .answers import NO_SNIFFING
from .call_runner import CallRunner, CallSettings
from .context_backend import HttpContextBackend
from .hosted_agent import agent_of
from .monitoring.health import Liveness, Readiness
from .origins import Cors
from .requests import GatewayRequest, address_of, route_path

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from ..daemon.host import Host
    from .origins import Origins
    from .tracing.tracing import Tracing


# Whether metrics can be served. Imports nothing of the extra's library where they can't.


def check_available() -> None:
    """Raises `AppError`, in one line, where the extra is missing."""
    if find_spec("prometheus_client") is None:
        raise AppError("--http-metrics needs prometheus-client: pip install 'discreet[metrics]'")


MAX_SHOWN: Final = 255
"""Characters of a header that the log shows: as many as a name may have."""

PROBES: Final = frozenset({"healthz", "readyz", "metrics"})
"""Asked for every few seconds, for as long as the daemon runs: no spans are recorded."""

_REFUSED: Final = 400
"""The least status of what is refused."""

_LOCAL_HINT: Final = "add a token, or allow everybody: --http-open"
_HOST_HINT: Final = (
    "answer to this name, too: --http-host NAME; behind a proxy, name the public address: --http-url URL"
)
_ORIGIN_HINT: Final = "let the web pages of this origin call: --http-origin ORIGIN"


class Endpoint(Protocol):
    """Answers the requests of some paths."""

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        """The response; None where it is sent already, or nobody waits. `path` is percent-encoded, with no slash in front."""
        ...


@final
class Gateway:
    """An ASGI app. With `local_only`, callers from other machines are refused. Raises `AppError` where an extra is missing."""

    def __init__(self, host: Host, settings: CallSettings, origins: Origins, *, local_only: bool = False) -> None:
        self._host = host
        self._origins = origins
        self._local_only = local_only
        self._cors = Cors(origins, agent_of(host).api_keys)
        self._stranger_refused = RepeatedWarning("http.stranger_refused")
        self._host_refused = RepeatedWarning("http.request_refused")
        self._origin_refused = RepeatedWarning("http.request_refused")
        self.calls: Final = CallRunner(host, settings)
        self._a2a: Final[Endpoint] = A2AEndpoint(host, self.calls)
        self._endpoints: Final[Mapping[str, Endpoint]] = self._chosen_endpoints(host)
        self.context_backend: Final = HttpContextBackend(host, self.calls.access)
        """For what runs for no request."""

    def _chosen_endpoints(self, host: Host) -> dict[str, Endpoint]:
        """What there is beside A2A, by what its paths begin with. Raises `AppError` where an extra is missing."""
        found: dict[str, Endpoint] = {
            "healthz": Liveness(),
            "readyz": Readiness(lambda: self.calls.closed, agent_of(host).probe_store, host.spawn),
        }
        settings = host.settings
        if settings.http_operations:
            from .operations.document import DocumentEndpoint  # late: only who chose it pays for it
            from .operations.endpoint import OperationsEndpoint

            found["operations"] = OperationsEndpoint(host, self.calls)
            found["openapi.json"] = DocumentEndpoint(host, self.calls)
        if settings.http_mcp:
            from .mcp.endpoint import PATHS, McpEndpoint  # late: it loads the dialect

            found |= dict.fromkeys(PATHS, McpEndpoint(host, self.calls))
        if settings.http_metrics:
            check_available()
            from .monitoring.metrics import MetricsEndpoint  # late: it loads the extra's library

            found["metrics"] = MetricsEndpoint(host, self.calls)
        if settings.http_page:
            from .page.endpoint import PageEndpoint

            found[""] = found["page"] = PageEndpoint(self.calls, has_operations=settings.http_operations)
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await _no_lifespan(receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        request = GatewayRequest(scope, receive)
        send = self._cors.adding_headers(request, send)
        path, tracing = route_path(scope), cast("Tracing | None", self._host.tracing)  # there is but one
        request.record = kept = None if tracing is None or path in PROBES else tracing.begin_http(scope)
        if kept is not None:
            send = kept.watched(send)
        try:
            response = self._refusal(request)
            if response is None:
                endpoint = self._endpoint(request.method, path)
                if self.calls.recent is None:
                    response = await endpoint.respond(request, path, send)
                else:
                    response = await self._noted(endpoint, request, path, send)
            if response is not None:
                await self._send(response, send)
        except Exception as exc:
            if kept is not None:
                kept.error = type(exc).__name__
            raise
        finally:
            if tracing is not None and kept is not None:
                tracing.end_http(kept)

    async def _noted(self, endpoint: Endpoint, request: GatewayRequest, path: str, send: Send) -> Response | None:
        """The same, put down among the last requests if it never became a call."""
        began = monotonic()
        response = await endpoint.respond(request, path, send)
        if response is not None and not request.noted:
            status = response.status_code
            if (request.failure is not None or status >= _REFUSED) and path not in PROBES:
                await self.calls.note_refused(request, status, monotonic() - began)
        return response

    def _endpoint(self, method: str, path: str) -> Endpoint:
        """Whose path this is: by its first segment, or its first two. All that is nobody else's is A2A's, where it may be a
        tenant. The root is that of the page, but for JSON-RPC; what begins
        with a second slash is A2A's, too: clients join it so.
        """
        first, _, rest = path.partition("/")
        if not first and (rest or method == "POST"):
            return self._a2a
        endpoint = self._endpoints.get(first) or self._endpoints.get(f"{first}/{rest.partition('/')[0]}")
        return endpoint or self._a2a

    async def _send(self, response: Response, send: Send) -> None:
        """Send a whole response. It counts in the memory budget until the client has taken most of it."""
        size = len(response.body)
        self._host.memory.add("replies", size)
        try:
            headers = [*response.raw_headers, NO_SNIFFING]
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            await send({"type": "http.response.body", "body": bytes(response.body), "more_body": size > SMALL})
            if size > SMALL:  # this waits until there is room for more
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._host.memory.add("replies", -size)

    def _refusal(self, request: GatewayRequest) -> Response | None:
        """What strangers' web pages get. Whether they may read it is for the CORS rules to say."""
        if self._local_only and not _is_local(request):
            self._stranger_refused(hint=f"only this machine may call; {_LOCAL_HINT}")
            return Response(f"only callers on this machine are answered; {_LOCAL_HINT}", 403, media_type="text/plain")
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if not self._origins.admits_host(host):
            self._host_refused(host=cut(host or "", MAX_SHOWN), hint=_HOST_HINT)
            return Response(f"unknown host; to {_HOST_HINT}", 421, media_type="text/plain")
        for_all = origin is not None and self._cors.is_for_all(request)
        if self._cors.is_preflight(request):
            if origin is not None and (for_all or self._origins.allows_cross_origin(origin)):
                return self._cors.preflight()
        elif for_all or (self._origins.admits_origin(origin, host) and not _is_embedded_elsewhere(request)):
            return None
        self._origin_refused(origin=cut(origin or "", MAX_SHOWN), hint=_ORIGIN_HINT)
        return Response(f"origin not allowed; to {_ORIGIN_HINT}", 403, media_type="text/plain")


def _is_embedded_elsewhere(request: GatewayRequest) -> bool:
    """Whether a browser asks for something that a page of another site embeds, such as an image: then it names no origin, but
    says so (Fetch Metadata, section 2). Links to here may be followed."""
    headers = request.headers
    if "origin" in headers or headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _is_local(request: GatewayRequest) -> bool:
    """Whether the client is on this machine. A client without an IP address is: a unix socket, or a test."""
    address = address_of(request)
    try:
        return address in ("127.0.0.1", "") or ip_address(address).is_loopback
    except ValueError:
        return True


async def _no_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
