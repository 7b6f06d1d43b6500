"""Refuses requests that wait for a serial key which nobody gives back.

Requests of `waits` operations may depend on each other: a thousand callers may wait for an answer that only the next
request gives. As long as some of them end now and then the others wait; when none has ended for a second, they are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, final

from .request import Request
from .serial import SerialKeys

if TYPE_CHECKING:
    import anyio

INTERVAL_SECONDS: Final = 1.0


@final
class StarvationWatch:
    """Watches the keys of such requests. `refuse(request)` answers one that waits."""

    def __init__(self, keys: SerialKeys, refuse: Callable[[Request], None]) -> None:
        self._keys = keys
        self._refuse = refuse
        self._watched: set[Hashable] = set()
        self._moving: set[Hashable] = set()
        self._woken: anyio.Event | None = None

    def on_end(self, request: Request) -> None:
        """A request has ended, so its key is moving."""
        self._moving.add(request.serial_key)

    def watch(self, request: Request) -> None:
        """Watch the request's key if requests wait for it."""
        key = request.serial_key
        if key is not None and key not in self._watched and self._keys.waiting_for(key):
            self._watched.add(key)
            if self._woken is not None:
                self._woken.set()

    async def run(self) -> None:
        """Look once an interval while requests wait, until cancelled."""
        import anyio  # late: the first replies leave without an event loop

        while True:
            if not self._watched:
                self._woken = anyio.Event()
                await self._woken.wait()
            self._moving.clear()
            await anyio.sleep(INTERVAL_SECONDS)
            for key in self._watched - self._moving:
                for request in self._keys.waiting_for(key):
                    self._refuse(request)
            self._watched = {key for key in self._watched & self._moving if self._keys.waiting_for(key)}
