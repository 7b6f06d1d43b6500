"""The exceptions that calls raise.

    ClientError
    ├── ConnectionFailed             the server did not start, or the connection ended
    ├── RequestTimeout               this side's own deadline passed
    ├── InvalidReply                 the reply breaks the protocol, or does not fit the declared type
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

Codes, texts and retry flags come from the table or the server. This module never repeats them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import Raw, UnsetType

from ..errors import failures
from ..errors.codes import row_of
from ..errors.decoders import decoder_for
from ..errors.exceptions import OperationError
from ..errors.nearest import nearest_hint
from ..errors.printable import cut, printable
from ..errors.wire import NO_CODE, ErrorObject, decode_error, encode_error, error_object

SHOWN_CHARACTERS: Final = 1000
"""How much of each text of a server's error is shown; `RemoteError` has all of it."""


def describe(failure: failures.Failure, error: ErrorObject) -> str:
    """The facts of one of the daemon's errors; the number and the data of any other. Empty when there is nothing to say."""
    version: failures.A2AVersion | None = "1.0" if isinstance(decode_json(error.data), list) else None
    own = error_object(failure, version=version)
    if own.code == error.code and decode_json(own.data) == decode_json(error.data):
        return cut(_facts(failure), SHOWN_CHARACTERS)
    number = "" if error.code in (row_of(failure).code, NO_CODE) else str(error.code)
    data = "" if isinstance(error.data, UnsetType) else bytes(error.data).decode(errors="replace")
    return ", ".join(filter(None, (number, cut(data, SHOWN_CHARACTERS))))


def shown(line: str) -> str:
    """A line that a server wrote, for a message of one's own: without secrets, on one line, and not too long."""
    from ..errors.redaction import scrub  # late: only failures need it

    return printable(cut(scrub(line), SHOWN_CHARACTERS))


def decode_json(raw: Raw | UnsetType | None) -> Any:  # JSON
    """The value of a JSON text; None when there is no text, or no value can be read from it."""
    try:
        return None if raw is None or isinstance(raw, UnsetType) else msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _facts(failure: failures.Failure) -> str:
    match failure:
        case failures.ParseFailure(reason) | failures.InvalidRequest(reason):
            return reason
        case failures.InvalidParams(param, expected, received, accepted):
            listed = [
                value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in accepted or ()
            ]
            wanted = f"{expected} {', '.join(listed)}" if listed else expected
            if received == "unknown field":
                return f"{param}: unknown field; expected {wanted}{nearest_hint(param.rpartition('.')[2], listed)}"
            return f"{param}: expected {wanted}, received {received}"
        case failures.DomainFailure(details=details) if details is not None:
            return bytes(details).decode(errors="replace")
        case failures.Internal(str(code)):
            return code
        case failures.Overloaded(int(after)) | failures.Unavailable(int(after)):
            return f"retry after {after} ms"
        case failures.AgentFailure():
            at = (failure.task_id, failure.current_state, failure.completed_at)
            taken = f"accepted: {', '.join(failure.accepted)}" if failure.accepted else ""
            return ", ".join(filter(None, (*at, failure.reason, failure.suggestion, taken)))
        case _:  # the others have no facts
            return ""


DeclaredErrors: TypeAlias = Sequence[type[OperationError]]


class ConnectionLoss(msgspec.Struct, frozen=True):
    """The reason why a connection ended: a phrase for people, and the facts about the server's process.

    `status` is the process's exit status; a negative one is the number of the signal that ended it. `stderr_tail` is the end
    of its stderr, if `connect` collected it. `gave_up` is true when the `RestartPolicy` allows no further restart.
    """

    reason: str
    status: int | None = None
    stderr_tail: str = ""
    gave_up: bool = False


class ClientError(Exception):
    """The base class of the exceptions that calls raise.

    `retryable` is true when the same call may succeed later. It does not say whether the first call had an effect.
    """

    @property
    def retryable(self) -> bool:
        return False


