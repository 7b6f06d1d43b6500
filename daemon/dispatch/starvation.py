"""Refuses requests that wait for their turn in a concurrency group in which nothing moves.

Requests that only wait may depend on each other: a thousand callers may wait for an answer that only the next request
gives. As long as some of them end now and then the others wait; when none has ended for a second, they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, final

from ...lazy import anyio
from .concurrency_groups import ConcurrencyGroups
from .request import Request

INTERVAL_SECONDS: Final = 1.0


@final
class StarvationWatch:
    """Watches the groups of such requests. `refuse(request)` answers one that waits."""

    def __init__(self, groups: ConcurrencyGroups, refuse: Callable[[Request], None]) -> None:
        self._groups = groups
        self._refuse = refuse
        self._watched: set[Hashable] = set()
        self._moving: set[Hashable] = set()
        self._woken: anyio.Event | None = None

    def on_end(self, request: Request) -> None:
        """A request has ended, so its group is moving."""
        self._moving.add(request.group)

    def watch(self, request: Request) -> None:
        """Watch the request's group if requests wait in it."""
        group = request.group
        if group is not None and group not in self._watched and self._groups.waiting(group):
            self._watched.add(group)
            if self._woken is not None:
                self._woken.set()

    async def run(self) -> None:
        """Look once an interval while requests wait, until cancelled."""
        while True:
            if not self._watched:
                self._woken = anyio.Event()
                await self._woken.wait()
            self._moving.clear()
            await anyio.sleep(INTERVAL_SECONDS)
            for group in self._watched - self._moving:
                for request in self._groups.waiting(group):
                    self._refuse(request)
            self._watched = {group for group in self._watched & self._moving if self._groups.waiting(group)}
