"""A failure as the error object of a JSON-RPC response, and back. Total both ways.

Going out, the text is the table's and the data is built from the failure's declared facts. Coming in, whatever is
not recognised is `Internal`: a code that a client does not know is an internal error that is not worth a retry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .codes import BATCH_MESSAGE, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, SERVER_ERROR, row_of, rows_of_code
from .exceptions import OperationError
from .failures import (
    OPERATION_TYPE_REASON,
    AgentFailure,
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    TimedOut,
    Unavailable,
)


class ErrorObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The member `error` of a response (JSON-RPC 2.0 section 5.1); `data` is raw JSON."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


class _Reason(msgspec.Struct, frozen=True):
    reason: str


class _InternalCode(msgspec.Struct, frozen=True):
    code: str


class _Params(msgspec.Struct, frozen=True, omit_defaults=True):
    param: str
    expected: str
    received: str
    accepted: tuple[str, ...] | None = None


class _Server(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of every −32000; the flag is always there."""

    code: str
    retryable: bool
    details: Raw | UnsetType = UNSET


class _Challenge(msgspec.Struct, frozen=True, rename="camel"):
    auth_schemes: tuple[str, ...]
    realm: str


class _AgentFacts(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What A2A 0.3 puts into `data`, and 1.0 into the metadata of its `ErrorInfo`."""

    task_id: str | None = None
    current_state: str | None = None
    reason: str | None = None
    suggestion: str | None = None
    accepted: tuple[str, ...] = ()


class _ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """google.rpc.ErrorInfo, whose metadata are strings only (A2A 1.0 section 9.5)."""

    type: str = msgspec.field(name="@type", default="type.googleapis.com/google.rpc.ErrorInfo")
    reason: str
    domain: str = "a2a-protocol.org"
    metadata: dict[str, str] = {}


class _RetryAfter(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_ms: int


_encode = msgspec.json.Encoder().encode


def error_object(failure: Failure) -> ErrorObject:
    """What a peer is told of a failure: the table's number and text, and minimal data."""
    row = row_of(failure)
    message = BATCH_MESSAGE if failure == InvalidRequest("batch-not-supported") else row.message
    data = _data(failure, row.protocol_code, row.retryable)
    return ErrorObject(row.code, message, UNSET if data is None else _raw(data))


def encode_error(failure: Failure) -> bytes:
    """The same as JSON text."""
    return _encode(error_object(failure))


def encode_error_response(request_id: bytes, failure: Failure) -> bytes:
    """The JSON-RPC response that answers a request with a failure. `request_id` is the JSON text of the request's id."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, encode_error(failure))


def _data(failure: Failure, code: str, retryable: bool) -> msgspec.Struct | list[_ErrorInfo] | None:
    match failure:
        case ParseFailure(reason) | InvalidRequest(reason):
            return _Reason(reason)
        case OperationTypeMismatch():
            return _Reason(OPERATION_TYPE_REASON)
        case InvalidParams():
            return _Params(failure.param, failure.expected, failure.received, failure.accepted)
        case Internal():
            return _InternalCode(failure.code) if failure.code else None
        case DomainFailure():
            return _Server(code, retryable, UNSET if failure.details is None else failure.details)
        case AuthenticationRequired():
            return _Server(code, retryable, _raw(_Challenge(failure.schemes, failure.realm)))
        case Overloaded():
            after = failure.retry_after_ms
            return _Server(code, retryable, UNSET if after is None else _raw(_RetryAfter(after)))
        case InsufficientPermissions() | TimedOut() | Unavailable():
            return _Server(code, retryable)
        case MethodNotFound() | Cancelled():
            return None
        case AgentFailure():
            return _agent_data(failure, code)
        case _:
            assert_never(failure)


def _agent_data(failure: AgentFailure, code: str) -> _AgentFacts | list[_ErrorInfo]:
    facts = _AgentFacts(failure.task_id, failure.current_state, failure.reason, failure.suggestion, failure.accepted)
    if failure.dialect == "0.3":
        return facts
    metadata = msgspec.to_builtins(facts)
    if failure.accepted:
        metadata["accepted"] = ",".join(failure.accepted)
    return [_ErrorInfo(reason=code, metadata=metadata)]


def _raw(value: object) -> Raw:
    return Raw(_encode(value))


def failure_of(exc: OperationError, declared: Sequence[type[OperationError]]) -> Failure:
    """What an operation's typed error means to its caller.

    Declared: the error itself, its details checked against their declared types and passed through the scrubber's
    secret layers. Not declared: `Internal` with the code and nothing else. Raises `msgspec.ValidationError` or
    `TypeError` when a declared error carries facts that its declaration does not allow; the caller of this function
    treats that as any other unexpected fault.
    """
    definition = exc.definition
    if type(exc) not in declared:  # nor is a subclass: its code and its facts stand in no schema
        return Internal(definition.code)
    details = None
    if definition.has_details:
        encoded = _encode(exc.details)
        msgspec.json.decode(encoded, type=definition.details)
        details = _without_secrets(encoded)
    return DomainFailure(definition.code, definition.message, definition.retryable, details, definition.http_status)


def _without_secrets(encoded: bytes) -> Raw:
    from .redaction import scrub_details  # late: the rules cost start-up time

    clean, hits = scrub_details(msgspec.json.decode(encoded))
    return Raw(_encode(clean) if hits else encoded)


NO_NUMBER: Final = 0
"""The code of an error that came without one; JSON-RPC gives it no meaning."""


def read_error(raw: bytes | Raw) -> tuple[ErrorObject, Failure]:
    """A peer's error object and what it means. Total: a text that is no error object is `Internal` too.

    Of what has another shape, the data of the error object is all that came.
    """
    try:
        try:
            error = msgspec.json.decode(raw, type=ErrorObject)
        except msgspec.ValidationError:
            error = _odd_error(raw)
        return error, _failure(error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ErrorObject(NO_NUMBER, ""), Internal()


def _odd_error(raw: bytes | Raw) -> ErrorObject:
    came: object = msgspec.json.decode(raw)
    members = came if isinstance(came, dict) else {"message": came}
    code, message = members.get("code"), members.get("message")
    number = code if isinstance(code, int) and not isinstance(code, bool) else NO_NUMBER
    return ErrorObject(number, message if isinstance(message, str) else "", Raw(bytes(raw)))


def _failure(error: ErrorObject) -> Failure:
    if error.code == SERVER_ERROR:
        return _server_failure(error.message, error.data)
    for row in rows_of_code(error.code):
        try:
            built = _from_data(row.failure, error.data)
        except msgspec.DecodeError:  # a peer's own data under a standard number
            continue
        if built is not None:
            return built
    return _BY_NUMBER.get(error.code, Internal())


_BY_NUMBER: dict[int, Failure] = {
    PARSE_ERROR: ParseFailure("invalid-json"),
    INVALID_REQUEST: InvalidRequest("malformed-envelope"),
    INVALID_PARAMS: InvalidParams("$", expected="", received=""),
}
"""What a standard number means when a peer of another make says nothing more."""


def _from_data(kind: type[Any], data: Raw | UnsetType) -> Failure | None:
    """The failure of this kind that the data describes; None when the data is another kind's."""
    if kind is MethodNotFound or kind is Cancelled:
        return MethodNotFound() if kind is MethodNotFound else Cancelled()
    if issubclass(kind, AgentFailure):
        return _agent_failure(kind, data)
    if isinstance(data, UnsetType):
        return None
    if kind is Internal:
        return Internal(msgspec.json.decode(data, type=_InternalCode).code)
    if kind is OperationTypeMismatch:
        reason = msgspec.json.decode(data, type=_Reason).reason
        return OperationTypeMismatch() if reason == OPERATION_TYPE_REASON else None
    built: Failure = msgspec.json.decode(data, type=kind)
    return built


def _agent_failure(kind: type[Any], data: Raw | UnsetType) -> Failure:
    """Whatever a peer says beside the number, the number tells which failure it is."""
    built: Failure = kind()
    if isinstance(data, UnsetType):
        return built
    try:
        if bytes(data).lstrip().startswith(b"["):
            metadata = dict(msgspec.json.decode(data, type=list[_ErrorInfo])[0].metadata)
            accepted = tuple(filter(None, metadata.pop("accepted", "").split(",")))
            facts = msgspec.convert({**metadata, "accepted": accepted}, _AgentFacts)
            dialect = "1.0"
        else:
            facts = msgspec.json.decode(data, type=_AgentFacts)
            dialect = "0.3"
    except (msgspec.DecodeError, IndexError):  # a peer's own data
        return built
    return msgspec.structs.replace(built, dialect=dialect, **msgspec.structs.asdict(facts))


def _server_failure(message: str, data: Raw | UnsetType) -> Failure:
    try:
        server = msgspec.json.decode(b"" if isinstance(data, UnsetType) else data, type=_Server)
        details = None if isinstance(server.details, UnsetType) else server.details
        match server.code:
            case "TIMEOUT":
                return TimedOut()
            case "UNAVAILABLE":
                return Unavailable()
            case "FORBIDDEN" if details is None:
                return InsufficientPermissions()
            case "FORBIDDEN":
                challenge = msgspec.json.decode(details or b"", type=_Challenge)
                return AuthenticationRequired(challenge.auth_schemes, challenge.realm)
            case "OVERLOADED":
                return Overloaded(msgspec.json.decode(details, type=_RetryAfter).retry_after_ms if details else None)
            case code:
                return DomainFailure(code, message, server.retryable, details)
    except msgspec.DecodeError:
        return Internal()
