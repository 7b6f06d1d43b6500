"""Queues messages to a client as Server-Sent Events (WHATWG HTML, section 9.2) until a response takes them: lossless, in
order, and bounded.

Only a producer that awaits a message waits, while a response is open and does not keep up. Without a response messages wait
here, or are dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, final

import msgspec

from ..daemon.memory import SMALL, Kind, MemoryBudget
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded
from ..framing.channel import HIGH_WATER_BYTES
from ..lazy import anyio
from .answers import NO_SNIFFING

if TYPE_CHECKING:
    from .asgi import Send

MAX_UNDELIVERED: Final = 32
"""Events that may wait for the client before their producer waits, as over stdio."""

TURN_BYTES: Final = 64 * 1024
"""About how much goes out at once. The server copies it, and holds it until the client has taken it: it counts nowhere."""

MEMORY_POLL_SECONDS: Final = 0.05
"""How often a producer looks again that waits because the whole daemon is short of memory."""

MESSAGE_BYTES: Final = 256
"""Bytes that a message takes beside its text."""


class QueuedMessage(msgspec.Struct, frozen=True):
    """`number` is its own among the messages of its stream, from 1."""

    number: int
    text: bytes

    @property
    def size(self) -> int:
        return len(self.text) + MESSAGE_BYTES


@final
class MessageStream:
    """Used on the loop's thread. `kind` is that of its messages in the memory budget, unless they are kept.

    With `keep` messages stay when a response has taken them, for one that begins anew behind any of them: `keep(change)` is
    called with each change of `bytes`, and may drop some. `later` takes what comes when the stream has ended. `on_room()` is
    called when there may be room again.
    """

    def __init__(
        self,
        memory: MemoryBudget,
        number: int = 0,
        *,
        keep: Callable[[int], None] | None = None,
        later: MessageStream | None = None,
        kind: Kind = "replies",
    ) -> None:
        self.number: Final = number
        self.last = 0
        """The number of the last message."""
        self.ended = self.closed = False
        self.bytes = 0
        self.on_room: Callable[[], None] = _nothing
        self._memory = memory
        self._kind: Kind = kind if keep is None else "sessions"
        self._keep = keep
        self._later = later
        self._messages: deque[QueuedMessage] = deque()
        self.taken_up_to = 0
        """The number of the last message that a response has taken."""
        self._untaken_bytes = 0
        self._open = True  # by the one who made it
        self._response = 0
        self._changed: anyio.Event | None = None

    # -- who sends ---------------------------------------------------------------------------------------------

    def post(self, body: bytes) -> None:
        if self.ended:
            if self._later is not None:
                self._later.post(body)
            return
        self.last += 1
        message = QueuedMessage(self.last, body)
        self._messages.append(message)
        self._untaken_bytes += message.size
        self._hold(message.size)
        self._wake()

    def flush(self) -> None:
        """Nothing is to be done: a response takes what was posted when its turn comes."""

    @property
    def unsent_bytes(self) -> int:
        if self.ended and self._later is not None:
            return self._later.unsent_bytes
        return self._untaken_bytes if self._open else 0

    @property
    def congested(self) -> bool:
        return self.unsent_bytes >= HIGH_WATER_BYTES

    async def wait_for_room(self) -> None:
        while self.congested:
            stream = self._later if self.ended and self._later is not None else self
            await stream._wait()

    @property
    def full(self) -> bool:
        """Whether the producer of a subscription waits: also while no response is open, so that nothing of it is lost."""
        untaken = self.last - self.taken_up_to
        return not self.ended and (untaken >= MAX_UNDELIVERED or (untaken > 0 and self._memory.congested))

    def end(self) -> None:
        """Nothing belongs here any more. What is here can still be taken."""
        self.ended = True
        self._wake()

    def close(self) -> None:
        """End, drop everything, and let go of those who were told of it."""
        while self._messages:
            self._drop()
        self.end()
        self.closed = self._later is None
        self._keep, self.on_room = None, _nothing

    # -- who takes ---------------------------------------------------------------------------------------------

    def begin_response(self, behind: int | None = None) -> int:
        """A response takes what follows this message, by default what none has taken yet. It takes the place of the one before,
        which ends. Its token.
        """
        self._response += 1
        self._open = True
        if behind is not None:
            self.taken_up_to = min(max(behind, self.oldest - 1), self.last)
            self._untaken_bytes = sum(message.size for message in self._untaken())
        self._wake()
        return self._response

    def end_response(self, token: int) -> None:
        """This response takes no more."""
        if token == self._response:
            self._open = False
            self._wake()

    @property
    def oldest(self) -> int:
        """The number of the oldest message that can be taken; that of the next one where there is none."""
        return self.last - len(self._messages) + 1

    async def begun(self, seconds: float) -> None:
        """Wait for the first message, or the end; for at most so many seconds."""
        with anyio.move_on_after(seconds):
            while not (self.last or self.ended):
                await self._wait()

    async def take(self, token: int, seconds: float) -> list[QueuedMessage] | None:
        """Wait for messages; none after so many seconds, None at the end. `taken` must follow."""
        with anyio.move_on_after(seconds):
            while True:
                if token != self._response:
                    return None
                if found := self._turn():
                    return found
                if self.ended:
                    return None
                await self._wait()
        return []

    def taken(self, messages: list[QueuedMessage]) -> None:
        """The client has these."""
        for message in messages:
            if message.number > self.taken_up_to:
                self.taken_up_to = message.number
                self._untaken_bytes -= message.size
        if self._keep is None:
            while self._messages and self._messages[0].number <= self.taken_up_to:
                self._drop()
        self._wake()

    def drop_oldest(self) -> bool:
        """Drop the oldest message; False where there is none, or an open response has not taken it."""
        if not self._messages or (self._open and self._messages[0].number > self.taken_up_to):
            return False
        self._drop()
        return True

    def text(self) -> list[bytes]:
        """All messages that are here."""
        return [message.text for message in self._messages]

    def _untaken(self) -> Iterator[QueuedMessage]:
        return islice(self._messages, self.taken_up_to + 1 - self.oldest, None)

    def _turn(self) -> list[QueuedMessage]:
        found: list[QueuedMessage] = []
        size = 0
        for message in self._untaken():
            found.append(message)
            size += message.size
            if size >= TURN_BYTES:
                break
        return found

    def _drop(self) -> None:
        message = self._messages.popleft()
        self._hold(-message.size)
        if message.number > self.taken_up_to:
            self.taken_up_to = message.number
            self._untaken_bytes -= message.size

    def _hold(self, size: int) -> None:
        self.bytes += size
        self._memory.add(self._kind, size)
        if self._keep is not None:
            self._keep(size)

    # -- waiting -----------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        self._changed = self._changed or anyio.Event()
        await self._changed.wait()

    def _wake(self) -> None:
        if not self.congested:
            self.on_room()
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def wait_until_not_full(self) -> None:
        while self.full:
            with anyio.move_on_after(MEMORY_POLL_SECONDS if self._memory.congested else None):
                await self._wait()


@final
class Events:
    """The events of one subscription, and at last its response: a `ReplyStream`.

    `encode(count, value, number)` makes a message of each, or None for none; `number` is the event's own in the log that it comes
    from. `answer(body)` takes the response.
    """

    def __init__(
        self,
        stream: MessageStream,
        memory: MemoryBudget,
        encode: Callable[[int, bytes, int | None], bytes | None],
        answer: Callable[[bytes], None] = lambda body: None,
    ) -> None:
        self.events = 0
        self.discarded = False
        self._stream = stream
        self._memory = memory
        self._encode = encode
        self._answer = answer

    @property
    def full(self) -> bool:
        return self._stream.full

    def put(self, value: bytes, number: int | None = None) -> None:
        """Send the next event. Dropped after `discard`. Raises `FailureError(Overloaded)` where there is no memory for it."""
        if self.discarded or self._stream.closed:
            self.discarded = True  # so that a producer that never waits does not go on for ever behind a closed stream
            return
        if len(value) > SMALL and not self._memory.fits(len(value)):
            raise FailureError(Overloaded())
        self.events += 1
        message = self._encode(self.events, value, number)
        if message is not None:
            self._stream.post(message)

    async def wait_for_room(self) -> None:
        await self._stream.wait_until_not_full()

    def finish(self, response: bytes, on_answer: Callable[[], None]) -> None:
        on_answer()
        self._answer(response)

    def take_until(self, number: int) -> None:
        """HTTP has a window of its own: that of the connection."""

    def discard(self) -> None:
        self.discarded = True


def _nothing() -> None: ...


HEADERS: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    NO_SNIFFING,
]
"""Proxies must neither store nor hold back events; nginx is told so by the last one."""

FIRST_SECONDS: Final = 1.0
"""How long the first event, or a failure in its place, is waited for before the response begins without."""

KEEP_ALIVE: Final = b": keep-alive\n\n"


def encode_event(data: bytes, number: int | str | None = None, name: str = "") -> bytes:
    """One event with the id `number`. `data` is a JSON text: its line ends, if any, stand between tokens, not in a value."""
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    head = b"event: %b\n" % name.encode() if name else b""
    tail = b"" if number is None else b"id: %b\n" % str(number).encode()
    return b"%b%bdata: %b\n\n" % (head, tail, data)


async def send_stream(
    send: Send,
    stream: MessageStream,
    *,
    keep_alive: float,
    headers: Iterable[tuple[bytes, bytes]] = (),
    first: Callable[[], bytes] = bytes,
    behind: int | None = None,
    encode: Callable[[QueuedMessage], bytes] = lambda message: message.text,
    last: Callable[[], bytes] = bytes,
) -> None:
    """Send the messages of a stream until it ends, or another response takes its place; `encode` makes an event of each. Comments
    are sent where nothing happens for `keep_alive` seconds, `first()` and `last()` around all. Cancelling it leaves the response
    unfinished.
    """
    token = stream.begin_response(behind)
    try:
        await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})
        if begun := first():
            await _send(send, begun)
        while (messages := await stream.take(token, keep_alive)) is not None:
            await _send(send, b"".join(map(encode, messages)) or KEEP_ALIVE)
            if messages:
                stream.taken(messages)
            # A producer that never waits has events ready whenever this would wait: then asyncio would not cancel it.
            await anyio.lowlevel.checkpoint_if_cancelled()
        await send({"type": "http.response.body", "body": last()})
    finally:
        stream.end_response(token)


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