@final
class ConnectionFailed(ClientError):
    """The server could not be started, or the connection ended before the answer.

    `sent` is False if the request certainly never left this process; True if its effect is unknown. `last_seq` is for streams:
    the number of the last event before the loss, counted from 1, 0 if there was none. It is None for calls.
    """

    def __init__(self, loss: ConnectionLoss, *, sent: bool = True, last_seq: int | None = None) -> None:
        last = loss.stderr_tail.strip().rpartition("\n")[2]
        super().__init__(f"{loss.reason}; its stderr ends: {shown(last)}" if last else loss.reason)
        self.loss = loss
        self.sent = sent
        self.last_seq = last_seq

    @property
    def retryable(self) -> bool:
        return not self.loss.gave_up


@final
class RequestTimeout(ClientError):
    """No answer came within `seconds`; in a stream, no event. The server was asked to cancel the request.

    `sent` is False if the request certainly never left this process; True if its effect is unknown.
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
    """The server's reply breaks the protocol, or does not fit the type that the caller gave."""


@final
class StreamOverrun(ClientError):
    """The consumer of this stream fell too far behind: more bytes waited for it than may be buffered while others need the
    connection.

    Every event before the error was delivered. The server was asked to cancel the stream.
    """


class RemoteError(ClientError):
    """The server answered with an error.

    `failure` holds its facts as a struct of `discreet.errors`, typed in each subclass (`exc.failure.param`).
    """

    failure: failures.Failure
    retry_after: float | None = None
    """Seconds until the request may be made again, where the header `Retry-After` of an HTTP response said so."""
    method: str = ""
    """The method that was called; empty for an error that names no request."""

    def __init__(self, failure: failures.Failure, error: ErrorObject) -> None:
        super().__init__(failure, error)
        self.failure = failure
        self.error = error

    @property
    def code(self) -> str:
        """The stable code: `INVALID_INPUT`, `FILE_NOT_FOUND`, …; `INTERNAL` for an error that is not recognised."""
        return row_of(self.failure).protocol_code

    @property
    def number(self) -> int:
        """The error's JSON-RPC number, such as −32602; 0 if the reply has none."""
        return self.error.code

    @property
    def message(self) -> str:
        """The error's message, or the table's message if the reply has none."""
        return self.error.message or row_of(self.failure).message

    @property
    def data(self) -> Any:  # JSON
        """The error's member `data`, decoded; None if the reply has none.

        If the error is no JSON-RPC error object (`"error": "no"`), the whole value.
        """
        return decode_json(self.error.data)

    @property
    def retryable(self) -> bool:
        return row_of(self.failure).retryable

    def __str__(self) -> str:
        facts = describe(self.failure, self.error)
        text = f"{cut(self.code, SHOWN_CHARACTERS)}: {cut(self.message, SHOWN_CHARACTERS)}"
        of_method = f"{self.method}: " if self.method else ""
        return f"{of_method}{text} ({facts})" if facts else f"{of_method}{text}"


@final
class ParseFailed(RemoteError):
    """The server could not read this side's JSON."""

    failure: failures.ParseFailure


@final
class InvalidRequest(RemoteError):
    """The server refused the envelope, its size or its id."""

    failure: failures.InvalidRequest


@final
class OperationTypeMismatch(RemoteError):
    """`call` was used for a subscription, or `subscribe` for something else.

    `result` is the JSON text of the result if the server ran the operation nevertheless, else None.
    """

    failure: failures.OperationTypeMismatch
    result: msgspec.Raw | None = None
    remedy: str = ""
    """The call to write instead."""

    def __str__(self) -> str:
        return f"{super().__str__()}{self.remedy}"


@final
class MethodNotFound(RemoteError):
    """There is no such method, or this caller may not see it."""

    failure: failures.MethodNotFound


@final
class InvalidParams(RemoteError):
    """Wrong, missing or surplus params; `failure` names the first fault."""

    failure: failures.InvalidParams


@final
class InternalError(RemoteError):
    """A fault in the server, or an error that this client does not know; `number` and `message` say which."""

    failure: failures.Internal


