"""A stream of events as an asynchronous iterator. Leaving it ends the subscription.

The request goes through `services/subscribe`, which refuses an operation of another kind before it runs. To a server that
does not have this method the request goes once more, as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar, final

import anyio
import msgspec
from msgspec import Raw
from msgspec.structs import replace

from .. import call_tracing
from ..errors.decoders import decoder_for
from ..errors.wire import encode_error
from .connection.connector import ClientConnection, OwnLoop
from .connection.error_replies import remote_error
from .connection.pending import PendingStream
from .connection.trace_headers import TracePlace, with_trace
from .errors import (
    ClientError,
    DeclaredErrors,
    InvalidParams,
    InvalidReply,
    MethodNotFound,
    OperationFailed,
    OperationTypeMismatch,
    RemoteError,
    RequestTimeout,
)
from .messages import DECODE_ERRORS, STREAM_WINDOW, OutgoingRequest, outgoing_request
from .validation import encode_params

if TYPE_CHECKING:
    from ..call_tracing import CallSpan

T = TypeVar("T")

SUBSCRIBE: Final = "services/subscribe"

ASYNC_FOR: Final = "write `async for event in …:`"

_INPUT: Final = "input"
"""The param of `services/subscribe` that holds the operation's own params. Its errors name them with this prefix."""


def prepare_type(kind: Any) -> None:
    """Raises `TypeError` for what a result can't be decoded into, before anything is sent."""
    decoder_for(kind)


@contextmanager
def as_declared() -> Iterator[None]:
    """Raise a declared error as its class, where the caller has listed it."""
    try:
        yield
    except OperationFailed as exc:
        if exc.declared is None:
            raise
        exc.declared.add_note(f"raised by {exc.method}")
        raise exc.declared from exc


def name_method(error: RemoteError, method: str, *, other: str) -> None:
    """Tell an error which method was called. `other` is what had to be used if the operation is of another kind."""
    error.method = method
    if isinstance(error, OperationTypeMismatch):
        error.remedy = f"; {method} is for peer.{other}(…)"


class StreamRequest(msgspec.Struct, frozen=True):
    """The content of a subscription's request. `params` is its JSON text."""

    method: str
    params: Raw | None
    service_params: Mapping[str, str] | None
    errors: DeclaredErrors
    ids: Iterator[int]
    trace: TracePlace | None = None
    window: int | None = None

    def traced(self, headers: Mapping[str, str]) -> StreamRequest:
        """The same, which names the span that it is made for."""
        params, service_params = with_trace(self.params, self.service_params, headers, self.trace)
        text = params if params is None else Raw(encode_params(params))
        return replace(self, params=text, service_params=service_params)

    def checked(self) -> tuple[PendingStream, OutgoingRequest]:
        """The request that is refused for an operation of another kind."""
        named = {"operationId": self.method, _INPUT: self.params}
        return self._numbered(SUBSCRIBE, named)

    def direct(self) -> tuple[PendingStream, OutgoingRequest]:
        """The request to the method itself."""
        return self._numbered(self.method, self.params)

    def _numbered(self, method: str, params: object) -> tuple[PendingStream, OutgoingRequest]:
        window = {} if self.window is None else {STREAM_WINDOW: str(self.window)}
        service_params = {**window, **(self.service_params or {})} or None
        message = outgoing_request(next(self.ids), method, params, service_params)
        return PendingStream(message.id, message.size, self.errors, method=self.method), message


def decode_as(text: Raw, kind: Any, method: str) -> Any:  # Any: the caller's type decides
    """A result or an event, decoded into the caller's type.

    Raises `InvalidReply` when it does not fit; for text that is no UTF-8, whatever the type.
    """
    try:
        if kind is Raw:  # msgspec does not check its encoding
            str(memoryview(text), "utf-8")
        return decoder_for(kind)(text)
    except UnicodeDecodeError as exc:
        raise InvalidReply(f"the answer to {method} is no UTF-8") from exc
    except DECODE_ERRORS as exc:
        raise InvalidReply(f"the answer to {method} does not fit {getattr(kind, '__name__', kind)}") from exc


