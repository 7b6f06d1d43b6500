"""What the gateway takes of an HTTP request: its body within limits, and its headers as service parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ...errors.exceptions import FailureError
from ...errors.failures import A2AVersion, InvalidRequest, Overloaded
from ...lazy import anyio
from ..agents.versions.version import covers_version

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

    from ..agents.card.model import ApiKey
    from ..memory import MemoryBudget

DEFAULT_VERSION: Final = "0.3"
"""The version of a request that names none (A2A 1.0, section 3.6.2)."""

_PARAMS: Final = {
    "authorization": "authorization",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
    "a2a-extensions": "a2a-extensions",
    "x-a2a-extensions": "a2a-extensions",
    "last-event-id": "last-event-id",
}
"""The headers that are service parameters, and their names there. The last one that came wins."""

HEADERS: Final = frozenset({*_PARAMS, "a2a-version"})
"""The headers that say something to the gateway, beside those of HTTP itself."""

_JSON_TYPES: Final = frozenset({"application/json", "application/a2a+json"})


class BodyTimeout(Exception):
    """The body did not come in time."""


class ClientGone(Exception):
    """The client closed the connection before it had sent its body."""


async def read_body(
    request: Request, memory: MemoryBudget, *, limit: int, seconds: float, needed: bool = True
) -> bytes:
    """The body; empty where there is none and none is `needed`. Raises `FailureError(InvalidRequest)` for one of another type or
    size, `FailureError(Overloaded)` where there is no memory for it, `BodyTimeout` or `ClientGone`. While it is read it counts in
    `memory`."""
    if not needed and not _announces_body(request):
        return b""
    check_content_type(request.headers.get("content-type"))
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise FailureError(InvalidRequest("oversize"))
    with anyio.move_on_after(seconds):
        return await _receive(request, memory, limit)
    raise BodyTimeout


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
                raise FailureError(InvalidRequest("oversize"))
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


def route_path(scope: Scope) -> str:
    """The path below that of a mount, percent-encoded and without the leading slash: an encoded slash is part of a value."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw else quote(scope["path"])
    return path.removeprefix(quote(scope.get("root_path", ""))).removeprefix("/")


def check_content_type(header: str | None) -> None:
    """Raises `FailureError(InvalidRequest)` for anything but JSON in UTF-8. A missing header is refused as well: browsers send
    such requests across origins without asking."""
    media_type, *params = (part.strip() for part in (header or "").split(";"))
    if media_type.lower() not in _JSON_TYPES:
        raise FailureError(InvalidRequest("unsupported-content-type"))
    for param in params:
        name, _, value = param.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in ("utf-8", "utf8"):
            raise FailureError(InvalidRequest("bad-charset"))


def service_params(request: Request, api_keys: Iterable[ApiKey] = ()) -> dict[str, str]:
    """The service parameters of a request: from its headers alone, and the version also from its query (A2A 1.0, 3.6.1).

    An API key in a place that the card declares becomes an `authorization` of the scheme `ApiKey`, if there is no other.
    """
    headers = request.headers
    params = {name: headers[header] for header, name in _PARAMS.items() if header in headers}
    params["a2a-version"] = asked_version(request) or DEFAULT_VERSION
    if "authorization" not in params:
        for key in api_keys:
            given = _api_key(request, key)
            if given:
                params["authorization"] = f"ApiKey {given}"
                break
    return params


def asked_version(request: Request) -> str | None:
    """The version of A2A that a request names, in its headers or its query."""
    version = request.headers.get("a2a-version") or request.query_params.get("A2A-Version") or ""
    return version.strip() or None


def version_to_answer(request: Request) -> A2AVersion:
    """The version in which a request is answered whose method does not tell it."""
    return "1.0" if covers_version("1.0", asked_version(request) or DEFAULT_VERSION) else "0.3"


def _api_key(request: Request, key: ApiKey) -> str | None:
    match key.location:
        case "header":
            return request.headers.get(key.name)
        case "query":
            return request.query_params.get(key.name)
        case "cookie":
            return request.cookies.get(key.name)
