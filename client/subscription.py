"""A stream of events as its consumer sees it: an asynchronous iterator that ends the subscription when it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, final

import anyio
import msgspec
from msgspec import Raw

from .connection.connection import Connection
from .connection.connector import Connector
from .connection.pending import PendingStream
from .errors import InvalidReply, RequestTimeout
from .messages import UNREADABLE

T = TypeVar("T")


def decode_as(text: Raw, kind: Any, method: str) -> Any:  # Any: the caller's type decides
    """A result or an event as the caller's type. Raises `InvalidReply`; for text that is no UTF-8 whatever the type."""
    try:
        if kind is Raw:  # which msgspec hands over unread
            str(memoryview(text), "utf-8")
        return msgspec.json.decode(text, type=kind)
    except UnicodeDecodeError as exc:
        raise InvalidReply(f"the answer to {method} is no UTF-8") from exc
    except UNREADABLE as exc:
        raise InvalidReply(f"the answer to {method} does not fit {getattr(kind, '__name__', kind)}") from exc


@final
class Subscription(AsyncIterator[T], Generic[T]):
    """The events of one subscription, in order and without gaps, to be taken by one task.

    The request leaves with the first `anext`, which raises as `Peer.call` does. The iteration ends when the server
    says that all events were sent; a stream that is cut raises, behind the last event that came, and is not resumed:
    `ConnectionFailed.last_seq` says where it stood. `RequestTimeout` means that no event came within the time-out.

    The subscription ends, and the server is told with `$/cancelRequest`, when an `anext` raises or is cancelled, with
    `aclose`, or at the end of `async with`. A consumer that just walks away (`break`) ends it when the iterator is
    garbage, at the stream's next event.
    """

    def __init__(
        self,
        line: Connector,
        stream: PendingStream,
        body: bytes,
        *,
        method: str,
        kind: Any,
        timeout: float | None,
    ) -> None:
        self._line = line
        self._connection: Connection | None = None
        self._stream = stream
        self._body = body
        self._method = method
        self._kind = kind
        self._timeout = timeout
        self._over = False
        self._taking = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._over:
            raise StopAsyncIteration
        if self._taking:
            raise RuntimeError("another task waits for this stream's next event")
        self._taking = True
        taken = sent = False
        try:
            with anyio.move_on_after(self._timeout) as scope:
                event = await self._next()
                if event is None:
                    raise StopAsyncIteration
                value: T = decode_as(event, self._kind, self._method)
                taken = True
                return value
        finally:
            self._taking = False
            if not taken:
                sent = self._leave()
        assert scope.cancelled_caught and self._timeout is not None
        raise RequestTimeout(self._method, self._timeout, sent=sent)

    async def _next(self) -> Raw | None:
        if self._connection is None:
            self._connection = await self._line.connection()
            await self._connection.start(self._stream, self._body)
        return await self._stream.next(self._connection.reading_wanted)

    def _leave(self) -> bool:
        self._over = True
        return self._connection is not None and self._connection.leave(self._stream)

    async def aclose(self) -> None:
        """End the subscription; events that were not taken are dropped. Idempotent. Does not wait for the server."""
        if not self._over:
            self._leave()
        await anyio.lowlevel.checkpoint()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._over:
            self._leave()

    def __del__(self) -> None:  # may run in any thread, so it only leaves a note
        self._stream.abandoned = True
