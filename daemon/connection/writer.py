"""Sends everything that goes to one client, in the order in which it was posted. The only writer of its descriptor.

Code that is about to wait flushes first, so that many replies share one write. What the client does not take at once is
sent by one task.

The events of subscriptions wait in queues of their own: lossless, in order and bounded. They go out a few at a time when no
reply waits, stream by stream in turn. So no reply waits behind a stream, and a slow client slows the producer down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, final

from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ...framing.transports.interface import PeerGone
from ...lazy import anyio
from ..memory import SMALL, MemoryBudget, map_large_blocks

if TYPE_CHECKING:
    from ...errors.failures import Failure
    from ...framing.channel import Channel


@final
class Writer:
    """Used on the loop's thread only. `on_lost(cause)` is called once, when nothing can be sent any more, `on_room()`
    when producers that waited may go on, `on_sent()` when `run` has sent all that was left over.
    """

    def __init__(
        self,
        channel: Channel,
        memory: MemoryBudget,
        *,
        on_lost: Callable[[BaseException | None], None],
        on_room: Callable[[], None],
        on_sent: Callable[[], None],
    ) -> None:
        self._channel = channel
        self.post: Final = channel.post
        """Queue one message, which may come in parts, for the next flush. Never blocks."""
        self._memory = memory
        self._counted = 0
        self._on_lost = on_lost
        self._on_room = on_room
        self._on_sent = on_sent
        self._left_over: anyio.Event | None = None
        self._room: list[anyio.Event] = []
        self._room_due = False
        self._streams = Streams(memory)

    @property
    def congested(self) -> bool:
        """True while producers should wait."""
        return self._channel.congested

    def fail(self, failure: Failure, body: bytes | None) -> None:
        """Queue a response that tells of a failure; None where none is sent."""
        if body is not None:
            self._channel.post(body)

    def counts(self) -> dict[str, int]:
        """Streams with messages that wait, and messages of streams that the reader has not taken yet."""
        return {"streams_ready": len(self._streams.ready), "streams_sending": len(self._streams.sending)}

    def open_stream(self, encode: Callable[[int, bytes], bytes | None], service_params: Mapping[str, str]) -> Stream:
        """A stream whose messages leave when no posted message waits. `encode(number, value)` writes one event, or None."""
        return Stream(self._streams, encode, window_of(service_params))

    def flush(self) -> None:
        """Send what the client takes now; `run` sends the rest as it reads. Never blocks, never raises."""
        if self._channel.unsent or self._streams.ready:
            self._flush()
        if self._channel.unsent != self._counted:
            self._count()

    def _count(self) -> None:
        """Tell the memory budget how much waits for the client."""
        change, self._counted = self._channel.unsent - self._counted, self._channel.unsent
        self._memory.add("replies", change)

    def _flush(self) -> None:
        while self._channel.unsent or self._streams.ready:
            if not self._channel.unsent:
                for message in self._streams.take_turn():
                    self._channel.post(message)
            congested = self._channel.congested
            try:
                done = self._channel.flush()
            except PeerGone as exc:
                self._on_lost(exc.__cause__)
                self._on_room()  # for threads; waiting tasks end with the daemon, and one of them may be about to wait
                return
            if done:
                if self._streams.sending:
                    self._streams.delivered()
            elif self._left_over is not None:
                self._left_over.set()
            if congested and not self._channel.congested:
                self._room_due = True  # told by `run`: the task that flushes here may be about to wait for just that
                if self._left_over is not None:
                    self._left_over.set()
            if not done:
                return

    def take_rest(self) -> bytes:
        """Remove and return everything posted that the client has not taken, in order. Nothing is sent afterwards."""
        while messages := self._streams.take_turn():
            for message in messages:
                self._channel.post(message)
        rest = self._channel.unsent_bytes()
        self._channel.discard_output()
        return rest

    @property
    def unsent(self) -> bool:
        """True while the client has not taken everything."""
        return bool(self._channel.unsent or self._streams.ready)

    @property
    def unsent_bytes(self) -> int:
        """How many posted bytes the client has not taken."""
        return self._channel.unsent

    async def wait_for_room(self) -> None:
        """Return when no longer congested, or at once when the client has gone."""
        while self._channel.congested:
            event = anyio.Event()
            self._room.append(event)
            await event.wait()

    async def wait_sent(self) -> None:
        """Return when the client has taken everything, or has gone. Cancel `run` before."""
        self.flush()
        while self.unsent:
            await self._send_some()

    async def run(self) -> None:
        """Send what was left over, until cancelled."""
        while True:
            self._left_over = anyio.Event()
            self._tell_of_room()
            if not self.unsent:
                await self._left_over.wait()
                self._tell_of_room()
            while self.unsent:
                await self._send_some()
            self._on_sent()

    async def _send_some(self) -> None:
        await self._channel.wait_sendable()
        self.flush()
        self._tell_of_room()

    def _tell_of_room(self) -> None:
        if self._room_due:
            self._room_due = False
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        waiting, self._room = self._room, []
        for event in waiting:
            event.set()
        self._on_room()


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

    __slots__ = ("memory", "ready", "sending", "waiting")

    def __init__(self, memory: MemoryBudget) -> None:
        self.memory = memory
        memory.on_room.append(self._wake_waiting)
        self.waiting: dict[Stream, None] = {}
        self.ready: dict[Stream, None] = {}
        self.sending: list[Stream] = []
        """Those of which `take_turn` gave a message that the reader has not taken yet."""

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
                self.sending.append(stream)
                size += len(message)
                self.ready[stream] = None  # behind the others
        return messages

    def delivered(self) -> None:
        """The reader has taken everything that `take_turn` gave."""
        sending, self.sending = self.sending, []
        for stream in sending:
            stream.delivered()
