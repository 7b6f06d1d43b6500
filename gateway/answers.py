"""How outcomes are written for one client, and what HTTP says of failures: the statuses of the error table, and headers."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final, Protocol

import msgspec

from ..errors.codes import row_of
from ..errors.decoders import decoder_for
from ..errors.failures import (
    WRONG_SCHEME,
    AuthenticationRequired,
    DomainFailure,
    Failure,
    InvalidRequest,
    Overloaded,
    Unavailable,
)

JSON: Final = "application/json"

NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
"""Stands in each answer: no browser may take what callers sent for anything but its type (WHATWG Fetch, section 3.6)."""


class Answer(msgspec.Struct, frozen=True):
    """One whole HTTP response."""

    status: int
    body: bytes = b""
    media_type: str = JSON
    headers: Mapping[str, str] = {}


class FailureWriter(Protocol):
    """Writes why a request is refused."""

    def failure(self, failure: Failure) -> Answer: ...


class AnswerWriter(FailureWriter, Protocol):
    """Writes the outcome and the events of one call.

    `fails_in_stream`: a call of a subscription that fails before its first event is told so as an event. `failure_event` is the
    name of the event that tells of a failure; empty for none. `completion_event` is that of the event that tells that the
    subscription has ended by itself; empty where nothing tells it.
    """

    @property
    def fails_in_stream(self) -> bool: ...

    @property
    def failure_event(self) -> str: ...

    @property
    def completion_event(self) -> str: ...

    def result(self, result: bytes) -> Answer: ...

    def event(self, value: bytes) -> bytes:
        """The data of the event with this value. Both are JSON texts."""
        ...

    def last_event(self, failure: Failure) -> bytes:
        """The data of the event that tells of a failure behind which nothing follows."""
        ...


TRANSPORT_STATUSES: Final[Mapping[str, int]] = {
    "unsupported-content-type": 415,
    "bad-charset": 415,
    "oversize": 413,
}
"""Statuses of what is wrong with the HTTP message and not with the request in it."""


def status_of(failure: Failure) -> int:
    """The status of a failure in plain HTTP: that of the error table."""
    if isinstance(failure, InvalidRequest):
        return TRANSPORT_STATUSES.get(failure.reason, 400)
    return row_of(failure).http_status


def headers_of(failure: Failure) -> Mapping[str, str]:
    """What HTTP asks to be said beside the status (RFC 9110, sections 10.2.3 and 11.6.1)."""
    match failure:
        case AuthenticationRequired(schemes, realm, reason):
            quoted = realm.replace("\\", "\\\\").replace('"', '\\"')
            names = (scheme.title() if scheme.islower() else scheme for scheme in schemes)
            named = reason not in (None, WRONG_SCHEME)  # RFC 6750, section 3.1
            errors = {"Bearer": ', error="invalid_token"'} if named else {}
            return {"www-authenticate": ", ".join(f'{name} realm="{quoted}"{errors.get(name, "")}' for name in names)}
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


def _retry_after_of(details: msgspec.Raw) -> Mapping[str, str]:
    """What a declared error says of the time to wait, in the words of OVERLOADED."""
    try:
        after = decoder_for(_Details)(details).retry_after_ms
    except msgspec.ValidationError:
        return {}
    return {} if after is None or after < 0 else {"retry-after": str(ceil(after / 1000))}
