"""Brings what was published into the store, all tasks' changes together, and tells the push notifications of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, assert_never, final

from ...dispatch import execution
from ...logs import log
from ..model.types import Event
from ..stores.interface import ConflictError, Refusal, StoreFullError, TaskStore, UnstorableError
from .live_task import LiveTask, Lost

if TYPE_CHECKING:
    import anyio


@final
class Committer:
    """One per store. `on_committed(live, events)` is called for what the store has taken, in order, `on_lost(live)` for a task
    that it does not take."""

    def __init__(
        self,
        store: TaskStore,
        on_committed: Callable[[LiveTask, Sequence[Event]], None],
        on_lost: Callable[[LiveTask], None],
    ) -> None:
        self._store = store
        self._on_committed = on_committed
        self._on_lost = on_lost
        self._dirty: dict[LiveTask, None] = {}
        self._committing = False
        self.on_idle: Callable[[], None] = lambda: None
        self._woken: anyio.Event | None = None

    @property
    def idle(self) -> bool:
        """True when the store has everything."""
        return not (self._dirty or self._committing)

    def publish(self, live: LiveTask) -> None:
        """Something is to be committed. On the loop."""
        self._dirty.setdefault(live)
        if self._woken is not None:
            self._woken.set()

    async def run(self) -> None:
        """Commit what comes, until cancelled."""
        import anyio  # late: the first replies leave without an event loop

        while True:
            if not self._dirty:
                self._woken = anyio.Event()
                await self._woken.wait()
            await self._commit()
            if not self._dirty:
                self.on_idle()

    async def _commit(self) -> None:
        lives = [live for live in self._dirty if live.lost is None]
        self._dirty.clear()
        changes = [live.change() for live in lives]
        results: list[Refusal | None] = []

        async def commit() -> None:
            results.extend(await self._store.commit(changes))

        self._committing = True
        try:
            fault = await execution.attempt(commit)  # whatever a store raises, the tasks of others go on
        finally:
            self._committing = False
        if fault is not None:
            log.error("store.failed", exc=fault)
            for live in lives:
                self._lose(live, "failed")
            return
        for live, change, refusal in zip(lives, changes, results, strict=True):
            match refusal:
                case None:
                    live.took(change)
                    self._on_committed(live, change.events)
                case ConflictError():
                    log.warning("task.taken_over", task=live.id, generation=refusal.last)
                    self._lose(live, "conflict")
                case StoreFullError():
                    self._lose(live, "full")
                case UnstorableError():
                    log.error("task.unstorable", task=live.id)
                    self._lose(live, "unstorable")
                case _:
                    assert_never(refusal)

    def _lose(self, live: LiveTask, why: Lost) -> None:
        live.lose(why)
        self._on_lost(live)
