"""The messages to a client that belong to one of its HTTP requests, or to none, until a response has taken them over.

Who awaits what it sends waits while a response is open and does not keep up. What no response takes waits here, or is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, final

import msgspec

from ...daemon.memory import SMALL, Kind, MemoryBudget
from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ...framing.channel import HIGH_WATER_BYTES
from ...lazy import anyio
from ..event_queue import MAX_UNDELIVERED, MEMORY_POLL_SECONDS, TURN_BYTES

MESSAGE_BYTES: Final = 256
"""What a message takes beside its text."""


class Message(msgspec.Struct, frozen=True):
    """`number` is its own among the messages of its stream, from 1."""

    number: int
    text: bytes

    @property
    def size(self) -> int:
        return len(self.text) + MESSAGE_BYTES


@final
class MessageStream:
    """Implements `connection.output.Output`. Used on the loop's thread.

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
    ) -> None:
        self.number: Final = number
        self.last = 0
        """The number of the last message."""
        self.ended = False
        self.bytes = 0
        self.on_room: Callable[[], None] = _nothing
        self._memory = memory
        self._kind: Kind = "replies" if keep is None else "sessions"
        self._keep = keep
        self._later = later
        self._messages: deque[Message] = deque()
        self._taken = 0
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
        message = Message(self.last, body)
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
        untaken = self.last - self._taken
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
        self._keep, self.on_room = None, _nothing

    # -- who takes ---------------------------------------------------------------------------------------------

    def begin_response(self, behind: int | None = None) -> int:
        """A response takes what follows this message, by default what none has taken yet. It takes the place of the one before,
        which ends. Its token.
        """
        self._response += 1
        self._open = True
        if behind is not None:
            self._taken = min(max(behind, self.oldest - 1), self.last)
            self._untaken_bytes = sum(message.size for message in self._untaken())
        self._wake()
        return self._response

    def end_response(self, token: int) -> None:
        """This response takes no more."""
        if token == self._response:
            self._open = False
            self._wake()

    @property
    def position(self) -> int:
        """The number of the last message that a response has taken."""
        return self._taken

    @property
    def oldest(self) -> int:
        """The number of the oldest message that can be taken; that of the next one where there is none."""
        return self.last - len(self._messages) + 1

    async def begun(self, seconds: float) -> None:
        """Wait for the first message, or the end; for at most so many seconds."""
        with anyio.move_on_after(seconds):
            while not (self.last or self.ended):
                await self._wait()

    async def take(self, token: int, seconds: float) -> list[Message] | None:
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

    def taken(self, messages: list[Message]) -> None:
        """The client has these."""
        for message in messages:
            if message.number > self._taken:
                self._taken = message.number
                self._untaken_bytes -= message.size
        if self._keep is None:
            while self._messages and self._messages[0].number <= self._taken:
                self._drop()
        self._wake()

    def drop_oldest(self) -> bool:
        """Drop the oldest message; False where there is none, or an open response has not taken it."""
        if not self._messages or (self._open and self._messages[0].number > self._taken):
            return False
        self._drop()
        return True

    def text(self) -> list[bytes]:
        """All messages that are here."""
        return [message.text for message in self._messages]

    def _untaken(self) -> Iterator[Message]:
        return islice(self._messages, self._taken + 1 - self.oldest, None)

    def _turn(self) -> list[Message]:
        """No more than goes out at once."""
        found: list[Message] = []
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
        if message.number > self._taken:
            self._taken = message.number
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
    """The events of one subscription, and at last its response: a `ReplyStream`. `answer(body)` takes the response."""

    def __init__(
        self,
        stream: MessageStream,
        memory: MemoryBudget,
        encode: Callable[[int, bytes], bytes | None],
        answer: Callable[[bytes], None],
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
        if self.discarded:
            return
        if len(value) > SMALL and not self._memory.fits(len(value)):
            raise FailureError(Overloaded())
        self.events += 1
        message = self._encode(self.events, value)
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
