"""Reads one task's events in order: from its buffer, and from the store where the buffer has dropped them.

Every turn of its loop returns events, raises, or waits for the task to change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from ...a2a.errors import EventsLost
from ..stores.interface import EventLog, LoggedEvent, LogTruncatedError
from .live_task import LiveTask, raise_if_lost


@final
class EventReader:
    """Reads the events that are published from now on, or those after the generation `after`, which the task has reached. It
    must be closed."""

    def __init__(self, live: LiveTask, log: EventLog, *, after: int | None = None) -> None:
        self._live = live
        self._log = log
        self._watcher = live.watch()
        if after is not None:
            self._watcher.position = after
        self._closed = False
        log.retain(live.id)

    async def next_batch(self, is_over: Callable[[], bool] = lambda: False) -> Sequence[LoggedEvent]:
        """Wait for the next events. None is skipped and none comes twice.

        Empty once the task has ended or `is_over()`, and everything was read. Raises `EventsLost` where the store does not
        keep the next event any more, or has deleted the task, and what `raise_if_lost` raises.
        """
        live, watcher = self._live, self._watcher
        while True:
            committed = live.committed
            batch = await self._read(committed)
            if batch:
                return batch
            raise_if_lost(live)
            if watcher.position >= live.generation and (live.ended or is_over()):
                return ()
            if live.committed == committed:  # else it was committed while the store was read
                await live.wait_for_change()

    async def _read(self, committed: int) -> Sequence[LoggedEvent]:
        """The next events up to `committed`, none only where there are none. Raises `EventsLost`."""
        is_behind = self._watcher.position < committed
        buffered = self._watcher.take(committed)
        if buffered or not (is_behind or self._live.lost == "behind"):
            return buffered or ()
        batch = await self._read_store()
        if is_behind and not batch:
            raise EventsLost(taskId=self._live.id, lastGeneration=committed)
        return batch

    async def _read_store(self) -> Sequence[LoggedEvent]:
        try:
            batch = await self._log.read(self._live.id, after=self._watcher.position)
        except LogTruncatedError as exc:
            last_generation = max(exc.generation, self._live.committed)  # the store may have deleted the task
            raise EventsLost(taskId=self._live.id, lastGeneration=last_generation) from None
        if batch:
            self._watcher.position = batch[-1].generation
        return batch

    def close(self) -> None:
        """Closing it again does nothing."""
        if not self._closed:
            self._closed = True
            self._watcher.close()
            self._log.release(self._live.id)
