"""Every way a request can fail, as values of one closed union.

A failure holds declared facts only: enumerated reasons, declared names, type phrases. It never holds an
exception, nor text taken from one, nor a key or a value that the caller sent (`InvalidParams.received` has the
one narrow exception that its producer checks). What a failure looks like on the wire stands in `codes` and
`wire`; this module knows nothing of either.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

ParseReason: TypeAlias = Literal["invalid-json", "invalid-utf8", "length-mismatch"]

RequestReason: TypeAlias = Literal[
    "missing-content-length",
    "invalid-content-length",
    "unsupported-content-type",
    "bad-charset",
    "malformed-header",
    "header-too-large",
    "oversize",
    "batch-not-supported",
    "invalid-id-type",
    "duplicate-id",
    "malformed-envelope",
]

OPERATION_TYPE_REASON = "invalid-operation-type"


class ParseFailure(msgspec.Struct, frozen=True):
    """The body is no JSON text: bad JSON, bad UTF-8, or fewer bytes than its header announced."""

    reason: ParseReason


class InvalidRequest(msgspec.Struct, frozen=True):
    """The header block or the envelope breaks a rule."""

    reason: RequestReason


class OperationTypeMismatch(msgspec.Struct, frozen=True):
    """A subscription was called as a call, or the reverse."""


class MethodNotFound(msgspec.Struct, frozen=True):
    """No such method, or none that this caller may see."""


class InvalidParams(msgspec.Struct, frozen=True):
    """Wrong, missing or surplus params; the facts name the first fault only.

    `param` is the dotted path (`message.parts[0].text`, `$` for the whole), `expected` a type phrase, `received`
    the JSON type that came, `accepted` the closed list of values where there is one.
    """

    param: str
    expected: str
    received: str
    accepted: tuple[str, ...] | None = None


class Internal(msgspec.Struct, frozen=True):
    """An unexpected fault. `code` is that of a typed error which the operation had not declared, else None."""

    code: str | None = None


class DomainFailure(msgspec.Struct, frozen=True):
    """A declared error of an operation; `details` is its JSON, already checked against the declared schema."""

    code: str
    message: str
    retryable: bool = False
    details: msgspec.Raw | None = None
    http_status: int = 500


class AuthenticationRequired(msgspec.Struct, frozen=True):
    """The operation needs an identity and the caller has none."""

    schemes: tuple[str, ...]
    realm: str


class InsufficientPermissions(msgspec.Struct, frozen=True):
    """The caller's scopes do not satisfy the operation's access rule."""


class TimedOut(msgspec.Struct, frozen=True):
    """The operation's deadline passed."""


class Overloaded(msgspec.Struct, frozen=True):
    """A limit that the operation declares is reached; `retry_after_ms` says when to come again, in milliseconds."""

    retry_after_ms: int | None = None


class Unavailable(msgspec.Struct, frozen=True):
    """The request was read while the daemon drained, or still ran when the drain window closed."""


class Cancelled(msgspec.Struct, frozen=True):
    """`$/cancelRequest` took effect."""


Failure: TypeAlias = (
    ParseFailure
    | InvalidRequest
    | OperationTypeMismatch
    | MethodNotFound
    | InvalidParams
    | Internal
    | DomainFailure
    | AuthenticationRequired
    | InsufficientPermissions
    | TimedOut
    | Overloaded
    | Unavailable
    | Cancelled
)
