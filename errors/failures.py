"""Every way in which a request can fail, as one closed union of structs.

A failure holds declared facts only: enumerated reasons, declared names, type phrases. It never holds an exception, text
taken from one, or a key or value that the caller sent (`InvalidParams.received` may be a plain word; its producer
checks it). `codes` and `wire` define its form on the wire.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

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

EnvelopeMember: TypeAlias = Literal["jsonrpc", "method", "params", "serviceParams"]

JsonScalar: TypeAlias = str | int | float | bool | None

OPERATION_TYPE_REASON = "invalid-operation-type"


class ParseFailure(msgspec.Struct, frozen=True):
    """The body is no JSON text: bad JSON, bad UTF-8, or fewer bytes than its header announced. `hint` is as in
    `InvalidRequest`."""

    reason: ParseReason
    hint: str = ""


class InvalidRequest(msgspec.Struct, frozen=True):
    """The header block or the envelope breaks a rule. `member` is the wrong member of the envelope, if it is one.

    `hint` follows the message and says what to send instead. It is a fixed text, or made of declared facts.
    """

    reason: RequestReason
    member: EnvelopeMember | None = None
    hint: str = ""


class OperationTypeMismatch(msgspec.Struct, frozen=True):
    """A subscription was called as a call, or the reverse; by HTTP, with a wrong verb. `hint` is as in `InvalidRequest`."""

    hint: str = ""


class MethodNotFound(msgspec.Struct, frozen=True):
    """No such method, or none that this caller may see. `suggestion` is a fixed text, or made of declared names."""

    suggestion: str = ""


class InvalidParams(msgspec.Struct, frozen=True):
    """Wrong, missing or surplus params. Only the first fault is named.

    `param` is the dotted path (`message.parts[0].text`, `$` for the whole), `expected` a type phrase, `received` the JSON type
    of the value that was sent. `accepted` is the closed list of values if there is one, each as the caller may send it.
    `unknown` names something that does not exist, such as `tool look`; of the caller's own text it repeats plain words alone.
    """

    param: str
    expected: str
    received: str
    accepted: tuple[JsonScalar, ...] | None = None
    unknown: str = ""


class Internal(msgspec.Struct, frozen=True):
    """An unexpected fault. `code` is the code of an `OperationError` that the operation does not declare, else None."""

    code: str | None = None


class DomainFailure(msgspec.Struct, frozen=True):
    """A declared error of an operation. `details` is its JSON, already checked against the declared schema.

    `number` is the JSON-RPC code that it declares; None for the code of all declared errors. `retry_after_ms` is from the
    server of an imported operation, if it is no part of the details.
    """

    code: str
    message: str
    retryable: bool = False
    details: msgspec.Raw | None = None
    http_status: int = 500
    number: int | None = None
    retry_after_ms: int | None = None


WRONG_SCHEME: Final = "scheme"
"""The reason for credentials of another scheme than those that are accepted."""


class AuthenticationRequired(msgspec.Struct, frozen=True):
    """The operation needs an identity and the caller has none. `reason` is for the log: why the credentials were refused, None
    if there were none."""

    schemes: tuple[str, ...]
    realm: str
    reason: str | None = None


class InsufficientPermissions(msgspec.Struct, frozen=True):
    """The caller's scopes do not satisfy the operation's access rule, which names `scopes`. Only clients of HTTP are told
    these, and only where they can get a token with them: bearer tokens tell callers apart."""

    scopes: tuple[str, ...] = ()


class TimedOut(msgspec.Struct, frozen=True):
    """The operation's deadline passed."""


class Overloaded(msgspec.Struct, frozen=True):
    """A limit that the operation declares is reached; `retry_after_ms` is the time to wait, in milliseconds."""

    retry_after_ms: int | None = None


class Unavailable(msgspec.Struct, frozen=True):
    """The request was read while the daemon drained, or still ran when the drain window closed.

    With `upstream`: the program behind an imported operation can't be reached, or was lost, or the issuer who knows the caller's
    token. With `retry_after_ms`: that, or the server that keeps the tasks, is away for at least so many milliseconds.
    """

    retry_after_ms: int | None = None
    upstream: bool = False


class Cancelled(msgspec.Struct, frozen=True):
    """The request was cancelled by `$/cancelRequest`."""


A2AVersion: TypeAlias = Literal["0.3", "1.0"]
"""A version of A2A. Each has its own JSON shapes and error data."""


class AgentFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every A2A failure: declared facts, never the caller's text.

    `task_id` names a task that exists or could have existed, `current_state` is its state in the notation of `version`,
    `completed_at` when it ended. `accepted` lists the accepted versions, extensions or media types. `reason` and `suggestion`
    are fixed sentences of this program.
    """

    version: A2AVersion = "1.0"
    task_id: str | None = None
    current_state: str | None = None
    completed_at: str | None = None
    reason: str | None = None
    suggestion: str | None = None
    accepted: tuple[str, ...] = ()


class TaskNotFound(AgentFailure, frozen=True):
    """No such task, or none that this caller may see."""


class TaskNotCancelable(AgentFailure, frozen=True):
    """The task has ended, or its agent refuses to cancel it."""


class PushNotificationNotSupported(AgentFailure, frozen=True):
    """The agent sends no push notifications."""


class UnsupportedOperation(AgentFailure, frozen=True):
    """The agent, or the task in its current state, does not support the operation."""


class ContentTypeNotSupported(AgentFailure, frozen=True):
    """A part of the message has a media type that the agent does not accept."""


class InvalidAgentResponse(AgentFailure, frozen=True):
    """The agent's own code returned something that the protocol does not allow."""


class ExtendedAgentCardNotConfigured(AgentFailure, frozen=True):
    """The agent announces an extended card and has none."""


class ExtensionSupportRequired(AgentFailure, frozen=True):
    """The agent requires an extension that the request does not name."""


class VersionNotSupported(AgentFailure, frozen=True):
    """The request names a protocol version that the method does not support."""


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
