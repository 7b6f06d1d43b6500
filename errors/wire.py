"""Turns a failure into an error object of JSON-RPC, into the bodies of HTTP responses, and back. Total both ways.

What is sent has the message of the table and data of the failure's declared facts, never exception text. What is received and not
recognised becomes `Internal`, which is not retryable.

A2A 1.0 has the same facts in a list of messages of `google.rpc`, each with its `@type`: an `ErrorInfo`, whose metadata are
strings; for wrong params a `BadRequest`; for a time to wait a `RetryInfo`; the details of a declared error in a `Value` (A2A 1.0,
sections 3.3.2, 9.5 and 11.6; https://google.aip.dev/193). Such a list is read by turning it into the plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .codes import (
    A2A_REASONS,
    BATCH_MESSAGE,
    ERROR_TABLE,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MEMBER_RULES,
    PARSE_ERROR,
    REASON_RULES,
    SERVER_ERROR,
    STORE_UNAVAILABLE,
    ErrorRow,
    row_of,
    rows_of_code,
)
from .decoders import decoder_for
from .failures import (
    OPERATION_TYPE_REASON,
    A2AVersion,
    AgentFailure,
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    JsonScalar,
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


class CallError(msgspec.Struct, frozen=True, omit_defaults=True):
    """A failure without JSON-RPC around it. `code` is a protocol code or one that the operation declares; readers go by it, and
    not by `message`. `details` are those of the JSON-RPC error.
    """

    code: str
    message: str
    retryable: bool = msgspec.field()
    details: Raw | UnsetType = UNSET


class _Reason(msgspec.Struct, frozen=True):
    reason: str


class _UndeclaredCode(msgspec.Struct, frozen=True):
    code: str


class _WrongParam(msgspec.Struct, frozen=True, omit_defaults=True):
    param: str
    expected: str
    received: str
    accepted: tuple[JsonScalar, ...] | None = None


class _Challenge(msgspec.Struct, frozen=True, rename="camel"):
    auth_schemes: tuple[str, ...]
    realm: str


class _RetryAfter(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_ms: int


class _AgentFacts(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    task_id: str | None = None
    current_state: str | None = None
    completed_at: str | None = None
    reason: str | None = None
    suggestion: str | None = None
    accepted: tuple[str, ...] = ()


class _ServerError(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of every −32000; the flag is always present."""

    code: str
    retryable: bool
    details: Raw | UnsetType = UNSET


PROTOCOL_DETAILS: Final[Mapping[type, type[msgspec.Struct] | None]] = {
    ParseFailure: _Reason,
    InvalidRequest: _Reason,
    OperationTypeMismatch: _Reason,
    MethodNotFound: None,
    InvalidParams: _WrongParam,
    Internal: _UndeclaredCode,
    AuthenticationRequired: _Challenge,
    InsufficientPermissions: None,
    TimedOut: None,
    Overloaded: _RetryAfter,
    Unavailable: _RetryAfter,
}
"""The type of the details of each failure that no operation declares."""

OPTIONAL_DETAILS: Final = frozenset({Internal, Overloaded, Unavailable})
"""Failures that may come without."""

NO_CODE: Final = 0
"""Stands for the code of a received error without one; JSON-RPC does not use it."""

_encode: Final = msgspec.json.Encoder().encode


def error_object(failure: Failure, dialect: str = "plain", *, version: A2AVersion | None = None) -> ErrorObject:
    """The error object of a failure: the code of the table in this dialect, its message, and minimal data.

    `version` is that of the A2A method that failed: in 1.0 the data are a list.
    """
    row = row_of(failure)
    typed = version == "1.0" or (isinstance(failure, AgentFailure) and failure.version == "1.0")
    data: object = _typed_data(failure, row) if typed else _plain_data(failure, row)
    return ErrorObject(row.code_in(dialect), _message(failure, row), UNSET if data is None else _raw(data))


def encode_error(failure: Failure, dialect: str = "plain") -> bytes:
    """The error object of a failure, as JSON text."""
    return _encode(error_object(failure, dialect))


