"""The details of an error as A2A 1.0 has them, and back: a list of messages of `google.rpc`, each with its `@type`.

The first is an `ErrorInfo`, whose metadata hold the facts of the failure as strings. Wrong params come with a `BadRequest`
too, a time to wait with a `RetryInfo`, and the details of a declared error as they are, in a `google.protobuf.Value`
(A2A 1.0, sections 3.3.2, 9.5 and 11.6; https://google.aip.dev/193).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Raw

from .codes import (
    A2A_REASONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    SERVER_ERROR,
    ErrorRow,
    rows_of_code,
)
from .decoders import decoder_for
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
    JsonScalar,
    MethodNotFound,
    OperationTypeMismatch,
    Overloaded,
    ParseFailure,
    ParseReason,
    RequestReason,
    TimedOut,
    Unavailable,
)

A2A_DOMAIN: Final = "a2a-protocol.org"
"""Whose reasons those of A2A are (9.5, 11.6)."""

DOMAIN: Final = "discreet"
"""Whose reasons all others are: those that every daemon has, and the codes of declared errors."""

_TYPES: Final = "type.googleapis.com/"


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """google.rpc.ErrorInfo; its metadata values are strings only."""

    type: str = msgspec.field(name="@type", default=f"{_TYPES}google.rpc.ErrorInfo")
    reason: str
    domain: str
    metadata: Mapping[str, str] = {}


class _Violation(msgspec.Struct, frozen=True):
    field: str = ""
    description: str = ""


class BadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """google.rpc.BadRequest."""

    type: str = msgspec.field(name="@type", default=f"{_TYPES}google.rpc.BadRequest")
    violations: tuple[_Violation, ...] = msgspec.field(name="fieldViolations")


class RetryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """google.rpc.RetryInfo. `delay` is a duration of ProtoJSON, such as `1.5s`."""

    type: str = msgspec.field(name="@type", default=f"{_TYPES}google.rpc.RetryInfo")
    delay: str = msgspec.field(name="retryDelay")


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Any JSON, in the form that ProtoJSON gives well-known types within an `Any`."""

    type: str = msgspec.field(name="@type", default=f"{_TYPES}google.protobuf.Value")
    value: Raw


Detail: TypeAlias = ErrorInfo | BadRequest | RetryInfo | Value


def details_of(failure: Failure, row: ErrorRow) -> list[Detail]:
    """The details of a failure, whose row of the table this is."""
    a2a = A2A_REASONS.get(row.failure)
    info = ErrorInfo(
        reason=a2a or row.protocol_code, domain=A2A_DOMAIN if a2a else DOMAIN, metadata=_metadata(failure, row)
    )
    match failure:
        case InvalidParams():
            return [info, BadRequest(violations=(_Violation(failure.param, _description(failure)),))]
        case Overloaded(after) | Unavailable(after):
            return [info, *_retry_info(after)]
        case DomainFailure(details=details, retry_after_ms=after):
            return [info, *([] if details is None else [Value(value=details)]), *_retry_info(after)]
        case _:
            return [info]


def _retry_info(after_ms: int | None) -> list[RetryInfo]:
    return [] if after_ms is None else [RetryInfo(delay=f"{after_ms // 1000}.{after_ms % 1000:03d}s")]


def _metadata(failure: Failure, row: ErrorRow) -> Mapping[str, str]:
    match failure:
        case ParseFailure(reason) | InvalidRequest(reason=reason):
            return {"reason": reason}
        case OperationTypeMismatch():
            return {"reason": OPERATION_TYPE_REASON}
        case InvalidParams():
            facts = {"param": failure.param, "expected": failure.expected, "received": failure.received}
            return facts if failure.accepted is None else {**facts, "accepted": _json(failure.accepted)}
        case MethodNotFound(suggestion) if suggestion:
            return {"suggestion": suggestion}
        case Internal(str(code)):
            return {"code": code}
        case AuthenticationRequired(schemes, realm):
            return {"retryable": "false", "authSchemes": ",".join(schemes), "realm": realm}
        case AgentFailure():
            return _agent_metadata(failure)
        case _ if row.code == SERVER_ERROR or isinstance(failure, DomainFailure):
            return {"retryable": "true" if row.retryable else "false"}
        case _:
            return {}


