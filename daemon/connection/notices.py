"""Notifications that handlers send, from the loop or from worker threads. A client that does not read slows them down.

Worker threads wait. On the loop only who awaits a notification can wait: one that is neither awaited nor has room is dropped.
"""

from __future__ import annotations

import threading
from _thread import get_ident
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from ..dispatch.thread_pool import ThreadPool
from ..logs import log

if TYPE_CHECKING:
    from ..memory import MemoryBudget


# What whoever sends messages to a client needs of the way there: the connection's writer, or the answer to one HTTP request.


class Output(Protocol):
    """Used on the loop's thread only."""

    @property
    def congested(self) -> bool:
        """True while producers should wait."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """How much the client has not taken, although it could."""
        ...

    def post(self, body: bytes, /) -> None:
        """Queue one message for the next flush. Never blocks."""
        ...

    def flush(self) -> None:
        """Send what the client takes now. Never blocks, never raises."""
        ...

    async def wait_for_room(self) -> None:
        """Return when it is not congested any more, or at once when the client has gone."""
        ...


MAX_UNSENT: Final = 64
"""Notifications of all worker threads that may be unsent before the next one waits."""

MAX_UNSENT_BYTES: Final = 4 * 1024 * 1024
"""Bytes of notifications that may be unsent before the next one waits or is dropped; of the loop, and of all worker threads.
Some ten thousand small ones: who does not await them may send that many without a pause."""


@final
class Sending:
    """Awaiting it waits until the client has read enough; it returns at once if the client keeps up.

    `body` is what could not be posted yet. It is posted when there is room for it, and dropped if nobody waits for that.
    """

    __slots__ = ("_body", "_method", "_notices")

    def __init__(self, notices: Notices, method: str, body: bytes | None) -> None:
        self._notices = notices
        self._method = method
        self._body = body

    def __await__(self) -> Generator[Any, Any, None]:
        yield from self._notices.wait_for_room().__await__()
        body, self._body = self._body, None
        if body is not None:
            self._notices.post(body)

    def __del__(self) -> None:
        if self._body is not None:
            self._notices.note_dropped(self._method)


@final
class Notices:
    """`send` may be called on the thread that made this object (the loop's) and in worker threads."""

    def __init__(self, output: Output, threads: ThreadPool, memory: MemoryBudget) -> None:
        self.output: Final = output
        self._threads = threads
        self._memory = memory
        self._loop_thread = get_ident()
        self._room = threading.Condition()  # guards the next two
        self._taken = 0  # notifications of worker threads
        self._taken_bytes = 0
        self._arrived: list[int] = []  # sizes of those among them that were posted
        self._posted = 0  # bytes of the loop's notifications since everything was sent
        self._dropped = 0

    def send(self, method: str, body: bytes) -> Sending:
        """Post one message. On the loop it returns at once; a worker thread waits while the client does not read."""
        if get_ident() != self._loop_thread:
            self._take_place(len(body))
            self._threads.call_on_loop(self._post_of_thread, body)
        elif not self._has_room(len(body)):
            return Sending(self, method, body)
        else:
            self.post(body)
        return Sending(self, method, None)

    async def send_all(self, bodies: Iterable[bytes]) -> None:
        """Post messages in an async handler, which flushes when it waits or ends. Waits as who awaits each of them would."""
        for body in bodies:
            if self.output.congested or not self._has_room(len(body)):
                self.output.flush()
                await self.output.wait_for_room()
            self._post(body)

    def _has_room(self, size: int) -> bool:
        unsent = self.output.unsent_bytes
        if not unsent:
            self._posted = 0
        return min(self._posted, unsent) < MAX_UNSENT_BYTES and self._memory.fits(size)

    def post(self, body: bytes) -> None:
        """Post one message, whatever waits. On the loop."""
        self._post(body)
        self.output.flush()

    def _post(self, body: bytes) -> None:
        self._report_dropped()
        self._posted += len(body)
        self.output.post(body)

    async def wait_for_room(self) -> None:
        """Return when the client has read enough, or has gone."""
        await self.output.wait_for_room()

    def note_dropped(self, method: str) -> None:
        """Log the first notification that is dropped; the others are counted and reported when the client reads again."""
        self._dropped += 1
        if self._dropped == 1:
            log.warning("notification.dropped", method=method)

    def _report_dropped(self) -> None:
        if self._dropped and not self.output.congested:
            log.warning("notifications.dropped", count=self._dropped)
            self._dropped = 0

    def _take_place(self, size: int) -> None:
        with self._room:
            while self._taken >= MAX_UNSENT or self._taken_bytes >= MAX_UNSENT_BYTES:
                self._room.wait()
            self._taken += 1
            self._taken_bytes += size

    def _post_of_thread(self, body: bytes) -> None:
        self.output.post(body)
        self._arrived.append(len(body))
        self.give_room()

    def give_room(self) -> None:
        """The client may have read: let waiting threads go on. On the loop."""
        self._report_dropped()
        if self._arrived and not self.output.congested:
            with self._room:
                self._taken -= len(self._arrived)
                self._taken_bytes -= sum(self._arrived)
                self._room.notify_all()
            self._arrived.clear()