def encode_error_response(
    request_id: bytes, failure: Failure, dialect: str = "plain", *, version: A2AVersion | None = None
) -> bytes:
    """The JSON-RPC response that answers a request with a failure. `request_id` is the JSON text of the request's id,
    `version` that of its method if it is one of A2A."""
    error = _encode(error_object(failure, dialect, version=version))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, error)


def encode_status(failure: Failure, http_status: int, version: A2AVersion = "1.0") -> bytes:
    """The body of an HTTP response with this status: a google.rpc.Status as HTTP+JSON has it (A2A 1.0, section 11.6).

    0.3 does not say what such a body is. Its own begins with the error's name and message, where a2a-sdk looks for them.
    """
    row = row_of(failure)
    message = _message(failure, row)
    details = _typed_data(failure, row)
    status = {"code": http_status, "status": row.grpc_status, "message": message, "details": details}
    old = {"type": f"{row.failure.__name__}Error", "message": message} if version == "0.3" else {}
    return _encode({**old, "error": status})


def encode_call_error(failure: Failure) -> bytes:
    """The `CallError` that stands for a failure, as JSON text."""
    row = row_of(failure)
    data = _plain_data(failure, row)
    details = data.details if isinstance(data, _ServerError) else UNSET if data is None else _raw(data)
    message = _message(failure, row)
    if isinstance(failure, MethodNotFound) and failure.suggestion:
        message = f"{message}: {failure.suggestion}"
    return _encode(CallError(row.protocol_code, message, row.retryable, details))


def _message(failure: Failure, row: ErrorRow) -> str:
    match failure:
        case InvalidRequest("batch-not-supported"):
            return BATCH_MESSAGE
        case InvalidRequest(member=member) if member is not None:
            return f"{row.message}: {MEMBER_RULES[member]}"
        case ParseFailure(hint=hint) | InvalidRequest(hint=hint) | OperationTypeMismatch(hint=hint) if hint:
            return f"{row.message}: {hint}"
        case InvalidRequest(reason=reason) if reason in REASON_RULES:
            return f"{row.message}: {REASON_RULES[reason]}"
        case InvalidParams(unknown=what) if what:
            return f"{row.message}: unknown {what}"
        case Unavailable(int(), upstream=False):
            return STORE_UNAVAILABLE
        case _:
            return row.message


def _facts(failure: Failure) -> msgspec.Struct | None:
    """The facts of a failure that is not declared by an operation; None if it has none."""
    match failure:
        case ParseFailure(reason) | InvalidRequest(reason=reason):
            return _Reason(reason)
        case OperationTypeMismatch():
            return _Reason(OPERATION_TYPE_REASON)
        case InvalidParams():
            return _WrongParam(failure.param, failure.expected, failure.received, failure.accepted)
        case Internal(str(code)):
            return _UndeclaredCode(code)
        case AuthenticationRequired(schemes, realm):
            return _Challenge(schemes, realm)
        case Overloaded(int(after)) | Unavailable(int(after)):
            return _RetryAfter(after)
        case AgentFailure():
            return _AgentFacts(**{name: getattr(failure, name) for name in _AgentFacts.__struct_fields__})
        case _:
            return None


def _plain_data(failure: Failure, row: ErrorRow) -> msgspec.Struct | None:
    if isinstance(failure, DomainFailure):
        return _ServerError(row.protocol_code, row.retryable, _declared_details(failure))
    facts = _facts(failure)
    if row.code != SERVER_ERROR:
        return facts
    return _ServerError(row.protocol_code, row.retryable, UNSET if facts is None else _raw(facts))


def _declared_details(failure: DomainFailure) -> Raw | UnsetType:
    """The details, in which stands the time to wait, too, as in those of OVERLOADED. Details that are no object have no place
    for it."""
    details, after = failure.details, failure.retry_after_ms
    if after is None:
        return UNSET if details is None else details
    members: object = {} if details is None else msgspec.json.decode(details)
    return _raw({"retryAfterMs": after, **members}) if isinstance(members, dict) else details or UNSET