def _agent_metadata(failure: AgentFailure) -> Mapping[str, str]:
    facts = {
        "taskId": failure.task_id,
        "currentState": failure.current_state,
        "completedAt": failure.completed_at,
        "reason": failure.reason,
        "suggestion": failure.suggestion,
        "accepted": ",".join(failure.accepted) or None,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _description(failure: InvalidParams) -> str:
    accepted = ", ".join(each if isinstance(each, str) else _json(each) for each in failure.accepted or ())
    expected = f"{failure.expected}: {accepted}" if accepted else failure.expected
    return f"expected {expected}; received {failure.received}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# -- and back ----------------------------------------------------------------------------------------------------------


class _Received(msgspec.Struct, frozen=True):
    """A detail of any type."""

    type: str = msgspec.field(name="@type", default="")
    reason: str = ""
    domain: str = ""
    metadata: Mapping[str, str] = {}
    violations: tuple[_Violation, ...] = msgspec.field(name="fieldViolations", default=())
    delay: str = msgspec.field(name="retryDelay", default="")
    value: Raw = Raw()


class Details(msgspec.Struct, frozen=True):
    """What details say: the facts of the first of each type."""

    info: _Received
    violation: _Violation | None
    retry_after_ms: int | None
    value: Raw | None


def read_details(data: Raw) -> Details:
    """Read a list of details; what can't be read is left out. Total for JSON."""
    rows = list(filter(None, map(_read, decoder_for(list[Raw])(data))))
    first = {row.type.removeprefix(_TYPES): row for row in reversed(rows)}
    nothing = _Received()
    violations = first.get("google.rpc.BadRequest", nothing).violations
    value = first.get("google.protobuf.Value", nothing).value
    return Details(
        first.get("google.rpc.ErrorInfo", nothing),
        violations[0] if violations else None,
        _milliseconds(first.get("google.rpc.RetryInfo", nothing).delay),
        value if bytes(value) else None,
    )


def _read(row: Raw) -> _Received | None:
    try:
        return decoder_for(_Received)(row)
    except msgspec.DecodeError:
        return None


_MOST_SECONDS: Final = 10**9


def _milliseconds(delay: str) -> int | None:
    try:
        seconds = float(delay.removesuffix("s"))
    except ValueError:
        return None
    return round(seconds * 1000) if isfinite(seconds) and 0 <= seconds <= _MOST_SECONDS else None


def failure_from_details(code: int, message: str, details: Details) -> Failure:
    """The failure that an error of this JSON-RPC code and these details stands for. Total."""
    facts = details.info.metadata
    reason = facts.get("reason", "")
    match code:
        case _ if code == PARSE_ERROR:
            return ParseFailure(_one_of(ParseReason, reason, "invalid-json"))
        case _ if code == INVALID_REQUEST and reason == OPERATION_TYPE_REASON:
            return OperationTypeMismatch()
        case _ if code == INVALID_REQUEST:
            return InvalidRequest(_one_of(RequestReason, reason, "malformed-envelope"))
        case _ if code == METHOD_NOT_FOUND:
            return MethodNotFound(facts.get("suggestion", ""))
        case _ if code == INVALID_PARAMS:
            return _invalid_params(details)
        case _ if code == INTERNAL_ERROR:
            return Internal(facts.get("code"))
        case _ if code == REQUEST_CANCELLED:
            return Cancelled()
        case _ if code != SERVER_ERROR and rows_of_code(code):
            return _agent_failure(rows_of_code(code)[0].failure, facts)
        case _:
            return _server_failure(code, message, details)


def _one_of(names: Any, text: str, default: Any) -> Any:  # Any: a `Literal` of strings, and its members
    return text if text in get_args(names) else default


def _invalid_params(details: Details) -> InvalidParams:
    facts, violation = details.info.metadata, details.violation or _Violation()
    if "param" not in facts:  # another server's: its text says what was expected
        return InvalidParams(violation.field or "$", violation.description, "")
    return InvalidParams(
        facts["param"], facts.get("expected", ""), facts.get("received", ""), _scalars(facts.get("accepted"))
    )


def _scalars(text: str | None) -> tuple[JsonScalar, ...] | None:
    try:
        return None if text is None else decoder_for(tuple[JsonScalar, ...])(text.encode())
    except (msgspec.DecodeError, UnicodeError):
        return None


def _agent_failure(kind: type[Any], facts: Mapping[str, str]) -> Failure:
    failure: Failure = kind(
        task_id=facts.get("taskId"),
        current_state=facts.get("currentState"),
        completed_at=facts.get("completedAt"),
        reason=facts.get("reason"),
        suggestion=facts.get("suggestion"),
        accepted=_listed(facts.get("accepted", "")),
    )
    return failure


def _server_failure(code: int, message: str, details: Details) -> Failure:
    facts, reason = details.info.metadata, details.info.reason
    if "retryable" not in facts:
        return Internal()  # another server's
    number = None if code == SERVER_ERROR else code
    match reason if number is None else "":
        case "TIMEOUT":
            return TimedOut()
        case "UNAVAILABLE":
            return Unavailable(details.retry_after_ms)
        case "OVERLOADED":
            return Overloaded(details.retry_after_ms)
        case "FORBIDDEN" if "realm" in facts:
            return AuthenticationRequired(_listed(facts.get("authSchemes", "")), facts["realm"])
        case "FORBIDDEN":
            return InsufficientPermissions()
        case _:
            retryable, after = facts["retryable"] == "true", details.retry_after_ms
            return DomainFailure(reason, message, retryable, details.value, number=number, retry_after_ms=after)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))
