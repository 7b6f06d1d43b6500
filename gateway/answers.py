"""Writes whole answers for one client: outcomes, the HTTP form of failures, tags for caches, compression."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime
from math import ceil
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from ..errors.codes import row_of
from ..errors.decoders import decoder_for
from ..errors.failures import (
    WRONG_SCHEME,
    AuthenticationRequired,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    InvalidRequest,
    Overloaded,
    Unavailable,
)
from ..lazy import anyio
from .requests import in_task

if TYPE_CHECKING:
    from .requests import GatewayRequest

JSON: Final = "application/json"

NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""Stands in each answer: no browser may take what callers sent for anything but its type (WHATWG Fetch, section 3.6)."""

WITHOUT_BODY: Final = (204, 304)


class Answer(msgspec.Struct):
    """One whole HTTP response. With an empty `media_type` it has no content type."""

    status: int
    body: bytes = b""
    media_type: str = JSON
    headers: dict[str, str] = {}


def plain_text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer for people."""
    return Answer(status, text.encode(), "text/plain; charset=utf-8", {**(headers or {})})


class FailureWriter(Protocol):
    """Writes why a request is refused."""

    def failure(self, failure: Failure) -> Answer: ...


class AnswerWriter(FailureWriter, Protocol):
    """Writes the outcome and the events of one call."""

    fails_in_stream: bool
    """Whether a subscription that fails before its first event is told so as an event."""
    failure_event: str
    """The name of the event that tells of a failure; empty for none."""
    completion_event: str
    """The name of the event that tells that a subscription has ended by itself; empty where nothing tells it."""

    def result(self, result: bytes) -> Answer: ...

    def event(self, value: bytes) -> bytes:
        """The data of the event with this value. Both are JSON texts."""
        ...

    def last_event(self, failure: Failure) -> bytes:
        """The data of the event that tells of a failure behind which nothing follows."""
        ...


# What HTTP says of failures.


TRANSPORT_STATUSES: Final[Mapping[str, int]] = {"unsupported-content-type": 415, "bad-charset": 415, "oversize": 413}
"""Statuses of what is wrong with the HTTP message and not with the request in it."""


def status_of(failure: Failure) -> int:
    """The status of a failure in plain HTTP: that of the error table."""
    if isinstance(failure, InvalidRequest):
        return TRANSPORT_STATUSES.get(failure.reason, 400)
    return row_of(failure).http_status


def headers_of(failure: Failure) -> dict[str, str]:
    """Return the headers that HTTP asks for beside the status (RFC 9110, sections 10.2.3 and 11.6.1)."""
    match failure:
        case AuthenticationRequired(schemes, realm, reason):
            quoted = realm.replace("\\", "\\\\").replace('"', '\\"')
            names = (scheme.title() if scheme.islower() else scheme for scheme in schemes)
            named = reason not in (None, WRONG_SCHEME)  # RFC 6750, section 3.1
            errors = {"Bearer": ', error="invalid_token"'} if named else {}
            return {"www-authenticate": ", ".join(f'{name} realm="{quoted}"{errors.get(name, "")}' for name in names)}
        case InsufficientPermissions(scopes) if scopes:  # RFC 6750, section 3.1
            return {"www-authenticate": f'Bearer error="insufficient_scope", scope="{" ".join(scopes)}"'}
        case Overloaded(retry_after_ms) | Unavailable(retry_after_ms) if retry_after_ms is not None:
            return {"retry-after": str(ceil(retry_after_ms / 1000))}
        case Unavailable():
            return {"retry-after": "1"}
        case DomainFailure(retry_after_ms=int(asked)):
            return {"retry-after": str(ceil(max(asked, 0) / 1000))}
        case DomainFailure(details=details) if details is not None and b"retryAfterMs" in bytes(details):
            return _retry_after_of(details)
        case _:
            return {}


class _Details(msgspec.Struct):
    retry_after_ms: int | float | None = msgspec.field(name="retryAfterMs", default=None)


def _retry_after_of(details: msgspec.Raw) -> dict[str, str]:
    """Return the header with a declared error's time to wait, if its details have the member of OVERLOADED."""
    try:
        after = decoder_for(_Details)(details).retry_after_ms
    except msgspec.ValidationError:
        return {}
    return {} if after is None or after < 0 else {"retry-after": str(ceil(after / 1000))}


# Tells clients what they have already (RFC 9110, sections 8.8.3 and 13.1). Tags are weak, since a body may be compressed.


REVALIDATED: Final[Mapping[str, str]] = {"cache-control": "private, no-cache"}
"""A kept answer belongs to its caller, and is asked for anew each time."""


def etag_of(body: bytes) -> str:
    """The tag of an answer with this body."""
    return f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'


def with_etag(
    request: GatewayRequest,
    answer: Answer,
    etag: str = "",
    *,
    caching: Mapping[str, str] = REVALIDATED,
    modified: int | None = None,
) -> Answer:
    """The answer with its tag; in its place 304 where the client has what it would say. `caching` are the headers that say who
    may keep it; `modified` is when it changed last, in seconds since 1970.
    """
    etag = etag or etag_of(answer.body)
    headers = {"etag": etag, **caching}
    if modified is not None:
        headers["last-modified"] = formatdate(modified, usegmt=True)
    if _knows(request, etag, modified):
        return Answer(304, media_type="", headers=headers)
    answer.headers |= headers
    return answer


def _knows(request: GatewayRequest, etag: str, modified: int | None) -> bool:
    """A tag that the client names counts more than a time (section 13.2.2)."""
    tags = request.headers.get("if-none-match")
    if tags is not None:
        opaque = etag.removeprefix("W/")
        return tags.strip() == "*" or opaque in (each.strip().removeprefix("W/") for each in tags.split(","))
    since = request.headers.get("if-modified-since")
    if since is None or modified is None:
        return False
    try:
        return parsedate_to_datetime(since).timestamp() >= modified
    except ValueError:
        return False


# Compresses whole answers with gzip for clients that take it (RFC 9110, section 12.5.3). Never events.


SMALLEST: Final = 1024
"""Bytes. Smaller bodies gain nothing."""

IN_A_THREAD: Final = 128 * 1024
"""Bytes. What takes the loop longer than about a millisecond is compressed in a thread."""

_LEVEL: Final = 5
_GZIP: Final = 16 + zlib.MAX_WBITS
"""Tells zlib to write the format of gzip (RFC 1952)."""


async def compressed(request: GatewayRequest, answer: Answer, shorter: bytes | None = None) -> Answer:
    """The answer, or one with the same meaning and a shorter body; `shorter` is that body, where it was made before."""
    body = answer.body
    if len(body) < SMALLEST:
        return answer
    answer.headers["vary"] = "accept-encoding"
    if takes_gzip(request.headers.get("accept-encoding", "")):
        if shorter is None:
            if len(body) < IN_A_THREAD:
                shorter = _gzip(body)
            else:
                await in_task()
                shorter = await anyio.to_thread.run_sync(_gzip, body)
        answer.body = shorter
        answer.headers["content-encoding"] = "gzip"
    return answer


def takes_gzip(header: str) -> bool:
    """Whether a client that sends this `Accept-Encoding` takes gzip."""
    accepted: dict[str, bool] = {}
    for each in header.split(","):
        coding, *params = (part.strip().lower() for part in each.split(";"))
        accepted[coding] = not any(param.replace(" ", "").rstrip("0") in ("q=", "q=0.") for param in params)
    return accepted.get("gzip", accepted.get("x-gzip", accepted.get("*", False)))


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return compressor.compress(body) + compressor.flush()