def _raw(value: object) -> Raw:
    return Raw(_encode(value))


# -- lists of messages of google.rpc -----------------------------------------------------------------------------------

_A2A_DOMAIN: Final = "a2a-protocol.org"
"""Whose reasons those of A2A are (9.5, 11.6)."""

_DOMAIN: Final = "discreet"
"""Whose reasons all others are: those that every daemon has, and the codes of declared errors."""

_INFO, _BAD_REQUEST, _RETRY, _VALUE = (
    f"type.googleapis.com/google.{name}"
    for name in ("rpc.ErrorInfo", "rpc.BadRequest", "rpc.RetryInfo", "protobuf.Value")
)


class _Violation(msgspec.Struct, frozen=True):
    field: str = ""
    description: str = ""


class _Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message of any of the types. `delay` is a duration of ProtoJSON, such as `1.5s`."""

    type: str = msgspec.field(name="@type", default="")
    reason: str = ""
    domain: str = ""
    metadata: Mapping[str, str] | UnsetType = UNSET
    violations: tuple[_Violation, ...] = msgspec.field(name="fieldViolations", default=())
    delay: str = msgspec.field(name="retryDelay", default="")
    value: Raw | UnsetType = UNSET


def _typed_data(failure: Failure, row: ErrorRow) -> list[_Message]:
    reason = A2A_REASONS.get(row.failure)
    info = _Message(
        type=_INFO,
        reason=reason or row.protocol_code,
        domain=_A2A_DOMAIN if reason else _DOMAIN,
        metadata=_metadata(failure, row),
    )
    messages = [info]
    if isinstance(failure, InvalidParams):
        violation = _Violation(failure.param, _description(failure))
        messages.append(_Message(type=_BAD_REQUEST, violations=(violation,)))
    if isinstance(failure, DomainFailure) and failure.details is not None:
        messages.append(_Message(type=_VALUE, value=failure.details))
    if isinstance(failure, Overloaded | Unavailable | DomainFailure) and (after := failure.retry_after_ms) is not None:
        messages.append(_Message(type=_RETRY, delay=f"{after // 1000}.{after % 1000:03d}s"))
    return messages


def _metadata(failure: Failure, row: ErrorRow) -> dict[str, str]:
    facts: dict[str, Any] = {}
    if isinstance(failure, MethodNotFound) and failure.suggestion:
        facts["suggestion"] = failure.suggestion
    if (found := _facts(failure)) is not None and not isinstance(found, _RetryAfter):
        facts = msgspec.to_builtins(found)
    if isinstance(failure, InvalidParams) and failure.accepted is not None:
        facts["accepted"] = _json(failure.accepted)
    texts = {name: fact if isinstance(fact, str) else ",".join(fact) for name, fact in facts.items()}
    if row.code == SERVER_ERROR or isinstance(failure, DomainFailure):
        return {"retryable": "true" if row.retryable else "false", **texts}
    return texts


def _description(failure: InvalidParams) -> str:
    accepted = ", ".join(each if isinstance(each, str) else _json(each) for each in failure.accepted or ())
    expected = f"{failure.expected}: {accepted}" if accepted else failure.expected
    return f"expected {expected}; received {failure.received}"


def _json(value: object) -> str:
    return _encode(value).decode()


def _from_typed_data(error: ErrorObject, data: Raw) -> Failure:
    """The failure of an error with such a list. What can't be read of it is left out; of each type the first counts."""
    messages = list(filter(None, map(_read_message, decoder_for(list[Raw])(data))))
    first = {message.type: message for message in reversed(messages)}
    nothing = _Message()
    after = _milliseconds(first.get(_RETRY, nothing).delay)
    info = first.get(_INFO, nothing)
    facts: dict[str, Any] = {} if isinstance(info.metadata, UnsetType) else dict(info.metadata)
    if error.code == INVALID_PARAMS:
        facts = _wrong_param(facts, first.get(_BAD_REQUEST, nothing).violations)
    else:
        facts |= {
            name: tuple(filter(None, facts[name].split(","))) for name in ("accepted", "authSchemes") if name in facts
        }
    plain: object = facts
    if "retryable" in facts:
        details: object = first.get(_VALUE, nothing).value
        if "realm" in facts:
            details = {"authSchemes": (), **facts}
        elif isinstance(details, UnsetType) and after is not None:
            details = {"retryAfterMs": after}
        plain = {"code": info.reason, "retryable": facts["retryable"] == "true"}
        plain |= {} if isinstance(details, UnsetType) else {"details": details}
    match _failure_from(ErrorObject(error.code, error.message, _raw(plain)), a2a=True):
        case AgentFailure() as failure:
            return msgspec.structs.replace(failure, version="1.0")
        case DomainFailure() as failure:
            return msgspec.structs.replace(failure, retry_after_ms=after)
        case MethodNotFound():
            return MethodNotFound(facts.get("suggestion", ""))
        case failure:
            return failure


