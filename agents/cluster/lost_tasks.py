"""Fails the tasks that this daemon has lost, as the store has them: none may look as if somebody still worked on it."""

from __future__ import annotations

from functools import partial
from typing import Final, final

from ...a2a.errors import TaskConflict
from ...a2a.states import INACTIVE
from ...a2a.types import Part
from ...errors.exceptions import FailureError
from ...lazy import anyio
from ..stores.interface import DamagedTaskError, StoreError
from ..tasks.live_task import LiveTask, wait_committed
from ..tasks.runner import Spawn
from ..tasks.status_messages import AGENT_FAILED_TEXT, fail_task
from ..tasks.task_cache import TaskCache

RETRY_SECONDS: Final = 1.0
"""The first pause before a store that has failed is tried again."""

MAX_RETRY_SECONDS: Final = 60.0
"""The longest pause."""


@final
class LostTasks:
    """One per daemon."""

    def __init__(self, cache: TaskCache, spawn: Spawn) -> None:
        self._cache = cache
        self._spawn = spawn

    def add(self, live: LiveTask) -> None:
        """Have a lost task failed in the store, unless another daemon has it or the store never took it.

        One of a store that was away needs nothing: its owner is dead, so that it is taken over, and may be resumed.
        """
        if live.lost == "unstorable":
            self._spawn(partial(self._fail_when_possible, live.id, 0.0))
        elif live.lost == "failed":
            self._spawn(partial(self._fail_when_possible, live.id, RETRY_SECONDS))

    async def _fail_when_possible(self, task_id: str, pause: float) -> None:
        while True:
            await anyio.sleep(pause)
            try:
                return await self._fail(task_id)
            except (FailureError, TaskConflict):  # the store never had it; or it was lost again, and is added again
                return
            except DamagedTaskError:  # it stays so
                return
            except StoreError:
                pause = min(2 * pause + RETRY_SECONDS, MAX_RETRY_SECONDS)

    async def _fail(self, task_id: str) -> None:
        async with self._cache.pinned(task_id, None) as live:
            if not (live.busy or live.remote or live.state in INACTIVE):
                fail_task(live, Part(text=AGENT_FAILED_TEXT))
                await wait_committed(live)
