"""Turns the member `error` of a reply into the exception that the caller gets. Never raises it."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from ..errors import failures
from ..errors.decoders import decoder_for
from ..errors.wire import decode_error, encode_error
from . import errors as exceptions
from .errors import ClientError, DeclaredErrors, InvalidReply, OperationFailed, RemoteError, decode_json

ERROR_CLASSES: Final[dict[type, type[RemoteError]]] = {
    failures.ParseFailure: exceptions.ParseFailed,
    failures.InvalidRequest: exceptions.InvalidRequest,
    failures.OperationTypeMismatch: exceptions.OperationTypeMismatch,
    failures.MethodNotFound: exceptions.MethodNotFound,
    failures.InvalidParams: exceptions.InvalidParams,
    failures.Internal: exceptions.InternalError,
    failures.DomainFailure: exceptions.OperationFailed,
    failures.AuthenticationRequired: exceptions.AuthenticationRequired,
    failures.InsufficientPermissions: exceptions.InsufficientPermissions,
    failures.TimedOut: exceptions.OperationTimedOut,
    failures.Overloaded: exceptions.Overloaded,
    failures.Unavailable: exceptions.Unavailable,
    failures.Cancelled: exceptions.RequestCancelled,
    failures.TaskNotFound: exceptions.TaskNotFound,
    failures.TaskNotCancelable: exceptions.TaskNotCancelable,
    failures.PushNotificationNotSupported: exceptions.PushNotificationNotSupported,
    failures.UnsupportedOperation: exceptions.UnsupportedOperation,
    failures.ContentTypeNotSupported: exceptions.ContentTypeNotSupported,
    failures.InvalidAgentResponse: exceptions.InvalidAgentResponse,
    failures.ExtendedAgentCardNotConfigured: exceptions.ExtendedAgentCardNotConfigured,
    failures.ExtensionSupportRequired: exceptions.ExtensionSupportRequired,
    failures.VersionNotSupported: exceptions.VersionNotSupported,
}


def is_agent_method(method: str) -> bool:
    """Whether this is a method of A2A, whose errors have numbers that mean something else elsewhere."""
    from ..a2a.methods import METHODS  # late: only errors need it

    return method in METHODS


_TYPE_MISMATCH: Final = encode_error(failures.OperationTypeMismatch())
"""The daemon's own error for a wrong operation type. Used when an event answers a call, or a result answers a stream."""


def type_mismatch(result: Raw | None = None) -> ClientError:
    """The exception where an event answers a call, or `result`, which the server has given, answers a subscription."""
    mismatch = remote_error(_TYPE_MISMATCH)
    if isinstance(mismatch, exceptions.OperationTypeMismatch):
        mismatch.result = result
    return mismatch


def remote_error(
    raw: bytes | msgspec.Raw, errors: DeclaredErrors = (), *, a2a: bool = True
) -> RemoteError | InvalidReply:
    """The exception for an error's JSON text, whatever the text holds.

    Without `a2a`, the numbers of A2A are the server's own: only data of A2A 1.0 make them A2A's.

    The class in `errors` that declares the error's code decodes the details, tells the HTTP status, and makes the
    exception that the caller gets in place of `OperationFailed`. If the details do not fit it, the result is
    `InvalidReply`, with the error itself as its cause.
    """
    error, failure = decode_error(raw, a2a=a2a)
    if not isinstance(failure, failures.DomainFailure):
        return ERROR_CLASSES[type(failure)](failure, error)
    cls = next((cls for cls in errors if cls.definition.code == failure.code), None)
    if cls is None:
        return OperationFailed(failure, error, details=decode_json(failure.details))
    declared = cls.definition
    failure = msgspec.structs.replace(failure, http_status=declared.http_status)
    exc = OperationFailed(failure, error, details=decode_json(failure.details))
    if not declared.has_details:
        exc.declared = cls()
        return exc
    try:
        exc.details = decoder_for(declared.details)(failure.details or b"{}")
    except msgspec.DecodeError:
        invalid = InvalidReply(f"the details of {failure.code} do not fit their declaration")
        invalid.__cause__ = exc
        return invalid
    exc.declared = cls.from_failure(failure)
    return exc