def _read_message(message: Raw) -> _Message | None:
    try:
        return decoder_for(_Message)(message)
    except msgspec.DecodeError:
        return None


def _wrong_param(facts: Mapping[str, str], violations: tuple[_Violation, ...]) -> dict[str, Any]:
    if "param" not in facts:  # another server's: its text says what was expected
        violation = violations[0] if violations else _Violation()
        return {"param": violation.field or "$", "expected": violation.description, "received": ""}
    known: dict[str, Any] = {"expected": "", "received": "", **facts}
    try:
        known["accepted"] = decoder_for(tuple[JsonScalar, ...])(facts["accepted"])
    except (KeyError, msgspec.DecodeError, UnicodeError):
        known["accepted"] = None
    return known


_MOST_SECONDS: Final = 10**9


def _milliseconds(delay: str) -> int | None:
    try:
        seconds = float(delay.removesuffix("s"))
    except ValueError:
        return None
    return round(seconds * 1000) if isfinite(seconds) and 0 <= seconds <= _MOST_SECONDS else None


# -- and back ----------------------------------------------------------------------------------------------------------


def decode_error(raw: bytes | Raw, *, a2a: bool = True) -> tuple[ErrorObject, Failure]:
    """Decode the error object of a peer, and the failure that it stands for. Total: unrecognised text is `Internal`.

    Without `a2a`, the numbers of A2A are the peer's own. JSON of another shape becomes the `data` of the returned error object.
    """
    try:
        try:
            error = decoder_for(ErrorObject)(raw)
        except msgspec.ValidationError:
            error = _malformed_error(raw)
        return error, _failure_from(error, a2a=a2a)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ErrorObject(NO_CODE, ""), Internal()


