"""What other daemons have changed, and nobody has taken notice of yet. Filled by one thread, emptied on the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final, final

from ....lazy import anyio
from .interface import Changes

MAX_TASKS: Final = 65_536
"""Names that are collected before all tasks count as changed."""


@final
class ChangeInbox:
    """Bounded. Any thread may add."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: set[str] = set()
        self._everything = self._requests = self._queued = False
        self._call_on_loop: Callable[[Callable[[], None]], None] | None = None
        self._waiting: anyio.Event | None = None

    def attach(self, call_on_loop: Callable[[Callable[[], None]], None]) -> None:
        """Wake whoever waits on the event loop that runs what is handed to this function."""
        self._call_on_loop = call_on_loop

    def add(self, tasks: Iterable[str] | None, *, requests: bool, queued: bool) -> None:
        """These tasks have changed (None: any may have); there may be requests to this daemon, and tasks to claim."""
        with self._lock:
            self._everything = self._everything or tasks is None
            if tasks is not None and not self._everything:
                self._tasks.update(tasks)
                self._everything = len(self._tasks) > MAX_TASKS
            if self._everything:
                self._tasks.clear()
            self._requests = self._requests or requests
            self._queued = self._queued or queued
        if self._call_on_loop is not None:
            self._call_on_loop(self._wake)

    def add_everything(self) -> None:
        """Anything may have happened."""
        self.add(None, requests=True, queued=True)

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
            if not (self._everything or self._tasks or self._requests or self._queued):
                return None
            tasks, everything = frozenset(self._tasks), self._everything
            changes = Changes(lambda task_id: everything or task_id in tasks, self._requests, self._queued)
            self._tasks.clear()
            self._everything = self._requests = self._queued = False
        return changes
