"""How long requests that only wait may wait for each other: as long as some of them come to their end now and then.

Without it a thousand callers who wait for an answer that depends on the next one would keep that next one out for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, final

from .backlog import Backlog
from .request import Request

if TYPE_CHECKING:
    import anyio

SECONDS: Final = 1.0


@final
class StarvationWatch:
    """Watches the lanes of such requests. `refuse(request)` answers one that is behind."""

    def __init__(self, backlog: Backlog, refuse: Callable[[Request], None]) -> None:
        self._backlog = backlog
        self._refuse = refuse
        self._lanes: set[Hashable] = set()
        self._woken: anyio.Event | None = None
        self._moved: set[Hashable] = set()

    def left(self, request: Request) -> None:
        """One has ended: its lane moves."""
        self._moved.add(request.lane)

    def put(self, request: Request) -> None:
        """Look after the request's lane, if it has to wait in it."""
        if request.lane is not None and request.lane not in self._lanes and self._backlog.behind(request.lane):
            self._lanes.add(request.lane)
            if self._woken is not None:
                self._woken.set()

    async def run(self) -> None:
        """Look once a second while somebody is behind, until cancelled."""
        import anyio  # late: the first replies leave without an event loop

        while True:
            if not self._lanes:
                self._woken = anyio.Event()
                await self._woken.wait()
            self._moved.clear()
            await anyio.sleep(SECONDS)
            for lane in self._lanes - self._moved:
                for request in self._backlog.behind(lane):
                    self._refuse(request)
            self._lanes = {lane for lane in self._lanes & self._moved if self._backlog.behind(lane)}
