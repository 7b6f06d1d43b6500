"""A stream of events as an asynchronous iterator. Leaving it ends the subscription."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, final

import anyio
from msgspec import Raw

from ..errors.type_building import decoder_for
from .connection.connection import Connection
from .connection.connector import Connector
from .connection.pending import PendingStream
from .errors import InvalidReply, RequestTimeout
from .messages import DECODE_ERRORS

T = TypeVar("T")


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
    `ConnectionFailed.last_seq` is that event's number. `RequestTimeout` means that no event came within the time-out.

    The subscription ends, and the server gets `$/cancelRequest`, when an `anext` raises or is cancelled, with `aclose`, or at
    the end of `async with`. After a mere `break` it ends when the iterator is garbage-collected and the next event comes.
    """

    def __init__(
        self,
        connector: Connector,
        stream: PendingStream,
        body: bytes,
        *,
        method: str,
        kind: Any,
        timeout: float | None,
    ) -> None:
        self._connector = connector
        self._connection: Connection | None = None
        self._stream = stream
        self._body = body
        self._method = method
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
        self._in_anext = True
        delivered = sent = False
        try:
            with anyio.move_on_after(self._timeout) as scope:
                event = await self._next()
                if event is None:
                    raise StopAsyncIteration
                value: T = decode_as(event, self._kind, self._method)
                delivered = True
                return value
        finally:
            self._in_anext = False
            if not delivered:
                sent = self._close()
        assert scope.cancelled_caught and self._timeout is not None
        raise RequestTimeout(self._method, self._timeout, sent=sent)

    async def _next(self) -> Raw | None:
        if self._connection is None:
            self._connection = await self._connector.connection()
            await self._connection.start(self._stream, self._body)
        return await self._stream.next(self._connection.resume_reading)

    def _close(self) -> bool:
        self._closed = True
        return self._connection is not None and self._connection.forget(self._stream)

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

    def __del__(self) -> None:  # may run in any thread, so it only sets a flag
        self._stream.abandoned = True
