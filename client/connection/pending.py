"""What this side still waits for: calls with one answer, and streams with many events. No IO.

The rule of reading lives here. A stream has no flow control of its own but the pipe, which all calls share, so:

* Reading pauses only while some stream holds `EVENTS_HELD` events or more **and nobody waits**: no call is under way, and
  no consumer waits at an empty stream. Whoever waits is therefore never stuck behind somebody else's slow consumer, and a
  slow consumer alone slows its producer down, as section 5 of docs/protocol.md wants it.
* While others wait, a slow consumer's events are held beyond that number, up to `BYTES_HELD`. Past it the stream ends
  with `StreamOverrun`; nothing is left out silently.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, final

import anyio
from msgspec import Raw

from ..errors import ClientError, ConnectionFailed, DeclaredErrors, InvalidReply, StreamOverrun

EVENTS_HELD: Final = 32
"""Events that one stream holds for its consumer before reading may pause; as many as the daemon holds by default."""

BYTES_HELD: Final = 16 * 1024 * 1024
"""Bytes of events that one stream may hold while others wait for the connection."""

Failing: TypeAlias = Callable[[], ClientError]
"""Makes the exception anew for each who waits: an exception that two tasks raise collects both tracebacks."""


@final
class PendingCall:
    """One request and its answer. `size` is that of its body in bytes, `errors` what the caller knows it to declare."""

    def __init__(self, call_id: int, size: int, errors: DeclaredErrors = ()) -> None:
        self.id = call_id
        self.size = size
        self.errors = errors
        self._result: Raw | None = None
        self._failing: Failing | None = None
        self._answered = anyio.Event()

    @property
    def answered(self) -> bool:
        return self._answered.is_set()

    def settle(self, result: Raw) -> None:
        self._result = result
        self._answered.set()

    def fail(self, failing: Failing) -> None:
        self._failing = failing
        self._answered.set()

    async def answer(self) -> Raw:
        """Wait for the answer, as JSON text. Raises what `fail` was given."""
        await self._answered.wait()
        if self._failing is not None:
            raise self._failing()
        assert self._result is not None  # answered means one of the two
        return self._result


@final
class PendingStream:
    """One subscription: the events that its consumer has not taken, and how it ended."""

    def __init__(self, call_id: int, size: int, errors: DeclaredErrors = ()) -> None:
        self.id = call_id
        self.size = size
        self.errors = errors
        self.abandoned = False
        """Set when the consumer has gone without a word; read by whoever routes the next event."""
        self.awaited = False
        """Whether the consumer waits at an empty stream."""
        self._events: deque[Raw] = deque()
        self._bytes = 0
        self._received = 0
        self._ended = False
        self._failing: Failing | None = None
        self._changed = anyio.Event()

    @property
    def answered(self) -> bool:
        return self._ended

    @property
    def untouched(self) -> bool:
        """No event has come."""
        return self._received == 0

    @property
    def full(self) -> bool:
        return len(self._events) >= EVENTS_HELD

    def push(self, seq: int, value: Raw) -> None:
        """Take one event in. A gap in `seq` or too much to hold ends the stream."""
        size = memoryview(value).nbytes
        if seq != self._received + 1:
            self.fail(lambda: InvalidReply(f"event {seq} came after event {seq - 1} was lost or repeated"))
        elif self._bytes + size > BYTES_HELD and self._events:
            self.fail(lambda: StreamOverrun(f"more than {BYTES_HELD} bytes of events waited for their consumer"))
        else:
            self._received = seq
            self.awaited = False  # no longer at an empty stream, although the consumer has not run yet
            self._events.append(value)
            self._bytes += size
            self._wake()

    def complete(self, events: int) -> None:
        """The server says that these were all."""
        if events != self._received:
            self.fail(lambda: InvalidReply(f"{self._received} of {events} events came"))
        else:
            self._ended = True
            self._wake()

    def fail(self, failing: Failing) -> None:
        """End with an error, behind the events that are held. The first end stands."""
        if not self._ended:
            self._ended = True
            self._failing = failing
            self._wake()

    async def next(self, room_made: Callable[[], None]) -> Raw | None:
        """The next event's JSON text, or None behind the last. Raises what ended the stream.

        `room_made` is called when the reading may go on.
        """
        await anyio.lowlevel.checkpoint()
        while not self._events:
            if self._ended:
                if self._failing is not None:
                    raise self._failure(self._failing())
                return None
            self.awaited = True
            room_made()
            try:
                await self._changed.wait()
            finally:
                self.awaited = False
        event = self._events.popleft()
        self._bytes -= memoryview(event).nbytes
        room_made()
        return event

    def _failure(self, error: ClientError) -> ClientError:
        """The error, with the place in the stream where it struck; all events up to there were delivered."""
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.loss, sent=error.sent, last_seq=self._received)
        return error

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


Awaited: TypeAlias = PendingCall | PendingStream


@final
class Pending:
    """Calls and streams by id."""

    def __init__(self) -> None:
        self._by_id: dict[int, Awaited] = {}

    def __iter__(self) -> Iterator[Awaited]:
        return iter(list(self._by_id.values()))

    def add(self, awaited: Awaited) -> None:
        self._by_id[awaited.id] = awaited

    def find(self, call_id: int) -> Awaited | None:
        return self._by_id.get(call_id)

    def remove(self, call_id: int) -> None:
        """Forget it; a later reply under this id is nobody's."""
        self._by_id.pop(call_id, None)

    def largest(self) -> Awaited | None:
        """The one with the largest body."""
        return max(self._by_id.values(), key=lambda awaited: awaited.size, default=None)

    def fail_all(self, failing: Failing) -> None:
        for awaited in self:
            awaited.fail(failing)
            self.remove(awaited.id)

    @property
    def reading_may_rest(self) -> bool:
        """The rule at the top of this module."""
        full = False
        for awaited in self._by_id.values():
            match awaited:
                case PendingCall():
                    return False
                case PendingStream():
                    if awaited.awaited:
                        return False
                    full = full or (awaited.full and not awaited.abandoned)
        return full
