"""What tells that a service's operations are others than before, while it is served. Operations themselves never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class Changes:
    """Tells those who serve a service that its operations are others than before, in the thread that changes them."""

    def __init__(self) -> None:
        self._watchers: list[Callable[[], None]] = []

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have `watcher()` called behind each change."""
        self._watchers.append(watcher)

    def leave(self, watcher: Callable[[], None]) -> None:
        """Call it no more."""
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def announce(self) -> None:
        """The operations were replaced."""
        for watcher in [*self._watchers]:
            watcher()
