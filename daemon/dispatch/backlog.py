"""Requests that wait to be started: one queue in the order of reading, and lanes beside it.

Requests of one lane (`serial`, `keyed`) start one after the other, in a wide lane so many at a time; those behind them wait
beside the queue, where they hold nobody up. Full means that reading should stop; nothing is ever dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final, final

from .request import Request

MOST_REQUESTS: Final = 1024
MOST_BYTES: Final = 16 * 1024 * 1024
"""What may wait, whichever is reached first (section 4 of docs/protocol.md)."""

STRETCH: Final = 4
"""How many times that, while a handler waits for an answer of the client, which stands behind other requests."""


@final
class _Lane:
    """How many of a lane are on their way, and who waits behind them."""

    __slots__ = ("behind", "taken")

    def __init__(self) -> None:
        self.taken = 0
        self.behind: deque[Request] = deque()


@final
class Backlog:
    """Holds requests from `put` to `take`. A lane is taken by as many requests as it is wide until their `leave`.

    Calls between operations go first: somebody who runs waits for them.
    """

    __slots__ = ("_bytes", "_free", "_lanes", "_queue", "_waiting")

    def __init__(self) -> None:
        self._queue: deque[Request] = deque()
        self._free: deque[Request] = deque()
        self._lanes: dict[Hashable, _Lane] = {}
        self._waiting = 0
        self._bytes = 0

    def full(self, *, times: int = 1) -> bool:
        """Whether the bound, or a multiple of it, is reached."""
        return self._waiting >= times * MOST_REQUESTS or self._bytes >= times * MOST_BYTES

    @property
    def ready(self) -> bool:
        """True while a request waits that its lane does not hold back."""
        return bool(self._queue or self._free)

    def __len__(self) -> int:
        return self._waiting

    def put(self, request: Request) -> None:
        """Add a request behind all others; `request.lane` says which of them it must not overlap."""
        self._waiting += 1
        self._bytes += request.size
        if request.lane is None:
            return self._line_up(request)
        lane = self._lanes.setdefault(request.lane, _Lane())
        if lane.taken >= request.spec.concurrency_limit:
            return lane.behind.append(request)
        lane.taken += 1
        self._line_up(request)

    def _line_up(self, request: Request) -> None:
        (self._queue if request.on_done is None else self._free).append(request)

    def take(self, *, any_place: bool) -> Request | None:
        """The next request that may be started; without a place for it, the next that needs none. None if there is none."""
        if self._free:
            request = self._free.popleft()
        elif self._queue and (any_place or not self._queue[0].takes_a_place):
            request = self._queue.popleft()
        else:
            return None
        self._waiting -= 1
        self._bytes -= request.size
        return request

    def leave(self, request: Request) -> None:
        """A request that was taken has ended: the next one of its lane may go."""
        if request.lane is None:
            return
        lane = self._lanes[request.lane]
        if lane.behind:
            self._line_up(lane.behind.popleft())
        else:
            lane.taken -= 1
            if not lane.taken:
                del self._lanes[request.lane]

    def behind(self, lane: Hashable) -> list[Request]:
        """Those who wait for others of their lane."""
        found = self._lanes.get(lane)
        return [] if found is None else [*found.behind]

    def everything(self) -> list[Request]:
        """All that wait, those in lanes too."""
        return [*self._free, *self._queue, *(request for lane in self._lanes.values() for request in lane.behind)]