def decode_declared(raw: bytes | Raw) -> Failure:
    """The failure that an error object stands for by its data alone: a declared error may have any number, also one that the
    table has for another failure. `Internal` for data that are none of a declared error.
    """
    try:
        return _declared_failure(decoder_for(ErrorObject)(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Internal()


_NUMBERS: Final[Mapping[str, int]] = {
    row.protocol_code: row.code
    for row in reversed(ERROR_TABLE)
    if row.protocol_code and not issubclass(row.failure, AgentFailure)
}


def failure_of_call_error(error: CallError) -> Failure:
    """The failure that such an error stands for. Total, as `decode_error` is."""
    number = _NUMBERS.get(error.code, SERVER_ERROR)
    data = error.details
    if number == SERVER_ERROR:
        data = _raw(_ServerError(error.code, error.retryable, data))
    return decode_error(_encode(ErrorObject(number, error.message, data)), a2a=False)[1]


def _malformed_error(raw: bytes | Raw) -> ErrorObject:
    decoded: object = msgspec.json.decode(raw)
    members = decoded if isinstance(decoded, dict) else {"message": decoded}
    code, message = members.get("code"), members.get("message")
    number = code if isinstance(code, int) and not isinstance(code, bool) else NO_CODE
    return ErrorObject(number, message if isinstance(message, str) else "", Raw(bytes(raw)))


def _failure_from(error: ErrorObject, *, a2a: bool) -> Failure:
    data = error.data
    if not isinstance(data, UnsetType) and bytes(data).lstrip().startswith(b"["):
        return _from_typed_data(error, data)
    rows = [row for row in rows_of_code(error.code) if a2a or not issubclass(row.failure, AgentFailure)]
    if not rows or error.code == SERVER_ERROR:
        return _declared_failure(error)
    for row in rows:
        try:
            built = _from_facts(row.failure, data)
        except msgspec.DecodeError:  # data of the peer's own under a standard code
            continue
        if built is not None:
            return built
    return _DEFAULT_FAILURES.get(error.code, Internal())


_DEFAULT_FAILURES: dict[int, Failure] = {
    PARSE_ERROR: ParseFailure("invalid-json"),
    INVALID_REQUEST: InvalidRequest("malformed-envelope"),
    INVALID_PARAMS: InvalidParams("$", expected="", received=""),
}
"""The failure of a standard code if its data is missing or not ours."""


def _from_facts(kind: type[Any], data: Raw | UnsetType) -> Failure | None:
    """The failure of this kind that the data describes; None if the data belongs to another kind."""
    built: Failure
    if kind is MethodNotFound or kind is Cancelled:
        built = kind()
    elif issubclass(kind, AgentFailure):
        built = _agent_failure(kind, data)
    elif isinstance(data, UnsetType):
        return None
    elif kind is Internal:
        built = Internal(decoder_for(_UndeclaredCode)(data).code)
    elif kind is OperationTypeMismatch:
        return OperationTypeMismatch() if decoder_for(_Reason)(data).reason == OPERATION_TYPE_REASON else None
    else:
        built = decoder_for(kind)(data)
    return built


def _agent_failure(kind: type[Any], data: Raw | UnsetType) -> Failure:
    """The failure of this kind, with the data if it can be read: the code alone determines the kind."""
    failure: Failure = kind()
    try:
        if not isinstance(data, UnsetType):
            failure = kind(version="0.3", **msgspec.structs.asdict(decoder_for(_AgentFacts)(data)))
    except msgspec.DecodeError:  # data of the peer's own
        pass
    return failure


def _declared_failure(error: ErrorObject) -> Failure:
    """A failure with the data of −32000. With any other number it is a declared error's own; `Internal` if it is the peer's."""
    failure = _server_failure(error.message, error.data)
    if error.code == SERVER_ERROR:
        return failure
    return msgspec.structs.replace(failure, number=error.code) if isinstance(failure, DomainFailure) else Internal()


def _server_failure(message: str, data: Raw | UnsetType) -> Failure:
    try:
        server = decoder_for(_ServerError)(b"" if isinstance(data, UnsetType) else data)
        details = None if isinstance(server.details, UnsetType) else server.details
        match server.code:
            case "TIMEOUT":
                return TimedOut()
            case "UNAVAILABLE":
                return Unavailable(_retry_after_ms(details))
            case "FORBIDDEN" if details is None:
                return InsufficientPermissions()
            case "FORBIDDEN":
                challenge = decoder_for(_Challenge)(details or b"")
                return AuthenticationRequired(challenge.auth_schemes, challenge.realm)
            case "OVERLOADED":
                return Overloaded(_retry_after_ms(details))
            case code:
                return DomainFailure(code, message, server.retryable, details, retry_after_ms=_asked_to_wait(details))
    except msgspec.DecodeError:
        return Internal()


def _retry_after_ms(details: Raw | None) -> int | None:
    return decoder_for(_RetryAfter)(details).retry_after_ms if details else None


def _asked_to_wait(details: Raw | None) -> int | None:
    """Return the time to wait in the details of a declared error. A member of that name and another type does not count."""
    if details is None or b"retryAfterMs" not in bytes(details):
        return None
    try:
        after: object = msgspec.json.decode(decoder_for(dict[str, Raw])(details).get("retryAfterMs", b"null"))
    except msgspec.ValidationError:  # no object
        return None
    return after if type(after) is int and after >= 0 else None
