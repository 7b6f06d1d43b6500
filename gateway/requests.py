"""What the gateway takes of an HTTP request: its body within limits, and its headers as service parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request

from ..errors.exceptions import FailureError
from ..errors.failures import InvalidRequest, Overloaded

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from ..a2a.card import ApiKey
    from ..daemon.memory import MemoryBudget
    from ..daemon.operations.access import Access
    from ..errors.failures import Failure, Internal
    from .tracing.http_request import HttpRequest

_PARAMS: Final = {
    "authorization": "authorization",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
    "a2a-extensions": "a2a-extensions",
    "x-a2a-extensions": "a2a-extensions",
    "last-event-id": "last-event-id",
    "mount-depth": "mount-depth",
}
"""The headers that are service parameters, and their names there. The last one that came wins."""

HEADERS: Final = frozenset({*_PARAMS, "a2a-version", "if-none-match"})
"""The headers that say something to the gateway, beside those of HTTP itself."""

_JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})


@final
class _Headers(Headers):
    """Finds the first header of a name in a table: some dozen are looked for in every request. `first` has them in lower case."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        self.first = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.raw)}

    def __getitem__(self, key: str) -> str:
        return self.first[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self.first

    def get(self, key: str, default: Any = None) -> Any:
        return self.first.get(key, default) if key.islower() else self.first.get(key.lower(), default)


@final
class GatewayRequest(Request):
    """A request whose headers are quick to look up."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self._headers = _Headers(scope)
        self.access: Access | Internal | None = None
        """Who sends it, once somebody has asked; what it gets where that can't be told."""
        self.failure: Failure | None = None
        """Why it never became a call."""
        self.record: HttpRequest | None = None
        """The record of its span, where one is kept."""
        self.noted = False
        """Whether it is among the last requests."""

    @property
    def headers(self) -> Headers:
        return self._headers


def address_of(request: Request) -> str:
    """The address of the client; empty where it has none, as on a unix socket."""
    client = request.scope.get("client")
    return client[0] if client else ""


class ClientGone(Exception):
    """The client closed the connection before it had sent its body."""


async def read_body(request: Request, memory: MemoryBudget, *, limit: int, needed: bool = True) -> bytes:
    """The body; empty where there is none and none is `needed`. Raises `FailureError(InvalidRequest)` for one of another type or
    size, `FailureError(Overloaded)` where there is no memory for it, or `ClientGone`. While it is read it counts in `memory`."""
    if not needed and not _announces_body(request):
        return b""
    check_content_type(request.headers.get("content-type"))
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise FailureError(_oversize(limit))
    return await _receive(request, memory, limit)


def _announces_body(request: Request) -> bool:
    headers = request.headers
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def _receive(request: Request, memory: MemoryBudget, limit: int) -> bytes:
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


def route_path(scope: Scope) -> str:
    """The path below that of a mount, percent-encoded and without the leading slash: an encoded slash is part of a value."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw else quote(scope["path"])
    return path.removeprefix(quote(scope.get("root_path", ""))).removeprefix("/")


def note_route(request: GatewayRequest, route: str) -> None:
    """Tell the record of a request, if one is kept, which of our paths it asks for: `/tasks/{id}`."""
    if request.record is not None:
        request.record.route = route


def check_content_type(header: str | None) -> None:
    """Raises `FailureError(InvalidRequest)` for anything but JSON in UTF-8. A missing header is refused as well: browsers send
    such requests across origins without asking."""
    if header == "application/json":  # which most send
        return
    media_type, *params = (part.strip() for part in (header or "").split(";"))
    if media_type.lower() not in _JSON_TYPES:
        raise FailureError(
            InvalidRequest("unsupported-content-type", hint="send JSON, as Content-Type: application/json")
        )
    for param in params:
        name, _, value = param.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            raise FailureError(InvalidRequest("bad-charset", hint="JSON is sent in UTF-8"))


def service_params(request: Request, api_keys: Iterable[ApiKey] = ()) -> dict[str, str]:
    """The service parameters of a request: from its headers alone.

    An API key in a place that the card declares becomes an `authorization` of the scheme `ApiKey`, if there is no other.
    """
    headers = request.headers
    get = headers.first.get if isinstance(headers, _Headers) else headers.get
    params = {name: value for header, name in _PARAMS.items() if (value := get(header)) is not None}
    if "authorization" not in params:
        for key in api_keys:
            given = _api_key(request, key)
            if given:
                params["authorization"] = f"ApiKey {given}"
                break
    return params


def _api_key(request: Request, key: ApiKey) -> str | None:
    match key.location:
        case "header":
            return request.headers.get(key.name)
        case "query":
            return request.query_params.get(key.name)
        case "cookie":
            return request.cookies.get(key.name)