@final
class OperationFailed(RemoteError):
    """A declared error of the operation whose class is not in `errors=`. If it is, that class is raised, with this as its
    `__cause__`.

    `details` holds plain JSON values, or the details struct of that class; None if the error has no details.
    `failure.http_status` is the one that the class declares. It is not sent, so without the class it is 500. `declared` is
    the error as its class, None without the class.
    """

    failure: failures.DomainFailure
    declared: OperationError | None = None

    def __init__(self, failure: failures.DomainFailure, error: ErrorObject, *, details: Any = None) -> None:  # JSON
        super().__init__(failure, error)
        self.details = details


@final
class AuthenticationRequired(RemoteError):
    """The operation needs an identity and the call carried none; `failure` names the accepted schemes."""

    failure: failures.AuthenticationRequired


@final
class InsufficientPermissions(RemoteError):
    """The caller lacks scopes that the operation needs."""

    failure: failures.InsufficientPermissions


@final
class OperationTimedOut(RemoteError):
    """The operation's deadline passed on the server."""

    failure: failures.TimedOut


@final
class Overloaded(RemoteError):
    """A limit of the operation is reached. `failure.retry_after_ms` says when to retry, if the server said so."""

    failure: failures.Overloaded


@final
class Unavailable(RemoteError):
    """The server is shutting down, or its store or an upstream server can't be reached. `failure.retry_after_ms` says when to
    retry, if the server said so."""

    failure: failures.Unavailable


@final
class RequestCancelled(RemoteError):
    """The request was cancelled on the server, not by this caller."""

    failure: failures.Cancelled


@final
class TaskNotFound(RemoteError):
    """There is no such task, or this caller may not see it."""

    failure: failures.TaskNotFound


@final
class TaskNotCancelable(RemoteError):
    """The task has ended, or its agent refuses to cancel it; `failure.current_state` tells these apart."""

    failure: failures.TaskNotCancelable


@final
class PushNotificationNotSupported(RemoteError):
    """The agent sends no push notifications."""

    failure: failures.PushNotificationNotSupported


@final
class UnsupportedOperation(RemoteError):
    """The agent, or the task in its current state, does not support the request."""

    failure: failures.UnsupportedOperation


@final
class ContentTypeNotSupported(RemoteError):
    """A part of the message has a media type that the agent does not accept."""

    failure: failures.ContentTypeNotSupported


@final
class InvalidAgentResponse(RemoteError):
    """The agent's code produced a response that the protocol does not allow."""

    failure: failures.InvalidAgentResponse


@final
class ExtendedAgentCardNotConfigured(RemoteError):
    """The agent announces an extended card but has none."""

    failure: failures.ExtendedAgentCardNotConfigured


@final
class ExtensionSupportRequired(RemoteError):
    """The agent requires an extension; `failure.accepted` names it."""

    failure: failures.ExtensionSupportRequired


@final
class VersionNotSupported(RemoteError):
    """The method does not support that version of the protocol; `failure.accepted` lists the supported ones."""

    failure: failures.VersionNotSupported


ERROR_CLASSES: Final[dict[type, type[RemoteError]]] = {
    getattr(failures, cls.__annotations__["failure"].removeprefix("failures.")): cls
    for cls in RemoteError.__subclasses__()
}
"""The class for each failure, as the classes above say it."""


def is_agent_method(method: str) -> bool:
    """Whether this is a method of A2A, whose errors have numbers that mean something else elsewhere."""
    from ..a2a.methods import METHODS  # late: only errors need it

    return method in METHODS


_TYPE_MISMATCH: Final = encode_error(failures.OperationTypeMismatch())
"""The daemon's own error for a wrong operation type. Used when an event answers a call, or a result answers a stream."""


def type_mismatch(result: Raw | None = None) -> ClientError:
    """The exception where an event answers a call, or `result`, which the server has given, answers a subscription."""
    mismatch = remote_error(_TYPE_MISMATCH)
    if isinstance(mismatch, OperationTypeMismatch):
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
