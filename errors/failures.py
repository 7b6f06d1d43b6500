"""Every way in which a request can fail, as one closed union of structs.

A failure holds declared facts only: enumerated reasons, declared names, type phrases. It never holds an exception, text
taken from one, or a key or value that the caller sent (`InvalidParams.received` may be a plain word; its producer
checks it). `codes` and `wire` define its form on the wire; this module never imports them.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_origin, get_type_hints

import msgspec

from .decoders import ExternalSchema

# Reads the declaration of an error class into a struct. Never raises or renders the error itself.


_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
JSON_RPC_CODES: Final = frozenset({-32700, -32600, -32601, -32602, -32603})
"""The codes that JSON-RPC 2.0 defines (section 5.1). An error that is declared can't mean what they mean."""
_RESERVED_FIELDS = frozenset({"args", "add_note", "with_traceback", "details", "definition"})

_UNREADABLE = (TypeError, ValueError, NameError, AttributeError, SyntaxError, RuntimeError)
"""What resolving annotations raises, and msgspec for defaults that it refuses."""


class ErrorDefinition(msgspec.Struct, frozen=True):
    """One declared error; `details` is the struct type of its fields, or a type with a given schema. `number` is the JSON-RPC
    code, None for that of all.
    """

    code: str
    message: str
    description: str
    http_status: int
    retryable: bool
    details: Any
    number: int | None = None

    @property
    def has_details(self) -> bool:
        """Whether the error has any field."""
        return isinstance(self.details, ExternalSchema) or bool(self.details.__struct_fields__)


def define_error(
    cls: type[Exception],
    *,
    code: str,
    message: str | None,
    http_status: int,
    retryable: bool,
    number: int | None,
    reserved: frozenset[str],
) -> ErrorDefinition:
    """The declaration of an error class. Raises `TypeError` that names the class and the fault of its declaration."""
    name = cls.__name__
    if not (isinstance(code, str) and _CODE.fullmatch(code)):
        raise TypeError(f"{name}: code {code!r} must be upper-case words such as FILE_NOT_FOUND")
    if code in reserved:
        raise TypeError(f"{name}: code {code} is a protocol code and can't be declared")
    if not (isinstance(http_status, int) and 400 <= http_status <= 599):
        raise TypeError(f"{name}: http_status {http_status!r} must be a number between 400 and 599")
    if not isinstance(retryable, bool):
        raise TypeError(f"{name}: retryable must be True or False")
    if not (
        message is None or (isinstance(message, str) and not any("\ud800" <= char <= "\udfff" for char in message))
    ):
        raise TypeError(f"{name}: message must be a string of Unicode text")
    if number is not None and not _may_be_declared(number):
        raise TypeError(
            f"{name}: number {number!r} must be an integer of 32 bits that JSON-RPC does not define itself"
            f" ({', '.join(map(str, sorted(JSON_RPC_CODES)))})"
        )
    description = " ".join((cls.__doc__ or "").split())
    return ErrorDefinition(
        code=code,
        message=message or first_line(cls.__doc__) or code.replace("_", " ").capitalize(),
        description=description,
        http_status=http_status,
        retryable=retryable,
        details=_checked_details_type(cls),
        number=number,
    )


def _may_be_declared(number: object) -> bool:
    return type(number) is int and -(2**31) <= number < 2**31 and number not in JSON_RPC_CODES


def first_line(doc: str | None) -> str:
    """The first line of a docstring without its full stop; empty without a docstring."""
    lines = (doc or "").strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else ""


def _checked_details_type(cls: type[Exception]) -> type[msgspec.Struct]:
    try:
        return _details_type(cls)
    except _UNREADABLE as exc:
        raise TypeError(f"{cls.__name__}: its fields can't be read: {exc}") from exc


