"""What a caller of another process has to reckon with, as exceptions.

    ClientError
    ├── ConnectionFailed             the server did not start, or the connection ended
    ├── RequestTimeout               this side's own deadline passed
    ├── InvalidReply                 what came back is not what the protocol or the declared type says
    ├── StreamOverrun                a stream's consumer fell too far behind
    └── RemoteError                  the server answered with an error; one class per line of `discreet.errors.ERROR_TABLE`
        ├── ParseFailed              PARSE_ERROR
        ├── InvalidRequest           INVALID_REQUEST
        ├── OperationTypeMismatch    INVALID_OPERATION_TYPE
        ├── MethodNotFound           NOT_FOUND
        ├── InvalidParams            INVALID_INPUT
        ├── InternalError            INTERNAL, and every error that is not recognised
        ├── OperationFailed          a declared error of the operation
        ├── AuthenticationRequired   FORBIDDEN
        ├── InsufficientPermissions  FORBIDDEN
        ├── OperationTimedOut        TIMEOUT
        ├── Overloaded               OVERLOADED
        ├── Unavailable              UNAVAILABLE
        ├── RequestCancelled         CANCELLED
        ├── TaskNotFound             TASK_NOT_FOUND
        ├── TaskNotCancelable        TASK_NOT_CANCELABLE
        ├── PushNotificationNotSupported   PUSH_NOTIFICATION_NOT_SUPPORTED
        ├── UnsupportedOperation     UNSUPPORTED_OPERATION
        ├── ContentTypeNotSupported  CONTENT_TYPE_NOT_SUPPORTED
        ├── InvalidAgentResponse     INVALID_AGENT_RESPONSE
        ├── ExtendedAgentCardNotConfigured EXTENDED_AGENT_CARD_NOT_CONFIGURED
        ├── ExtensionSupportRequired EXTENSION_SUPPORT_REQUIRED
        └── VersionNotSupported      VERSION_NOT_SUPPORTED

Codes, texts and retry flags are the table's or the server's; this module states none of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, final

import msgspec

from ..errors import failures as facts
from ..errors.codes import row_of
from ..errors.exceptions import OperationError
from ..errors.wire import ErrorObject, decode_error
from .error_text import json_of, phrase

DeclaredErrors: TypeAlias = Sequence[type[OperationError]]


class Loss(msgspec.Struct, frozen=True):
    """How a connection ended: a phrase for people, and what is known of the process behind it.

    `status` is its exit status (negative: the number of the signal that ended it), `stderr_tail` the last of what it
    wrote to stderr, where that was collected. `gave_up` is true when it was started anew as often as it might be.
    """

    reason: str
    status: int | None = None
    stderr_tail: str = ""
    gave_up: bool = False


class ClientError(Exception):
    """Everything that this package raises for a call that did not end well.

    `retryable` is true when the same call may succeed later. It says nothing of whether the first one had an effect.
    """

    @property
    def retryable(self) -> bool:
        return False


@final
class ConnectionFailed(ClientError):
    """The server could not be started, or the connection ended before the answer.

    `sent` is False when the request certainly never left this process; True when its effect is unknown. `last_seq` is
    the number of the last event of a stream that was cut, 0 when none had come; None for everything else.
    """

    def __init__(self, loss: Loss, *, sent: bool = True, last_seq: int | None = None) -> None:
        super().__init__(loss.reason)
        self.loss = loss
        self.sent = sent
        self.last_seq = last_seq

    @property
    def retryable(self) -> bool:
        return not self.loss.gave_up


@final
class RequestTimeout(ClientError):
    """No answer (of a stream: no event) came within `seconds`. The server was asked to cancel what it was doing.

    `sent` is False when the request certainly never left this process; True when its effect is unknown.
    """

    def __init__(self, method: str, seconds: float, *, sent: bool = True) -> None:
        super().__init__(f"no answer to {method} within {seconds:g} s")
        self.method = method
        self.seconds = seconds
        self.sent = sent

    @property
    def retryable(self) -> bool:
        return True


@final
class InvalidReply(ClientError):
    """The server wrote what is no reply, or a reply that does not fit the type which the caller gave."""


@final
class StreamOverrun(ClientError):
    """More events waited for this stream's consumer than may be held while others needed the connection.

    Every event before the loss was delivered; the server was asked to end the stream.
    """


class RemoteError(ClientError):
    """The server's answer was an error.

    `failure` holds its facts as a struct of `discreet.errors`, typed in each subclass (`exc.failure.param`).
    """

    failure: facts.Failure

    def __init__(self, failure: facts.Failure, error: ErrorObject) -> None:
        super().__init__(failure, error)
        self.failure = failure
        self.error = error

    @property
    def code(self) -> str:
        """The stable word: `INVALID_INPUT`, `FILE_NOT_FOUND`, …; `INTERNAL` for what is not recognised."""
        return row_of(self.failure).protocol_code

    @property
    def number(self) -> int:
        """The number that came, as in −32602; 0 where none did."""
        return self.error.code

    @property
    def message(self) -> str:
        """The text that came, else the table's."""
        return self.error.message or row_of(self.failure).message

    @property
    def data(self) -> Any:  # JSON
        """The member `data` as it came, for what the other attributes don't say; None where there is none.

        Of an error that is not of JSON-RPC's shape (`"error": "no"`) it is all that came.
        """
        return json_of(self.error.data)

    @property
    def retryable(self) -> bool:
        return row_of(self.failure).retryable

    def __str__(self) -> str:
        known = phrase(self.failure, self.error)
        return f"{self.code}: {self.message} ({known})" if known else f"{self.code}: {self.message}"


