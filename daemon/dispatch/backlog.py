"""The requests of one client that wait to be started, in the order in which they were read. Never drops one.

Full means that reading should stop, which is back-pressure by the pipe (section 4 of docs/protocol.md).
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, Protocol, TypeVar, final

LOOP, THREADS = 0, 1
"""The pools in which requests run: on the event loop, and in worker threads. Each has slots of its own."""

MAX_REQUESTS: Final = 1024
MAX_BYTES: Final = 16 * 1024 * 1024
"""What may wait, whichever is reached first."""

STRETCH: Final = 4
"""How many times that, while a handler waits for an answer of the client, which stands behind other requests."""


class Sized(Protocol):
    """A request: `size` is how many bytes it holds while it waits."""

    @property
    def size(self) -> int: ...


R = TypeVar("R", bound=Sized)


class Congestible(Protocol):
    """The way to the client."""

    @property
    def congested(self) -> bool: ...

    async def wait_for_room(self) -> None:
        """Return when it is not congested any more."""
        ...


@final
class Backlog(Generic[R]):
    """Counts requests from `add` to `take`. Those that no other request holds back are ready, first in, first out for
    each pool.

    While `output` is congested nothing of it may start, because the client does not read.
    """

    __slots__ = ("_waiting", "bytes", "full", "last_notification", "notifications", "open", "output", "ready")

    def __init__(self, output: Congestible) -> None:
        self.output = output
        self.open = 0
        """Requests that were added and have not ended, running ones among them. The scheduler counts it down."""
        self.notifications = 0
        """How many of them are notifications, which are handled one at a time."""
        self.last_notification: R | None = None
        """The last one of a plain `def` that has not ended: requests that come now wait for it."""
        self.ready: tuple[deque[R], deque[R]] = deque(), deque()
        """Those that may start, for each pool, in the order in which they became ready. `take` removes the first."""
        self.bytes = 0
        """The size of all that wait."""
        self.full = False
        """Whether the bound is reached."""
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def overfull(self) -> bool:
        """Whether `STRETCH` times the bound is reached."""
        return self._waiting >= STRETCH * MAX_REQUESTS or self.bytes >= STRETCH * MAX_BYTES

    def add(self, request: R) -> None:
        """Count a request that waits, whether it is ready or held back by its concurrency group."""
        self.open += 1
        self._waiting += 1
        self.bytes += request.size
        self.full = self._waiting >= MAX_REQUESTS or self.bytes >= MAX_BYTES

    def take(self, pool: int) -> R:
        """Remove the first request of this pool: it does not wait any more."""
        request = self.ready[pool].popleft()
        self.withdraw(request)
        return request

    def withdraw(self, request: R) -> None:
        """It does not wait any more."""
        self._waiting -= 1
        self.bytes -= request.size
        self.full = self._waiting >= MAX_REQUESTS or self.bytes >= MAX_BYTES