@final
class Subscription(AsyncIterator[T], Generic[T]):
    """The events of one subscription, in order and without gaps. One task at a time may take them.

    The first `anext` sends the request, and raises as `Peer.call` does. The iteration ends when the server says that it has
    sent all events. A stream that is cut off raises after the last event that was received, and is not resumed:
    `ConnectionFailed.last_seq` says how many came. By HTTP the events of a task go on after a loss. `RequestTimeout`
    means that no event came within the time-out.

    The subscription ends, and the server gets `$/cancelRequest`, when an `anext` raises or is cancelled, with `aclose`, or at
    the end of `async with`. After a mere `break` it ends when the iterator is garbage-collected and the next event comes.
    """

    def __init__(
        self,
        connector: OwnLoop,
        request: StreamRequest,
        *,
        kind: Any,
        timeout: float | None,
    ) -> None:
        self._connector = connector
        self._connection: ClientConnection | None = None
        self._request = request
        self._span: CallSpan | None = None
        self._stream: PendingStream | None = None
        self._kind = kind
        self._timeout = timeout
        self._closed = False
        self._in_anext = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._closed:
            raise StopAsyncIteration
        if self._in_anext:
            raise RuntimeError("another task waits for this stream's next event")
        self._connector.require()
        self._in_anext = True
        delivered = sent = False
        error: BaseException | None = None
        try:
            with anyio.move_on_after(self._timeout) as scope:
                with as_declared():
                    event = await self._next_named()
                if event is None:
                    raise StopAsyncIteration
                value: T = decode_as(event, self._kind, self._request.method)
                delivered = True
                return value
            error = RequestTimeout(self._request.method, self._timeout or 0.0)
        except StopAsyncIteration:
            raise
        except BaseException as exc:
            error = exc
            raise
        finally:
            self._in_anext = False
            if not delivered:
                sent = self._close(error)
        assert scope.cancelled_caught and self._timeout is not None
        raise RequestTimeout(self._request.method, self._timeout, sent=sent)

    async def _next_named(self) -> Raw | None:
        try:
            return await self._next()
        except RemoteError as exc:
            name_method(exc, self._request.method, other="call")
            raise

    async def _next(self) -> Raw | None:
        if self._connection is not None and self._stream is not None:
            return await self._take(self._connection, self._stream)
        if call_tracing.tracer is not None:
            self._span = call_tracing.tracer.begin(self._request.method)
            self._request = self._request.traced(self._span.headers)
        self._connection = await self._connector.connection()
        if not self._connection.checks_subscriptions:
            return await self._start(self._connection, self._request.direct())
        try:
            return await self._start(self._connection, self._request.checked())
        except InvalidParams as exc:
            raise _of_operation(exc) from None
        except MethodNotFound:  # only the operation itself is known
            return await self._start(self._connection, self._request.direct())

    async def _start(self, connection: ClientConnection, numbered: tuple[PendingStream, OutgoingRequest]) -> Raw | None:
        """Send the request. Returns the first event."""
        self._stream, message = numbered
        await connection.start(self._stream, message)
        return await self._take(connection, self._stream)

    async def _take(self, connection: ClientConnection, stream: PendingStream) -> Raw | None:
        event = await stream.next(connection.resume_reading)
        if self._request.window is not None and event is not None and stream.must_tell(self._request.window):
            connection.tell_taken(stream)
        return event

    def _close(self, error: BaseException | None = None) -> bool:
        self._closed = True
        if self._span is not None:
            self._span.end(error)
        return self._connection is not None and self._stream is not None and self._connection.forget(self._stream)

    async def aclose(self) -> None:
        """End the subscription and drop the events that were not taken. Idempotent. Does not wait for the server."""
        if not self._closed:
            self._close()
        await anyio.lowlevel.checkpoint()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._closed:
            self._close()

    if not TYPE_CHECKING:  # type checkers report these by themselves

        def __await__(self) -> NoReturn:
            raise TypeError(f"not to be awaited: {ASYNC_FOR}")

        def __iter__(self) -> NoReturn:
            raise TypeError(f"not for a plain `for`: {ASYNC_FOR}")

    def __del__(self) -> None:  # may run in any thread, so it only sets a flag
        if self._stream is not None:
            self._stream.abandoned = True
        if self._span is not None:
            self._span.end()


def _of_operation(exc: InvalidParams) -> ClientError:
    """The error with the operation's own name of the param."""
    first, _, rest = exc.failure.param.partition(".")
    if first != _INPUT:
        return exc
    failure = msgspec.structs.replace(exc.failure, param=rest or "$")
    return remote_error(encode_error(failure))
