"""Writes requests of JSON-RPC as HTTP and reads their responses (A2A 1.0 section 9). No IO.

Service params are headers. A response without JSON-RPC is told by its status.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib.util import find_spec
from typing import Final, Protocol

import msgspec
from msgspec import UNSET, Raw

from ...errors import failures
from ...errors.wire import NO_CODE, ErrorObject
from ...framing.http import retry_after_seconds
from ..errors import ERROR_CLASSES, ClientError, DeclaredErrors, InvalidReply, RemoteError, remote_error
from ..messages import DECODE_ERRORS, Response, decode_message
from ..outbound.network import Destination, parse_url

INSTALL: Final = "pip install 'discreet[http]'"

A2A_VERSION: Final = "a2a-version"
AUTHORIZATION: Final = "authorization"

is_token: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
"""Matches what can be the name of a header or a cookie (RFC 9110, section 5.6.2)."""

is_field_value: Final = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?").fullmatch
"""Matches what can be the value of a header (RFC 9110, section 5.5)."""

OWN_HEADERS: Final = frozenset(
    "accept accept-encoding connection content-encoding content-length content-type expect host keep-alive"
    " proxy-connection te trailer transfer-encoding upgrade".split()
)
"""Headers that belong to the transport."""

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"

UNIX: Final = "unix:"

# -- requests ----------------------------------------------------------------------------------------------------------


def require_http() -> None:
    """Raises `ImportError` where HTTP can't be spoken."""
    if find_spec("h11") is None:
        raise ImportError(f"a URL needs h11: {INSTALL}", name="h11")


def parse_address(text: str) -> Destination:
    """Raises `ValueError` for what is no `http://HOST[:PORT]/PATH`, the same with `https`, or `unix:PATH`."""
    if text.lower().startswith(UNIX):
        path = text[len(UNIX) :]
        if not path or "\0" in path:
            raise ValueError("url: unix: needs the path of a socket")
        return Destination("http", "localhost", 80, "/", path)
    found = parse_url(text, allow_private=True)
    if isinstance(found, Destination):
        return found
    if "@" in re.split("[/?#]", text.partition("://")[2], maxsplit=1)[0]:
        raise ValueError("url must not hold credentials: send them as the service param `authorization`")
    raise ValueError("url must be http://HOST:PORT/, https://HOST/ or unix:PATH, of printable ASCII characters")


def checked_headers(service_params: Mapping[str, str]) -> dict[str, str]:
    """Service params as headers. Raises `ValueError`."""
    headers: dict[str, str] = {}
    for given, value in service_params.items():
        name = given.lower()
        if is_token(name) is None or name in OWN_HEADERS:
            raise ValueError(f"service_params: {given!r} can't be an HTTP header of a request")
        if is_field_value(value) is None:
            raise ValueError(f"service_params: the value of {given!r} must be of printable ASCII characters")
        headers[name] = value
    return headers


# -- responses ---------------------------------------------------------------------------------------------------------


class Head(Protocol):
    """The head of a response."""

    @property
    def status(self) -> int: ...

    def value(self, name: bytes, /) -> str:
        """The value of a header; empty where there is none."""
        ...


SHOWN_BYTES: Final = 1000
"""How much of a body that is no JSON-RPC an error keeps."""

_SCHEME: Final = re.compile(r"(?:^|,)\s*([A-Za-z][A-Za-z0-9-]*)(?=\s+[^\s=,]+\s*=|\s*(?:,|$))")
_REALM: Final = re.compile(r'realm="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


def read_result(head: Head, body: bytes, *, request_id: int, errors: DeclaredErrors) -> Raw:
    """The result of a request, by its response. Raises `RemoteError` or `InvalidReply`."""
    try:
        return result_of(body, request_id=request_id, errors=errors, status=head.status)
    except RemoteError as exc:
        exc.retry_after = retry_after(head)
        raise
    except InvalidReply:
        if head.status == HTTPStatus.OK:
            raise
    raise status_error(head, body)


def result_of(body: bytes, *, request_id: int, errors: DeclaredErrors, status: int = HTTPStatus.OK) -> Raw:
    """The result in one JSON-RPC response. Raises `RemoteError` or `InvalidReply`."""
    try:
        message = decode_message(body)
    except DECODE_ERRORS:
        raise InvalidReply("the server's answer is no JSON") from None
    match message:
        case Response(error=Raw() as error):
            exc = remote_error(error, errors)
            if status == HTTPStatus.OK or (isinstance(exc, RemoteError) and exc.number < 0):  # JSON-RPC's are
                raise exc
        case Response(result=Raw() as result) if message.id == request_id and status == HTTPStatus.OK:
            return result
        case _:
            pass
    raise InvalidReply("the server's answer is no JSON-RPC response to the request")


def status_error(head: Head, body: bytes) -> ClientError:
    """The exception for a response that says what is wrong by its status alone."""
    status = head.status
    phrase = f"HTTP {status} {HTTPStatus(status).phrase}" if status in _KNOWN else f"HTTP {status}"
    if status < HTTPStatus.BAD_REQUEST:
        return InvalidReply(f"the server answered {phrase}; redirects are not followed")
    make = _FAILURES.get(status)
    failure = failures.Internal() if make is None else make(head)
    text = body[:SHOWN_BYTES].decode(errors="replace").strip()
    data = Raw(msgspec.json.encode(text)) if text and "html" not in head.value(b"content-type") else UNSET
    exc = ERROR_CLASSES[type(failure)](failure, ErrorObject(NO_CODE, phrase, data))
    exc.retry_after = retry_after(head)
    return exc


def retry_after(head: Head) -> float | None:
    """The header `Retry-After` in seconds (RFC 9110, section 10.2.3); None where there is none."""
    return retry_after_seconds(head.value(b"retry-after"))


_KNOWN: Final = frozenset(status.value for status in HTTPStatus)


def _authentication_required(head: Head) -> failures.Failure:
    challenge = head.value(b"www-authenticate")
    realm = _REALM.search(challenge)
    return failures.AuthenticationRequired(
        tuple(_SCHEME.findall(challenge)), "" if realm is None else re.sub(r"\\(.)", r"\1", realm[1])
    )


def _overloaded(head: Head) -> failures.Failure:
    seconds = retry_after(head)
    return failures.Overloaded(None if seconds is None else round(seconds * 1000))


_FAILURES: Final[Mapping[int, Callable[[Head], failures.Failure]]] = {
    401: _authentication_required,
    403: lambda _: failures.InsufficientPermissions(),
    404: lambda _: failures.MethodNotFound(),
    405: lambda _: failures.MethodNotFound(),
    408: lambda _: failures.TimedOut(),
    413: lambda _: failures.InvalidRequest("oversize"),
    415: lambda _: failures.InvalidRequest("unsupported-content-type"),
    429: _overloaded,
    502: lambda _: failures.Unavailable(),
    503: lambda _: failures.Unavailable(),
    504: lambda _: failures.TimedOut(),
}
"""The failures of statuses without a JSON-RPC error. Others are internal errors."""


LONGEST_NUMBER: Final = 18
"""Digits of the number of an event."""


def number_of(event_id: str | None) -> int | None:
    """The number that the id of an event is; None where it is none."""
    if event_id is None or not (event_id.isascii() and event_id.isdecimal() and len(event_id) <= LONGEST_NUMBER):
        return None
    return int(event_id)