@final
class ParseFailed(RemoteError):
    """The server could not read this side's JSON."""

    failure: facts.ParseFailure


@final
class InvalidRequest(RemoteError):
    """The server refused the envelope, its size or its id."""

    failure: facts.InvalidRequest


@final
class OperationTypeMismatch(RemoteError):
    """`call` was used for a subscription, or `subscribe` for something else.

    `result` is the JSON text of what came where a server ran what is no subscription all the same; else None.
    """

    failure: facts.OperationTypeMismatch
    result: msgspec.Raw | None = None


@final
class MethodNotFound(RemoteError):
    """No such method, or none that this caller may see."""

    failure: facts.MethodNotFound


@final
class InvalidParams(RemoteError):
    """Wrong, missing or surplus params; `failure` names the first fault."""

    failure: facts.InvalidParams


@final
class InternalError(RemoteError):
    """A fault of the server's own, or an error that this client does not know: `number` and `message` tell."""

    failure: facts.Internal


@final
class OperationFailed(RemoteError):
    """A declared error of the operation.

    `details` is an instance of the declared class's details struct when the caller listed that class in `errors=`,
    else plain JSON values, and None where there are none.
    """

    failure: facts.DomainFailure

    def __init__(self, failure: facts.DomainFailure, error: ErrorObject, *, details: Any = None) -> None:  # JSON
        super().__init__(failure, error)
        self.details = details


@final
class AuthenticationRequired(RemoteError):
    """The operation needs an identity and the call carried none; `failure` says how to show one."""

    failure: facts.AuthenticationRequired


@final
class InsufficientPermissions(RemoteError):
    """The caller's scopes do not suffice."""

    failure: facts.InsufficientPermissions


@final
class OperationTimedOut(RemoteError):
    """The operation's deadline passed on the server."""

    failure: facts.TimedOut


@final
class Overloaded(RemoteError):
    """A limit of the operation is reached; `failure.retry_after_ms` says when to come again, where the server did."""

    failure: facts.Overloaded


@final
class Unavailable(RemoteError):
    """The server is shutting down."""

    failure: facts.Unavailable


@final
class RequestCancelled(RemoteError):
    """The request was cancelled on the server, not by this caller."""

    failure: facts.Cancelled


