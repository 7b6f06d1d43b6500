"""The context of a request: what a handler knows and can do besides its params."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar, final, overload

import msgspec

from ...awaited import refuses_bool
from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, InvalidParams
from ...errors.nearest import nearest_hint

if TYPE_CHECKING:
    from ..documents import Documents
    from .identity import Identity
    from .request import ClientInfo, ContextBackend, LogLevel, Request, Sending


class Stopped(BaseException):
    """Raised by `Context.check_cancelled` in a worker thread: the request was cancelled or timed out.

    The request has been answered already. Not an `Exception`, so that `except Exception` in a handler lets it pass.
    """


class CallFailed(Exception):
    """A call to another operation failed with no error that the operation declares. `failure` is the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(_told(failure))
        self.failure = failure


def _told(failure: Failure) -> str:
    """Describe a failure for the author of the calling handler: declared names, and nothing that was sent."""
    if isinstance(failure, InvalidParams):
        return f"InvalidParams: {failure.param}: expected {failure.expected}, received {failure.received}"
    return type(failure).__name__


class ClientRefused(Exception):
    """The client answered a request of the daemon with an error. `code` and `message` are the client's."""

    def __init__(self, code: int, message: str, failure: Failure) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.failure = failure


@final
class NothingSent:
    """Awaiting it returns at once."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield


NOTHING_SENT: Final = NothingSent()


T = TypeVar("T")

LAST_EVENT_ID: Final = "last-event-id"
"""The service parameter with the number of the last event that a caller has; by HTTP a header."""

MOUNT_DEPTH: Final = "mount-depth"
"""The service parameter that says how many mounts a call has come through; by HTTP a header. It travels with inner calls: a
daemon that mounts itself would have no end otherwise."""

LONGEST_NUMBER: Final = 18
"""Digits of such a number."""


def last_event_id(service_params: Mapping[str, str]) -> int | None:
    """The number of the last event that a caller has; None where it says none. Raises `FailureError` for what is no number."""
    text = service_params.get(LAST_EVENT_ID)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER):
        raise FailureError(InvalidParams("Last-Event-ID", "integer >= 0", "string"))
    return int(text)


_ELSEWHERE: Final = {
    **{level: f'write ctx.log("{level}", …)' for level in ("debug", "info", "warning", "error")},
    "report_progress": "write ctx.progress(…)",
    "elicit": 'the user is asked by a param, `Annotated[bool, mcp.Ask("Really?")]`',
    "read_resource": "write ctx.call(…), and name the operation in uses",
    "workspace": "the open documents are ctx.documents, and the folders ctx.documents.folders",
}
"""Names of other libraries, and what stands here for them."""


class Context(msgspec.Struct, eq=False):
    """The handler's view of its request, its client, and the daemon's services.

    Members that belong to the request raise `RuntimeError` once the handler has returned: progress, log messages, calls of other
    operations, the time left, cancellation. Members that belong to the client go on working: `notify`, `request`,
    `resource_updated`, `documents`, `client`. Work that outlives a request runs in a lifespan of its service.

    In an async handler cancellation arrives as the event loop's own exception. A `def` handler runs in a worker thread, which
    can't be interrupted: it looks at `cancelled`, or calls `check_cancelled()` between its steps.
    """

    _is_context: ClassVar[bool] = True

    _request: Request
    _token: str | int | None | msgspec.UnsetType = msgspec.UNSET
    _shown: bool = False
    _returned: bool = False
    """Set by what runs the handler."""

    __repr__ = object.__repr__

    if not TYPE_CHECKING:  # checkers know what there is

        def __getattr__(self, name: str) -> NoReturn:
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            hint = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else nearest_hint(name, known)
            raise AttributeError(f"a context has no {name}{hint}")

    def _require_running(self, ability: str) -> None:
        if self._returned:
            raise RuntimeError(
                f"ctx.{ability} ends with the request, and the handler of {self._request.spec.name} has returned;"
                " work in the background belongs in Service(lifespan=…)"
            )

    @property
    def operation(self) -> str:
        """The operation's name."""
        return self._request.spec.name

    @property
    def identity(self) -> Identity | None:
        """The caller; None without accepted credentials, which only open operations allow.

        In a call from another operation it is the service of that operation, with the service's authority as scopes. The
        identity of the first caller is not passed on.
        """
        request = self._request
        return request.identity or request.context_backend.identify(request.metadata)

    @property
    def client(self) -> ClientInfo:
        """The name, version and capabilities that the client sent in `initialize`. Empty if it sent none."""
        return self._request.context_backend.client

    @property
    def documents(self) -> Documents:
        """The documents that are open in the editor, by URI, as of the last message read. Empty for clients that speak no LSP."""
        return self._request.context_backend.documents

    @property
    def url(self) -> str:
        """The address at which an HTTP client reached the daemon, to make links to it; empty over stdio."""
        return self._request.context_backend.url

    @property
    def state(self) -> Any:
        """The value that the service's `lifespan` yielded; None without one."""
        return self._request.context_backend.process.state_of(self._request.spec.namespace)

    @property
    def credentials(self) -> Mapping[str, str]:
        """Credentials for outbound calls, by the names that the service declares. The logs scrub their values."""
        return self._request.context_backend.process.credentials_of(self._request.spec.namespace)

    @property
    def request_id(self) -> str | None:
        """The request's id as JSON text, as it was sent; None for a notification."""
        return None if self._request.id is None else self._request.id.decode()

    @property
    def service_params(self) -> Mapping[str, str]:
        """The request's `serviceParams`, keys in lower case. May hold credentials: don't log them."""
        return MappingProxyType(self._request.metadata)

    @property
    def last_event_id(self) -> int | None:
        """The number of the last event that the caller of a subscription already has; None if it has none.

        The caller wants the events after it. Raises `FailureError`, which the caller is told, for anything but a number of at
        most 18 digits.
        """
        return last_event_id(self._request.metadata)

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline, never below 0; None without a deadline."""
        self._require_running("time_left")
        deadline = self._request.deadline
        return None if deadline is None else max(0.0, deadline - monotonic())

    @property
    def ended_by(self) -> Failure | None:
        """The reason why the request was answered before its handler returned; None while its result is still wanted."""
        return self._ended_by("ended_by")

    @property
    def cancelled(self) -> bool:
        """Whether the result is no longer wanted: the request was cancelled or timed out, or the daemon shuts down."""
        return self._ended_by("cancelled") is not None

    def check_cancelled(self) -> None:
        """Raise `Stopped` if the result is no longer wanted. For worker threads. Cheap enough for any loop."""
        if self._ended_by("check_cancelled") is not None:
            raise Stopped

    def wait_cancelled(self, seconds: float) -> bool:
        """Wait in a worker thread for at most `seconds`. Returns True as soon as the request is cancelled, else False.

        Raises `RuntimeError` in inline and async handlers, where it would block the event loop.
        """
        request = self._request
        if request.spec.mode == "inline":
            raise RuntimeError("an inline handler must not wait")
        self._ended_by("wait_cancelled")
        if request.spec.mode != "thread":
            raise RuntimeError(
                "wait_cancelled blocks the event loop; in a coroutine await anyio.sleep, which is cancelled"
            )
        return request.stop_event().wait(seconds)

    def _ended_by(self, ability: str) -> Failure | None:
        ended_by = self._request.ended_by
        if ended_by is None:
            self._require_running(ability)
        return ended_by

    def hold_memory(self, size: int) -> None:
        """Add `size` bytes that a coroutine keeps to the daemon's memory budget. A negative `size` gives bytes back.

        Raises `FailureError(Overloaded)`, and adds nothing, if the budget has no room.
        """
        self._request.context_backend.process.hold_memory(size)

    def notify(self, method: str, params: object = None) -> Sending:
        """Send the client a notification. `params` is anything that encodes to a JSON object or array.

        In an async or inline handler, `await` waits until the client keeps up, and nothing is lost. Without `await`, a
        notification is dropped while 4 MiB of notifications are unread or the memory budget is used up, and the log says so
        (`notification.dropped`). In a worker thread the call itself waits, and nothing is lost.
        """
        return self._request.context_backend.notify(method, {} if params is None else params)

    def progress(self, value: object) -> Sending:
        """Tell the caller how far the work is: `$/progress {token, value}`, or the message of the client's dialect.

        Does nothing if the caller did not ask for progress. Waits as `notify` does.
        """
        self._require_running("progress")
        token = self.progress_token
        if token is None:
            return NOTHING_SENT
        return self._request.context_backend.progress(token, value) or NOTHING_SENT

    def log(self, level: LogLevel, data: object) -> Sending:
        """Send the client a log message: a text, or any value that JSON holds. It does not go to the daemon's own log.

        Does nothing if the client's dialect has no such message, or if the client did not ask for this level. Waits as
        `notify` does.
        """
        self._require_running("log")
        return self._request.context_backend.log(self._request, level, data) or NOTHING_SENT

    def resource_updated(self, uri: str) -> Sending:
        """Tell the clients that subscribed to it that a resource has changed, also those of other daemons on the store. Waits for
        this client as `notify` does."""
        return self._request.context_backend.resource_updated(uri) or NOTHING_SENT

    @property
    def progress_token(self) -> str | int | None:
        """The token that the caller sent to be told of progress; None if it sent none."""
        self._require_running("progress_token")
        if self._token is msgspec.UNSET:
            self._token = self._request.context_backend.progress_token(self._request)
        return self._token

    @overload
    async def call(self, name: str, params: object = None, *, type: type[T], continue_running: bool = False) -> T: ...

    @overload
    async def call(
        self, name: str, params: object = None, *, type: Any = Any, continue_running: bool = False
    ) -> Any: ...

    @refuses_bool
    async def call(self, name: str, params: object = None, *, type: Any = Any, continue_running: bool = False) -> Any:
        """Call another operation, which the service declares in `uses`, and return its result as `type`.

        The call has the scopes in the service's `authority`, not those of the caller, and no metadata. Cancelling it, or the
        request that makes it, cancels the operation. With `continue_running` the operation goes on instead, unobserved.

        Raises the operation's declared errors, `CallFailed` if the call fails otherwise, and `msgspec.ValidationError` for a
        result of another type.
        """
        return self._decode(await self._call_other(name, params, continue_running), type)

    @overload
    def call_blocking(
        self, name: str, params: object = None, *, type: type[T], continue_running: bool = False
    ) -> T: ...

    @overload
    def call_blocking(
        self, name: str, params: object = None, *, type: Any = Any, continue_running: bool = False
    ) -> Any: ...

    def call_blocking(
        self, name: str, params: object = None, *, type: Any = Any, continue_running: bool = False
    ) -> Any:
        """Call another operation as `call` does, in a worker thread. Raises `Stopped` if the request ends meanwhile."""
        return self._decode(
            self._request.context_backend.process.run_from_thread(
                self._request, lambda: self._call_other(name, params, continue_running)
            ),
            type,
        )

    @overload
    async def request(self, method: str, params: object = None, *, type: type[T], timeout: float = 30.0) -> T: ...

    @overload
    async def request(self, method: str, params: object = None, *, type: Any = Any, timeout: float = 30.0) -> Any: ...

    @refuses_bool
    async def request(self, method: str, params: object = None, *, type: Any = Any, timeout: float = 30.0) -> Any:
        """Send the client a request and return its result as `type`. Waits at most `timeout` seconds.

        In an operation that runs as a task, the client gets the request when it asks for the task, and the answer is stored.

        Raises `ClientRefused` for an error of the client (in MCP UNAVAILABLE once the input has ended), `TimeoutError`, and
        `msgspec.ValidationError` for a result of another type.
        """
        return self._decode(
            await self._request.context_backend.ask(method, {} if params is None else params, timeout), type
        )

    @overload
    def request_blocking(self, method: str, params: object = None, *, type: type[T], timeout: float = 30.0) -> T: ...

    @overload
    def request_blocking(
        self, method: str, params: object = None, *, type: Any = Any, timeout: float = 30.0
    ) -> Any: ...

    def request_blocking(self, method: str, params: object = None, *, type: Any = Any, timeout: float = 30.0) -> Any:
        """Send the client a request as `request` does, in a worker thread. Raises `Stopped` if the request ends meanwhile."""
        asked = {} if params is None else params
        return self._decode(
            self._request.context_backend.process.run_from_thread(
                None if self._returned else self._request,
                lambda: self._request.context_backend.ask(method, asked, timeout),
            ),
            type,
        )

    def _call_other(self, name: str, params: object, continue_running: bool) -> Awaitable[bytes]:
        self._require_running("call")
        asked = {} if params is None else params
        process = self._request.context_backend.process
        return process.call(self._request, name, asked, continue_running=continue_running)

    @staticmethod
    def _decode(result: bytes, type: Any) -> Any:
        return decoder_for(type)(result)


def context_backend_of(context: Context) -> ContextBackend:
    """Return the backend of a context, for a call that runs within its request."""
    return context._request.context_backend


def name_task(context: Context, task_id: str | None, *, diagnosed: bool = False) -> None:
    """Have the log name this agent's task beside the call. `diagnosed` says that the log has why the task failed."""
    context._request.task = task_id
    context._request.diagnosed = diagnosed


def is_answered(context: Context) -> bool:
    """Whether the request has its answer, or is about to."""
    return context._returned or context.cancelled


@contextmanager
def shown_progress(context: Context, own: str | None, cancel: Callable[[], None]) -> Iterator[str | int | None]:
    """The token of a progress that is shown during the block: that of the caller for the first one, unless another request
    has the same, else `own`. `cancel()` is called when the client cancels it. On the loop.
    """
    cancels = context._request.context_backend.progress_cancels
    token = own if context._returned else context.progress_token
    if context._shown or token is None or token in cancels:
        token = own
    context._shown = True
    if token is not None:
        cancels[token] = cancel
    try:
        yield token
    finally:
        if token is not None:
            del cancels[token]
