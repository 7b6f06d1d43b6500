"""A failure as one object by itself, where no JSON-RPC stands around it: code, message, retry flag and details.

The details are those of the JSON-RPC error: declared facts, never exception text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .codes import ERROR_TABLE, SERVER_ERROR, row_of
from .failures import (
    AgentFailure,
    AuthenticationRequired,
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
from .wire import (
    AuthChallenge,
    ErrorObject,
    InternalData,
    InvalidParamsData,
    ReasonData,
    RetryAfter,
    ServerErrorData,
    data_of,
    decode_error,
    message_of,
)


class CallError(msgspec.Struct, frozen=True, omit_defaults=True):
    """`code` is a protocol code or one that the operation declares; whoever reads it goes by that, and not by `message`."""

    code: str
    message: str
    retryable: bool = msgspec.field()
    details: Raw | UnsetType = UNSET


PROTOCOL_DETAILS: Final[Mapping[type, type[msgspec.Struct] | None]] = {
    ParseFailure: ReasonData,
    InvalidRequest: ReasonData,
    OperationTypeMismatch: ReasonData,
    MethodNotFound: None,
    InvalidParams: InvalidParamsData,
    Internal: InternalData,
    AuthenticationRequired: AuthChallenge,
    InsufficientPermissions: None,
    TimedOut: None,
    Overloaded: RetryAfter,
    Unavailable: RetryAfter,
}
"""The type of the details of each failure that no operation declares."""

OPTIONAL_DETAILS: Final = frozenset({Internal, Overloaded, Unavailable})
"""Failures that may come without."""

_encode: Final = msgspec.json.Encoder().encode


def call_error(failure: Failure) -> CallError:
    """The error that stands for a failure."""
    row = row_of(failure)
    data = data_of(failure, row.protocol_code, row.retryable)
    details = data.details if isinstance(data, ServerErrorData) else UNSET if data is None else Raw(_encode(data))
    message = message_of(failure, row.message)
    if isinstance(failure, MethodNotFound) and failure.suggestion:
        message = f"{message}: {failure.suggestion}"
    return CallError(row.protocol_code, message, row.retryable, details)


def encode_call_error(failure: Failure) -> bytes:
    """The same as JSON text."""
    return _encode(call_error(failure))


_NUMBERS: Final[Mapping[str, int]] = {
    row.protocol_code: row.code
    for row in reversed(ERROR_TABLE)
    if row.protocol_code and not issubclass(row.failure, AgentFailure)
}


def failure_of_call_error(error: CallError) -> Failure:
    """The failure that such an error stands for. Total, as `decode_error` is."""
    number = _NUMBERS.get(error.code, SERVER_ERROR)
    data: object = error.details
    if number == SERVER_ERROR:
        data = ServerErrorData(error.code, error.retryable, error.details)
    raw = UNSET if isinstance(data, UnsetType) else Raw(_encode(data))
    return decode_error(_encode(ErrorObject(number, error.message, raw)), a2a=False)[1]
