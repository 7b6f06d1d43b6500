"""What other daemons have changed, and nobody has taken notice of yet. Filled by one thread, emptied on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final, final

from ...lazy import anyio
from .interface import Changes

MAX_NAMES: Final = 65_536
"""Names that are collected before all tasks count as changed."""


def _same(task_id: str) -> str:
    return task_id


@final
class ChangeFeed:
    """Bounded. Any thread may add. `name_of(task_id)` is how those name a task who add it."""

    def __init__(self, name_of: Callable[[str], str] = _same) -> None:
        self._name_of = name_of
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._everything = self._requests = self._queued = False
        self._call_on_loop: Callable[[Callable[[], None]], None] | None = None
        self._waiting: anyio.Event | None = None

    def attach(self, call_on_loop: Callable[[Callable[[], None]], None]) -> None:
        """Wake whoever waits on the event loop that runs what is handed to this function."""
        self._call_on_loop = call_on_loop

    def add(self, names: Iterable[str] | None, *, requests: bool, queued: bool) -> None:
        """The tasks of these names have changed (None: any may have); there may be requests to this daemon, tasks to claim."""
        with self._lock:
            is_first = not self._has_news()
            self._everything = self._everything or names is None
            if names is not None and not self._everything:
                self._names.update(names)
                self._everything = len(self._names) > MAX_NAMES
            if self._everything:
                self._names.clear()
            self._requests = self._requests or requests
            self._queued = self._queued or queued
        if is_first and self._call_on_loop is not None:  # else it was woken, and has not come yet
            self._call_on_loop(self._wake)

    def add_everything(self) -> None:
        """Anything may have happened."""
        self.add(None, requests=True, queued=True)

    def _has_news(self) -> bool:
        return bool(self._everything or self._names or self._requests or self._queued)

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.set()

    async def wait(self) -> Changes:
        """What was added since this last returned. Where it is cancelled, that is kept."""
        while True:
            self._waiting = anyio.Event()  # before it looks: what comes afterwards wakes it
            changes = self._take()
            if changes is not None:
                return changes
            await self._waiting.wait()

    def _take(self) -> Changes | None:
        with self._lock:
            if not self._has_news():
                return None
            names, everything = frozenset(self._names), self._everything
            changes = Changes(
                lambda task_id: everything or self._name_of(task_id) in names, self._requests, self._queued
            )
            self._names.clear()
            self._everything = self._requests = self._queued = False
        return changes
