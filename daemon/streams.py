"""The events of subscriptions on their way out: lossless, in order, a bounded number of them, behind every reply.

Events wait here and not among the replies, and go out a few at a time when nothing else waits, stream by stream in
turn. So a reply is never held up behind a stream, and a slow reader slows the producer down.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from .rpc import envelope

if TYPE_CHECKING:
    import anyio

MOST_UNDELIVERED: Final = 32
"""Events of one stream that may wait for the reader before its producer waits (section 5 of docs/protocol.md)."""

TURN_BYTES: Final = 64 * 1024
"""How much goes out of the streams before replies are looked for again."""


@final
class Stream:
    """One subscription's outgoing messages: its events, and at last the response."""

    __slots__ = ("_call_id", "_messages", "_room", "_streams", "events")

    def __init__(self, streams: Streams, call_id: bytes) -> None:
        self._streams = streams
        self._call_id = call_id
        self._messages: deque[bytes] = deque()
        self._room: anyio.Event | None = None
        self.events = 0

    @property
    def full(self) -> bool:
        return len(self._messages) >= MOST_UNDELIVERED

    def put(self, value: bytes) -> None:
        """Queue the next event; `value` is a JSON text."""
        self.events += 1
        self._queue(envelope.encode_event(self._call_id, self.events, value))

    def finish(self, response: bytes) -> None:
        """Queue the response behind all events."""
        self._queue(response)

    def discard(self) -> None:
        """Nobody waits for what is still queued."""
        self._messages.clear()
        self._wake()

    async def wait_for_room(self) -> None:
        import anyio  # late: the first replies leave without an event loop

        while self.full:
            self._room = anyio.Event()
            await self._room.wait()

    def _queue(self, message: bytes) -> None:
        self._messages.append(message)
        self._streams.ready.setdefault(self)

    def take(self) -> bytes | None:
        """The next message, for whoever writes; None when there is none."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        if not self.full:
            self._wake()
        return message

    def _wake(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None


@final
class Streams:
    """All streams with something to send, in turn."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready: dict[Stream, None] = {}

    def open(self, call_id: bytes) -> Stream:
        return Stream(self, call_id)

    def take_turn(self) -> list[bytes]:
        """One message of each stream after the other until it is enough for now; empty when there is nothing."""
        messages: list[bytes] = []
        size = 0
        while self.ready and size < TURN_BYTES:
            stream = next(iter(self.ready))
            del self.ready[stream]
            message = stream.take()
            if message is not None:
                messages.append(message)
                size += len(message)
                self.ready[stream] = None  # behind the others
        return messages
