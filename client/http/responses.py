"""Reads HTTP responses: the result in them, or the exception for the caller. No IO."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from ...errors import failures
from ...errors.wire import NO_CODE, ErrorObject
from ...framing.http.retry_after import retry_after_seconds
from ..connection.error_replies import ERROR_CLASSES, remote_error
from ..errors import ClientError, DeclaredErrors, InvalidReply, RemoteError
from ..messages import DECODE_ERRORS, Response, decode_message

Headers: TypeAlias = Mapping[str, str]

SHOWN_BYTES: Final = 1000
"""How much of a body that is no JSON-RPC an error keeps."""

_SCHEME: Final = re.compile(r"(?:^|,)\s*([A-Za-z][A-Za-z0-9-]*)(?=\s+[^\s=,]+\s*=|\s*(?:,|$))")
_REALM: Final = re.compile(r'realm="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


def read_result(status: int, headers: Headers, body: bytes, *, request_id: int, errors: DeclaredErrors) -> Raw:
    """The result of a request, by its response. Raises `RemoteError` or `InvalidReply`."""
    try:
        return result_of(body, request_id=request_id, errors=errors, status=status)
    except RemoteError as exc:
        exc.retry_after = retry_after(headers)
        raise
    except InvalidReply:
        if status == HTTPStatus.OK:
            raise
    raise status_error(status, headers, body)


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


def status_error(status: int, headers: Headers, body: bytes) -> ClientError:
    """The exception for a response that says what is wrong by its status alone."""
    phrase = f"HTTP {status} {HTTPStatus(status).phrase}" if status in _KNOWN else f"HTTP {status}"
    if status < HTTPStatus.BAD_REQUEST:
        return InvalidReply(f"the server answered {phrase}; redirects are not followed")
    make = _FAILURES.get(status)
    failure = failures.Internal() if make is None else make(headers)
    text = body[:SHOWN_BYTES].decode(errors="replace").strip()
    data = Raw(msgspec.json.encode(text)) if text and "html" not in headers.get("content-type", "") else UNSET
    exc = ERROR_CLASSES[type(failure)](failure, ErrorObject(NO_CODE, phrase, data))
    exc.retry_after = retry_after(headers)
    return exc


def retry_after(headers: Headers) -> float | None:
    """The header `Retry-After` in seconds (RFC 9110, section 10.2.3); None where there is none."""
    return retry_after_seconds(headers.get("retry-after", ""))


_KNOWN: Final = frozenset(status.value for status in HTTPStatus)


def _authentication_required(headers: Headers) -> failures.Failure:
    challenge = headers.get("www-authenticate", "")
    realm = _REALM.search(challenge)
    return failures.AuthenticationRequired(
        tuple(_SCHEME.findall(challenge)), "" if realm is None else re.sub(r"\\(.)", r"\1", realm[1])
    )


def _overloaded(headers: Headers) -> failures.Failure:
    seconds = retry_after(headers)
    return failures.Overloaded(None if seconds is None else round(seconds * 1000))


_FAILURES: Final[Mapping[int, Callable[[Headers], failures.Failure]]] = {
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
"""What statuses mean that come without a JSON-RPC error. Others are internal errors."""
