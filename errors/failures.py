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


Dialect: TypeAlias = Literal["0.3", "1.0"]
"""A version of A2A with JSON shapes and error data of its own."""


class AgentFailure(msgspec.Struct, frozen=True, kw_only=True):
    """What the failures of A2A may tell: declared facts, none of which the caller made up.

    `task_id` is that of a task that exists or could have, `current_state` its state as the dialect writes it, `accepted`
    what would have been accepted (versions, extensions, media types). `reason` and `suggestion` are sentences of the
    program's own.
    """

    dialect: Dialect = "1.0"
    task_id: str | None = None
    current_state: str | None = None
    reason: str | None = None
    suggestion: str | None = None
    accepted: tuple[str, ...] = ()


class TaskNotFound(AgentFailure, frozen=True):
    """No such task, or none that this caller may see."""


class TaskNotCancelable(AgentFailure, frozen=True):
    """The task has ended, or its agent does not let go of it."""


class PushNotificationNotSupported(AgentFailure, frozen=True):
    """The agent sends no push notifications."""


class UnsupportedOperation(AgentFailure, frozen=True):
    """The agent, or the task in its state, does not support what was asked."""


class ContentTypeNotSupported(AgentFailure, frozen=True):
    """A part of the message is of a media type that the agent does not take."""


class InvalidAgentResponse(AgentFailure, frozen=True):
    """The agent's own code answered with something that the protocol does not allow."""


class ExtendedAgentCardNotConfigured(AgentFailure, frozen=True):
    """The agent announces an extended card and has none."""


class ExtensionSupportRequired(AgentFailure, frozen=True):
    """The agent requires an extension that the caller did not name."""


class VersionNotSupported(AgentFailure, frozen=True):
    """The caller asked for a version of the protocol that the method does not speak."""


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
    | TaskNotFound
    | TaskNotCancelable
    | PushNotificationNotSupported
    | UnsupportedOperation
    | ContentTypeNotSupported
    | InvalidAgentResponse
    | ExtendedAgentCardNotConfigured
    | ExtensionSupportRequired
    | VersionNotSupported
)