def _details_type(cls: type[Exception]) -> type[msgspec.Struct]:
    """The struct of a class's annotated fields, which extends that of its base class. Moves defaults to the struct."""
    parent: ErrorDefinition | None = getattr(cls.__base__, "definition", None)
    inherited = parent.details.__struct_fields__ if parent else ()
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for field, annotation in get_type_hints(cls, include_extras=True).items():
        if get_origin(annotation) is ClassVar or (field in inherited and field not in cls.__dict__):
            continue
        if field.startswith("_") or field in _RESERVED_FIELDS:
            raise TypeError(f"no field can be named {field}")
        if field in cls.__dict__:
            fields.append((field, annotation, cls.__dict__[field]))
            delattr(cls, field)  # a class attribute would hide the instance's field
        else:
            fields.append((field, annotation))
    return msgspec.defstruct(
        f"{cls.__name__}Details",
        fields,
        bases=(parent.details,) if parent else None,
        frozen=True,
        kw_only=True,
        module=cls.__module__,
    )


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
    """The body is no JSON text: bad JSON, bad UTF-8, or fewer bytes than its header announced. `hint` as below."""

    reason: ParseReason
    hint: str = ""


class InvalidRequest(msgspec.Struct, frozen=True):
    """The header block or the envelope breaks a rule. `member` is the member of the envelope that does, if one does. `hint` says
    what to send instead, in a fixed text or one of declared facts: it stands behind the message.
    """

    reason: RequestReason
    member: EnvelopeMember | None = None
    hint: str = ""


class OperationTypeMismatch(msgspec.Struct, frozen=True):
    """A subscription was called as a call, or the reverse; by HTTP, with a verb that it does not take. `hint` as above."""

    hint: str = ""


class MethodNotFound(msgspec.Struct, frozen=True):
    """No such method, or none that this caller may see. `suggestion` is a fixed text, or made of declared names."""

    suggestion: str = ""


class InvalidParams(msgspec.Struct, frozen=True):
    """Wrong, missing or surplus params; only the first fault is named.

    `param` is the dotted path (`message.parts[0].text`, `$` for the whole), `expected` a type phrase, `received` the JSON
    type of the value that was sent, `accepted` the closed list of values if there is one, each as the caller may send it.
    `unknown` is what was named that is not there, such as `tool look`; of the caller's own, it repeats plain words alone.
    """

    param: str
    expected: str
    received: str
    accepted: tuple[JsonScalar, ...] | None = None
    unknown: str = ""


class Internal(msgspec.Struct, frozen=True):
    """An unexpected fault. `code` is that of an `OperationError` which the operation does not declare, else None."""

    code: str | None = None


class DomainFailure(msgspec.Struct, frozen=True):
    """A declared error of an operation; `details` is its JSON, already checked against the declared schema.

    `number` is the JSON-RPC code that it declares; None for that of all declared errors. `retry_after_ms` is what an imported
    operation's server has said, where that is no part of the details.
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
    """The operation needs an identity and the caller has none. `reason` is why its credentials were refused, None where
    none came; it is for the log."""

    schemes: tuple[str, ...]
    realm: str
    reason: str | None = None


class InsufficientPermissions(msgspec.Struct, frozen=True):
    """The caller's scopes do not satisfy the operation's access rule, which names `scopes`. HTTP's clients are told these."""

    scopes: tuple[str, ...] = ()


class TimedOut(msgspec.Struct, frozen=True):
    """The operation's deadline passed."""


class Overloaded(msgspec.Struct, frozen=True):
    """A limit that the operation declares is reached; `retry_after_ms` is the time to wait, in milliseconds."""

    retry_after_ms: int | None = None


class Unavailable(msgspec.Struct, frozen=True):
    """The request was read while the daemon drained, or still ran when the drain window closed.

    With `upstream`: the program behind an imported operation can't be reached, or was lost. With `retry_after_ms`: the server
    that keeps the tasks is away, for so many milliseconds or more.
    """

    retry_after_ms: int | None = None
    upstream: bool = False


class Cancelled(msgspec.Struct, frozen=True):
    """`$/cancelRequest` took effect."""


A2AVersion: TypeAlias = Literal["0.3", "1.0"]
"""A version of A2A. Each has its own JSON shapes and error data."""


class AgentFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every A2A failure: declared facts, never text that the caller made up.

    `task_id` is that of a task that exists or could have existed, `current_state` its state in the notation of `version`,
    `completed_at` when it ended, `accepted` what would have been accepted (versions, extensions, media types). `reason` and
    `suggestion` are fixed sentences of this program.
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
