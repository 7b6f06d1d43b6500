"""A stream of events as an asynchronous iterator. Leaving it ends the subscription.

The request goes through `services/subscribe`, which refuses an operation of another kind before it runs. To a server that
does not have this method the request goes once more, as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar, cast, final

import anyio
import msgspec
from msgspec import Raw

from .. import call_tracing
from ..errors.decoders import decoder_for
from ..errors.wire import encode_error
from .connector import ClientConnection, OwnLoop
from .dialects import TracePlace
from .errors import (
    ClientError,
    InvalidParams,
    InvalidReply,
    MethodNotFound,
    OperationFailed,
    OperationTypeMismatch,
    RemoteError,
    RequestTimeout,
    remote_error,
)
from .messages import DECODE_ERRORS
from .pending import INPUT, PendingStream, Request

if TYPE_CHECKING:
    from ..call_tracing import CallSpan

T = TypeVar("T")
U = TypeVar("U")

_ASYNC_FOR: Final = "write `async for event in …:`"


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
    sent all events. `RequestTimeout` means that no event came within the time-out.

    A stream that is cut off raises after the last event that was received. It is not resumed: `ConnectionFailed.last_seq` says
    how many events came. By HTTP the events of a task are resumed.

    The subscription ends, and the server gets `$/cancelRequest`, when an `anext` raises or is cancelled, with `aclose`, or at
    the end of `async with`. After a mere `break` it ends when the iterator is garbage-collected and the next event comes.
    """

    def __init__(
        self,
        connector: OwnLoop,
        request: Request,
        *,
        ids: Iterator[int],
        trace: TracePlace | None,
        kind: Any,
        timeout: float | None,
    ) -> None:
        self._connector = connector
        self._connection: ClientConnection | None = None
        self._request = request
        self._ids = ids
        self._trace: TracePlace | None = trace
        self._span: CallSpan | None = None
        self._stream: PendingStream | None = None
        self._kind = kind
        self._timeout = timeout
        self._closed = False
        self._in_anext = False
        self._convert: Callable[[Any], T] = lambda event: event

    @property
    def last_event_id(self) -> str | None:
        """The id of the last event that was taken; by HTTP, and only if the server numbers its events."""
        return None if self._stream is None else self._stream.last_event_id

    def mapped(self, convert: Callable[[T], U]) -> Subscription[U]:
        """Return this subscription with `convert` applied to each later event. An exception of `convert` ends the
        subscription."""
        mapped = cast("Subscription[U]", self)
        mapped._convert = convert
        return mapped

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
                value = self._convert(decode_as(event, self._kind, self._request.method))
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
            return await self._stream.next()
        if call_tracing.tracer is not None:
            self._span = call_tracing.tracer.begin(self._request.method)
            self._request = self._request.traced(self._span.headers, self._trace)
        self._connection = await self._connector.connection()
        if not self._connection.checks_subscriptions:
            return await self._start(self._connection, checked=False)
        try:
            return await self._start(self._connection, checked=True)
        except InvalidParams as exc:
            raise _of_operation(exc) from None
        except MethodNotFound:  # only the operation itself is known
            return await self._start(self._connection, checked=False)

    async def _start(self, connection: ClientConnection, *, checked: bool) -> Raw | None:
        """Send the request. Returns the first event."""
        self._stream, message = self._request.stream(next(self._ids), checked=checked)
        await connection.start(self._stream, message)
        return await self._stream.next()

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
            raise TypeError(f"not to be awaited: {_ASYNC_FOR}")

        def __iter__(self) -> NoReturn:
            raise TypeError(f"not for a plain `for`: {_ASYNC_FOR}")

    def __del__(self) -> None:  # may run in any thread, so it only sets a flag
        if self._stream is not None:
            self._stream.abandoned = True
        if self._span is not None:
            self._span.end()


def _of_operation(exc: InvalidParams) -> ClientError:
    """The error with the operation's own name of the param."""
    first, _, rest = exc.failure.param.partition(".")
    if first != INPUT:
        return exc
    failure = msgspec.structs.replace(exc.failure, param=rest or "$")
    return remote_error(encode_error(failure))
