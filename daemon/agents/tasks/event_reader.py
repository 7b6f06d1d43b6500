"""Reads one task's events in order: from its buffer, and from the store where the buffer has dropped them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from ..errors import EventsLost
from ..stores.interface import EventLog, LoggedEvent, LogTruncatedError
from .live_task import LiveTask, raise_if_lost


@final
class EventReader:
    """Reads the events that are published from now on. It must be closed."""

    def __init__(self, live: LiveTask, log: EventLog) -> None:
        self._live = live
        self._log = log
        self._watcher = live.watch()

    async def next_batch(self, is_over: Callable[[], bool] = lambda: False) -> Sequence[LoggedEvent]:
        """Wait for the next events. None is skipped and none comes twice.

        Empty once the task has ended or `is_over()`, and everything was read. Raises `EventsLost` where the store does not
        keep the next event any more, and what `raise_if_lost` raises.
        """
        live, watcher = self._live, self._watcher
        while True:
            buffered = watcher.take(live.committed)
            batch = await self._read_store() if buffered is None else buffered
            if not batch and live.lost == "behind":
                batch = await self._read_store()  # raises `EventsLost` where events are missing
            if batch:
                return batch
            raise_if_lost(live)
            if watcher.position >= live.generation and (live.ended or is_over()):
                return ()
            if watcher.position >= live.committed:  # else it was committed while the store was read
                await live.wait_for_change()

    async def _read_store(self) -> Sequence[LoggedEvent]:
        try:
            batch = await self._log.read(self._live.id, after=self._watcher.position)
        except LogTruncatedError as exc:
            raise EventsLost(taskId=self._live.id, lastGeneration=exc.generation) from None
        if batch:
            self._watcher.position = batch[-1].generation
        return batch

    def close(self) -> None:
        self._watcher.close()
