"""When running requests must be answered at the latest. One sleeping task for all of them, no timer per request."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final, final

from ...lazy import anyio
from .request import Request

_FOREVER: Final = float("inf")


@final
class Deadlines:
    """Requests with a deadline, grouped by their time limit.

    Requests of one limit expire in the order in which they were added, so only the first of each needs a look, and
    adding and removing cost the same however many there are. `expire(request)` is called for each that is overdue.
    """

    def __init__(self, expire: Callable[[Request], None]) -> None:
        self._expire = expire
        self._by_limit: dict[float, dict[Request, None]] = {}
        self._wakes_at = _FOREVER
        self._wake: Callable[[], None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._by_limit.values()))

    def add(self, request: Request, limit: float) -> None:
        """Expect an answer within `limit` seconds from now."""
        request.deadline = deadline = monotonic() + limit
        group = self._by_limit.get(limit)
        if group is None:
            group = self._by_limit[limit] = {}
        group[request] = None
        if deadline < self._wakes_at and self._wake is not None:
            self._wake()

    def remove(self, request: Request, limit: float) -> None:
        """The request has ended; nothing is expected any more."""
        del self._by_limit[limit][request]

    def _sweep(self) -> float:
        """Expire what is overdue; return when the next one is due."""
        now, following = monotonic(), _FOREVER
        for group in self._by_limit.values():
            for request in list(group):
                if request.ended_by is not None:
                    continue
                deadline = request.deadline or now
                if deadline > now:
                    following = min(following, deadline)
                    break
                self._expire(request)
        return following

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            event = anyio.Event()
            self._wake = event.set
            self._wakes_at = self._sweep()
            with anyio.move_on_after(max(0.0, self._wakes_at - monotonic())):
                await event.wait()
