"""The tasks that are in memory: each at most once, from the first who needs it to the last."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, final

from ....errors.exceptions import FailureError
from ....errors.failures import TaskNotFound
from ..model.ids import is_new_id
from ..model.states import RESTING
from ..model.types import Task
from ..stores.interface import Stored, TaskStore
from .event_buffer import Budget
from .live_task import LiveTask

if TYPE_CHECKING:
    import anyio


@final
class TaskCache:
    """Who needs a task holds it (`users`) and lets go of it by `release`. On the loop."""

    def __init__(self, store: TaskStore, on_publish: Callable[[LiveTask], None]) -> None:
        self._store = store
        self._on_publish = on_publish
        self._lives: dict[str, LiveTask] = {}
        self._budget = Budget()
        self._bringing: anyio.Lock | None = None
        self.on_load: Callable[[], None] = lambda: None
        """Called for a task that has come from the store and that other daemons may change."""
        self.loaded = 0
        """How many tasks have come from the store so far."""

    def __iter__(self) -> Iterator[LiveTask]:
        return iter([*self._lives.values()])

    def find(self, task_id: str, scope: str) -> LiveTask | None:
        """The task if it is in memory, without holding it."""
        live = self._lives.get(task_id)
        return live if live is not None and live.scope == scope and live.generation else None

    def create(self, task: Task, scope: str) -> LiveTask:
        """A task that nobody knows of yet, held."""
        live = self._made(task, 0, scope)
        live.users = 1
        self._lives[task.id] = live
        return live

    async def hold(self, task_id: str, scope: str | None) -> LiveTask:
        """The task, in memory and held. `scope` None is for the daemon itself. Raises `FailureError(TaskNotFound)`."""
        live = self._lives.get(task_id) or await self._bring(task_id)
        if live is None or not live.generation or scope not in (None, live.scope):
            raise not_found(task_id)
        live.users += 1
        return live

    @asynccontextmanager
    async def held(self, task_id: str, scope: str | None) -> AsyncIterator[LiveTask]:
        """`hold` and `release` around what is done with it."""
        live = await self.hold(task_id, scope)
        try:
            yield live
        finally:
            self.release(live)

    async def load(self, task_id: str, scope: str) -> Stored:
        """The task as it is stored, for those who only look. Raises `FailureError(TaskNotFound)`."""
        stored = await self._store.load(task_id)
        if stored is None or stored.scope != scope:
            raise not_found(task_id)
        return stored

    async def _bring(self, task_id: str) -> LiveTask | None:
        """One task at a time: what was read must not have come, changed and gone again before it is here."""
        import anyio  # late: the first replies leave without an event loop

        if self._bringing is None:
            self._bringing = anyio.Lock(fast_acquire=True)
        async with self._bringing:
            return self._lives.get(task_id) or await self._load(task_id)

    async def _load(self, task_id: str) -> LiveTask | None:
        stored = await self._store.load(task_id)
        if stored is None:
            return None
        targets = await self._store.targets(task_id)
        live = self._made(stored.snapshot, stored.reflects, stored.scope)
        for logged in stored.later:
            live.follow(logged)
        live.rested = 0
        live.targets = targets
        if stored.owner != self._store.owner and live.state not in RESTING:
            live.keeper = stored.owner
        self._lives[task_id] = live
        self.loaded += 1
        if live.shared:
            self.on_load()
        return live

    def _made(self, task: Task, generation: int, scope: str) -> LiveTask:
        return LiveTask(task, generation, scope, self._store.owner, self._on_publish, self._budget)

    def release(self, live: LiveTask) -> None:
        """Undo `hold` or `create`."""
        live.users -= 1
        self.tidy(live)

    def tidy(self, live: LiveTask) -> None:
        """Forget a task that nobody needs, once the store has all of it."""
        if not (live.users or live.pending):
            self.forget(live)

    def forget(self, live: LiveTask) -> None:
        """Whoever needs this task next gets it from the store."""
        if self._lives.get(live.id) is live:
            del self._lives[live.id]


def not_found(task_id: str) -> FailureError:
    return FailureError(
        TaskNotFound(
            task_id=task_id if is_new_id(task_id) else None,
            suggestion="The task may have been removed. Send a new message.",
        )
    )