@final
class TaskNotFound(RemoteError):
    """No such task, or none that this caller may see."""

    failure: facts.TaskNotFound


@final
class TaskNotCancelable(RemoteError):
    """The task has ended, or its agent does not let go of it; `failure.current_state` tells."""

    failure: facts.TaskNotCancelable


@final
class PushNotificationNotSupported(RemoteError):
    """The agent sends no push notifications."""

    failure: facts.PushNotificationNotSupported


@final
class UnsupportedOperation(RemoteError):
    """The agent, or the task in its state, does not support what was asked."""

    failure: facts.UnsupportedOperation


@final
class ContentTypeNotSupported(RemoteError):
    """A part of the message is of a media type that the agent does not take."""

    failure: facts.ContentTypeNotSupported


@final
class InvalidAgentResponse(RemoteError):
    """The agent's own code answered with something that the protocol does not allow."""

    failure: facts.InvalidAgentResponse


@final
class ExtendedAgentCardNotConfigured(RemoteError):
    """The agent announces an extended card and has none."""

    failure: facts.ExtendedAgentCardNotConfigured


@final
class ExtensionSupportRequired(RemoteError):
    """The agent requires an extension; `failure.accepted` names it."""

    failure: facts.ExtensionSupportRequired


@final
class VersionNotSupported(RemoteError):
    """The method does not speak that version of the protocol; `failure.accepted` are those that it does."""

    failure: facts.VersionNotSupported


CLASSES: dict[type, type[RemoteError]] = {
    facts.ParseFailure: ParseFailed,
    facts.InvalidRequest: InvalidRequest,
    facts.OperationTypeMismatch: OperationTypeMismatch,
    facts.MethodNotFound: MethodNotFound,
    facts.InvalidParams: InvalidParams,
    facts.Internal: InternalError,
    facts.DomainFailure: OperationFailed,
    facts.AuthenticationRequired: AuthenticationRequired,
    facts.InsufficientPermissions: InsufficientPermissions,
    facts.TimedOut: OperationTimedOut,
    facts.Overloaded: Overloaded,
    facts.Unavailable: Unavailable,
    facts.Cancelled: RequestCancelled,
    facts.TaskNotFound: TaskNotFound,
    facts.TaskNotCancelable: TaskNotCancelable,
    facts.PushNotificationNotSupported: PushNotificationNotSupported,
    facts.UnsupportedOperation: UnsupportedOperation,
    facts.ContentTypeNotSupported: ContentTypeNotSupported,
    facts.InvalidAgentResponse: InvalidAgentResponse,
    facts.ExtendedAgentCardNotConfigured: ExtendedAgentCardNotConfigured,
    facts.ExtensionSupportRequired: ExtensionSupportRequired,
    facts.VersionNotSupported: VersionNotSupported,
}


def remote_error(
    raw: bytes | msgspec.Raw, errors: DeclaredErrors = (), *, a2a: bool = True
) -> RemoteError | InvalidReply:
    """The exception for a reply's member `error`. Total. Without `a2a`, the numbers of A2A's errors mean nothing.

    It is `InvalidReply`, caused by the error itself, when the details do not fit the class in `errors` that declares
    their code.
    """
    error, failure = decode_error(raw)
    if isinstance(failure, facts.AgentFailure) and not a2a:
        failure = facts.Internal()
    if not isinstance(failure, facts.DomainFailure):
        return CLASSES[type(failure)](failure, error)
    plain = OperationFailed(failure, error, details=json_of(failure.details))
    declared = next((cls.definition for cls in errors if cls.definition.code == failure.code), None)
    if declared is None or not declared.has_details:
        return plain
    try:
        plain.details = msgspec.json.decode(failure.details or b"{}", type=declared.details)
    except msgspec.DecodeError:
        unfit = InvalidReply(f"the details of {failure.code} do not fit their declaration")
        unfit.__cause__ = plain
        return unfit
    return plain
