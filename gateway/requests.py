"""Reads an HTTP request: its headers as service parameters, its query, its body within limits."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import cached_property
from types import coroutine
from typing import TYPE_CHECKING, Final, final
from urllib.parse import parse_qsl, quote

from ..daemon.dispatch.task_pool import is_in_task
from ..errors.exceptions import FailureError
from ..errors.failures import InvalidRequest, Overloaded

if TYPE_CHECKING:
    from ..a2a.card import ApiKey
    from ..daemon.memory import MemoryBudget
    from ..daemon.operations.access import Access
    from ..errors.failures import Failure, Internal
    from .asgi import Receive, Scope
    from .tracing.http_request import HttpRequest

_PARAMS: Final = {
    "authorization": "authorization",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
    "baggage": "baggage",
    "a2a-extensions": "a2a-extensions",
    "x-a2a-extensions": "a2a-extensions",
    "last-event-id": "last-event-id",
    "mount-depth": "mount-depth",
}
"""The headers that are service parameters, and their names there. The last one that came wins."""

_PARAM_NAMES: Final = frozenset(_PARAMS)

HEADERS: Final = frozenset({*_PARAMS, "a2a-version", "if-none-match"})
"""The headers that say something to the gateway, beside those of HTTP itself."""

_JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})


FIRST: Final = "discreet.first"
"""The key of a scope that our own server sets for the first request of a connection."""

WHOLE_BODY: Final = "discreet.body"
"""The key of a scope in which our own server puts a body that is whole when the request begins."""


@coroutine
def _suspended() -> Generator[None]:
    yield


async def in_task() -> None:
    """Go on in a task. Our own server begins a request outside of all tasks: call it before anything may wait, or enters a cancel
    scope.
    """
    if not is_in_task():
        await _suspended()


@final
class GatewayRequest:
    """One HTTP request. `headers` has the first one of each name, which is in lower case."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope: Final = scope
        self.receive: Final = receive
        self.method: Final[str] = scope["method"]
        raw, mount, client = scope.get("raw_path"), scope.get("root_path"), scope.get("client")
        path: str = raw.decode("latin-1").partition("?")[0] if raw else quote(scope["path"])
        self.path: Final = (path.removeprefix(quote(mount)) if mount else path).removeprefix("/")
        """The path below that of a mount, percent-encoded and without the leading slash: an encoded slash is part of a value."""
        self.headers: Final[dict[str, str]] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])
        }
        self.address: Final[str] = client[0] if client else ""
        """The address of the client; empty where it has none, as on a unix socket."""
        self.access: Access | Internal | None = None
        """Who sends it, once somebody has asked; what it gets where that can't be told."""
        self.failure: Failure | None = None
        """Why it never became a call."""
        self.record: HttpRequest | None = None
        """The record of its span, where one is kept."""
        self.noted = False
        """Whether it is among the last requests."""

    def all_of(self, header: str) -> list[str]:
        """The values of all headers of this name."""
        wanted = header.encode()
        return [value.decode("latin-1") for name, value in self.scope["headers"] if name == wanted]

    @cached_property
    def query(self) -> dict[str, list[str]]:
        """The values of each parameter in the query, empty ones too."""
        found: dict[str, list[str]] = {}
        for name, value in parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True):
            found.setdefault(name, []).append(value)
        return found

    @property
    def url(self) -> str:
        """The address of the gateway, as this client knows it."""
        host = self.headers.get("host")
        if not host:  # HTTP/1.0
            name, port = self.scope.get("server") or ("localhost", None)
            host = f"{name}:{port}" if port else name
        return f"{self.scope['scheme']}://{host}{self.scope.get('root_path', '')}/"


class ClientGone(Exception):
    """The client closed the connection before it had sent its body."""


def begin_body(request: GatewayRequest, memory: MemoryBudget, *, limit: int, needed: bool = True) -> bytes | None:
    """The body where it is here already, or where there is none and none is `needed`; None where `read_body` has to wait for it.

    Raises `FailureError(InvalidRequest)` for one of another type or size, or `FailureError(Overloaded)` where there is no memory
    for it.
    """
    headers = request.headers
    if not needed and "transfer-encoding" not in headers and headers.get("content-length", "0") == "0":
        return b""
    if headers.get("content-type") != "application/json":  # which most send
        check_content_type(headers.get("content-type"))
    whole: bytes | None = request.scope.get(WHOLE_BODY)
    declared = headers.get("content-length", "")
    size = len(whole) if whole is not None else int(declared) if declared.isdecimal() else 0
    if size > limit:
        raise FailureError(_oversize(limit))
    if whole and not memory.fits(size):
        raise FailureError(Overloaded())
    return whole


async def read_body(request: GatewayRequest, memory: MemoryBudget, *, limit: int) -> bytes:
    """Read the body. While it is read it counts in `memory`.

    Raises `FailureError(InvalidRequest)` for one that is too large, `FailureError(Overloaded)` where there is no memory for it,
    or `ClientGone`.
    """
    body = bytearray()  # a list of its pieces would take many times their bytes, where they are small
    try:
        while True:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            if len(body) + len(chunk) > limit:
                raise FailureError(_oversize(limit))
            if not memory.fits(len(chunk)):
                raise FailureError(Overloaded())
            is_last = not message.get("more_body", False)
            if is_last and not body:
                return chunk
            memory.add("requests", len(chunk))
            body += chunk
            if is_last:
                return bytes(body)
    finally:
        memory.add("requests", -len(body))


def _oversize(limit: int) -> InvalidRequest:
    return InvalidRequest("oversize", hint=f"a body has {limit} bytes at most (max-message-bytes)")


def note_route(request: GatewayRequest, route: str) -> None:
    """Tell the record of a request, if one is kept, which of our paths it asks for: `/tasks/{id}`."""
    if request.record is not None:
        request.record.route = route


def check_content_type(header: str | None) -> None:
    """Raises `FailureError(InvalidRequest)` for anything but JSON in UTF-8. A missing header is refused as well: browsers send
    such requests across origins without asking."""
    media_type, *params = (part.strip() for part in (header or "").split(";"))
    if media_type.lower() not in _JSON_TYPES:
        raise FailureError(
            InvalidRequest("unsupported-content-type", hint="send JSON, as Content-Type: application/json")
        )
    for param in params:
        name, _, value = param.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            raise FailureError(InvalidRequest("bad-charset", hint="JSON is sent in UTF-8"))


def service_params(request: GatewayRequest, api_keys: Sequence[ApiKey] = ()) -> dict[str, str]:
    """The service parameters of a request: from its headers alone.

    An API key in a place that the card declares becomes an `authorization` of the scheme `ApiKey`, if there is no other.
    """
    headers = request.headers
    if _PARAM_NAMES.isdisjoint(headers) and not api_keys:  # as most are
        return {}
    params = {name: headers[header] for header, name in _PARAMS.items() if header in headers}
    if "authorization" not in params:
        given = next(filter(None, (_api_key(request, key) for key in api_keys)), None)
        if given is not None:
            params["authorization"] = f"ApiKey {given}"
    return params


def _api_key(request: GatewayRequest, key: ApiKey) -> str | None:
    match key.location:
        case "header":
            return request.headers.get(key.name.lower())
        case "query":
            return request.query.get(key.name, [None])[-1]
        case "cookie":
            cookies = (part.partition("=") for part in request.headers.get("cookie", "").split(";"))
            return next((value.strip().strip('"') for name, _, value in cookies if name.strip() == key.name), None)
