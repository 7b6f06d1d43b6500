"""The queues of events that subscriptions send: lossless, in order and bounded.

Events wait here and not among the replies. They go out a few at a time when no reply waits, stream by stream in turn. So no
reply waits behind a stream, and a slow client slows the producer down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, final

from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ...lazy import anyio
from ..memory import SMALL, MemoryBudget, map_large_blocks

# The window that a client opens for one subscription: what it may be sent beyond what it has taken (section 5 of the protocol).
#
# So several streams share a connection, and one whose consumer is slow stops its own producer.


WINDOW_BYTES: Final = 256 * 1024
"""Bytes beyond which a producer waits, however few events they are."""

MOST_EVENTS: Final = 1024

_LONGEST: Final = len(str(MOST_EVENTS))


@final
class Window:
    """The events of one subscription that were sent and not taken yet."""

    __slots__ = ("_bytes", "_most", "_sizes", "_taken")

    def __init__(self, most: int) -> None:
        self._most = most
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._taken = 0

    @property
    def full(self) -> bool:
        return len(self._sizes) >= self._most or self._bytes >= WINDOW_BYTES

    def add(self, size: int) -> None:
        """Another event of so many bytes is sent."""
        self._sizes.append(size)
        self._bytes += size

    def take(self, number: int) -> None:
        """The client has taken the events up to this number. One that was never sent counts as the last."""
        while self._taken < number and self._sizes:
            self._taken += 1
            self._bytes -= self._sizes.popleft()


def window_of(service_params: Mapping[str, str]) -> Window | None:
    """The window that a request asks for; None where it asks for none, or for what is no number of events."""
    text = service_params.get(STREAM_WINDOW, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST and int(text) > 0):
        return None
    return Window(min(int(text), MOST_EVENTS))


STREAM_WINDOW: Final = "stream-window"
"""The service parameter."""


MAX_UNDELIVERED: Final = 32
"""Events of one stream that may wait for the reader before its producer waits (section 5 of docs/protocol.md)."""

TURN_BYTES: Final = 64 * 1024
"""How much goes out of the streams before replies are looked for again."""


@final
class Stream:
    """One subscription's outgoing messages: its events, and at last the response.

    `events` counts those that were put. What has left the queue is undelivered until the reader has taken it.
    """

    __slots__ = (
        "_encode",
        "_messages",
        "_on_answer",
        "_room",
        "_streams",
        "_undelivered",
        "_window",
        "discarded",
        "events",
    )

    def __init__(
        self, streams: Streams, encode: Callable[[int, bytes], bytes | None], window: Window | None = None
    ) -> None:
        self._streams = streams
        self._encode = encode
        self._messages: deque[bytes] = deque()
        self._room: anyio.Event | None = None
        self._on_answer: Callable[[], None] | None = None
        self._undelivered = 0
        self._window = window
        self.discarded = False
        self.events = 0

    @property
    def full(self) -> bool:
        undelivered = self._undelivered
        if self._window is not None and self._window.full and not self.discarded:
            return True
        return undelivered >= MAX_UNDELIVERED or (undelivered > 0 and self._streams.memory.congested)

    def put(self, value: bytes, number: int | None = None) -> None:
        """Queue the next event; `value` is a JSON text. Dropped after `discard`: no event follows the answer.

        Raises `FailureError(Overloaded)` where the memory budget has no room for it.
        """
        if not self.discarded:
            if len(value) > SMALL:
                map_large_blocks()
                if not self._streams.memory.fits(len(value)):
                    raise FailureError(Overloaded())
            self.events += 1
            message = self._encode(self.events, value)
            if message is not None:
                if self._window is not None:
                    self._window.add(len(message))
                self._queue(message)

    def take_until(self, number: int) -> None:
        """The client has taken the events up to this number."""
        if self._window is not None:
            self._window.take(number)
            if not self.full:
                self.wake()

    def finish(self, response: bytes, on_answer: Callable[[], None]) -> None:
        """Queue the response behind all events; `on_answer()` is called when it is taken to be written."""
        self._on_answer = on_answer
        self._queue(response)

    def discard(self) -> None:
        """Drop the events that are still queued, and all that follow."""
        self.discarded = True
        self._undelivered -= len(self._messages)
        self._streams.memory.add("events", -sum(map(len, self._messages)))
        self._messages.clear()
        self.wake()

    async def wait_for_room(self) -> None:
        while self.full:
            self._room = anyio.Event()
            self._streams.waiting[self] = None
            await self._room.wait()

    def _queue(self, message: bytes) -> None:
        self._undelivered += 1
        self._messages.append(message)
        self._streams.memory.add("events", len(message))
        self._streams.ready.setdefault(self)

    def take(self) -> bytes | None:
        """Remove and return the next message; None when there is none."""
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._streams.memory.add("events", -len(message))
        if self._on_answer is not None and not self._messages:
            self._on_answer()
        return message

    def delivered(self) -> None:
        """The reader has taken one of the messages."""
        self._undelivered -= 1
        if not self.full:
            self.wake()

    def wake(self) -> None:
        """There may be room again."""
        self._streams.waiting.pop(self, None)
        if self._room is not None:
            self._room.set()
            self._room = None


@final
class Streams:
    """All streams with something to send, in turn."""

    __slots__ = ("_on_the_way", "memory", "ready", "waiting")

    def __init__(self, memory: MemoryBudget) -> None:
        self.memory = memory
        memory.on_room.append(self._wake_waiting)
        self.waiting: dict[Stream, None] = {}
        self.ready: dict[Stream, None] = {}
        self._on_the_way: list[Stream] = []

    @property
    def sending(self) -> int:
        """Messages that `take_turn` gave and the reader has not taken yet."""
        return len(self._on_the_way)

    def open(self, encode: Callable[[int, bytes], bytes | None], window: Window | None = None) -> Stream:
        return Stream(self, encode, window)

    def close(self) -> None:
        """Nothing more is sent: free what is queued."""
        for stream in list(self.ready):
            stream.discard()
        self.memory.on_room.remove(self._wake_waiting)

    def _wake_waiting(self) -> None:
        for stream in list(self.waiting):
            stream.wake()

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
                self._on_the_way.append(stream)
                size += len(message)
                self.ready[stream] = None  # behind the others
        return messages

    def delivered(self) -> None:
        """The reader has taken everything that `take_turn` gave."""
        on_the_way, self._on_the_way = self._on_the_way, []
        for stream in on_the_way:
            stream.delivered()
