"""Brings published events into the store, those of all tasks together. Decides nothing about tasks and runs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never, final

from ...a2a.types import ArtifactChanged, TaskEvent
from ...daemon.dispatch.execution import Raised, attempt
from ...daemon.dispatch.request import Durations
from ...daemon.logs import log
from ...lazy import anyio
from ..stores.failures import log_failure
from ..stores.interface import (
    CommitConflict,
    CommitRefusal,
    DamagedTask,
    DamagedTaskError,
    StoreFull,
    StoreUnavailableError,
    TaskChange,
    TaskStore,
    Unserializable,
)
from .live_task import LiveTask, LossReason

if TYPE_CHECKING:
    from ...daemon.tracing.tracing import Origin, Tracing


CommitNowait: TypeAlias = Callable[[Sequence[TaskChange]], Sequence[CommitRefusal | None]]


@final
class Committer:
    """One per store. `durations` are those of its commits, `failed` counts those that it raised something for.

    `on_committed(live, events)` is called, in order, when the store has a task's events; `on_lost(live)` when it did not
    take them; `on_idle()` when nothing is left to commit.
    """

    def __init__(
        self,
        store: TaskStore,
        on_committed: Callable[[LiveTask, Sequence[TaskEvent]], None],
        on_lost: Callable[[LiveTask], None],
        tracing: Tracing | None = None,
    ) -> None:
        self._store = store
        self._commit_nowait: CommitNowait | None = None
        if hasattr(type(store), "commit_nowait"):  # its own, not that of a store that it wraps
            self._commit_nowait = getattr(store, "commit_nowait")  # noqa: B009 - not of the Protocol
        self._on_committed = on_committed
        self._on_lost = on_lost
        self._tracing = tracing
        self._dirty: dict[LiveTask, Origin] = {}
        """What is to be committed, and for which span: that in which the task changed first."""
        self._committing = False
        self.durations: Final = Durations()
        self.failed = 0
        self._work_added: anyio.Event | None = None
        self.on_idle: Callable[[], None] | None = None

    @property
    def idle(self) -> bool:
        """Whether the store has everything."""
        return not (self._dirty or self._committing)

    def schedule(self, live: LiveTask) -> None:
        """Have this task's changes committed: at once where the store waits for nothing. Chunks of artifacts wait for more of
        them. To be called on the event loop.
        """
        if self._commit_nowait is not None and not (live.pending and isinstance(live.pending[-1], ArtifactChanged)):
            self._dirty.pop(live, None)
            self._commit_now(live, self._commit_nowait)
        elif live not in self._dirty:
            self._dirty[live] = None if self._tracing is None else self._tracing.origin()
            if self._work_added is not None:
                self._work_added.set()

    def _commit_now(self, live: LiveTask, commit_nowait: CommitNowait) -> None:
        change = live.next_change()
        began = monotonic()
        try:
            refusals = commit_nowait((change,))
        except Exception as exc:  # noqa: BLE001 - a fault of the store, as in `_commit`: other tasks go on
            return self._fail([live], exc)
        self.durations.add(monotonic() - began)
        self._finish(live, change, refusals[0])

    async def run(self) -> None:
        """Commit what is scheduled, until cancelled."""
        while True:
            if not self._dirty:
                self._work_added = anyio.Event()
                await self._work_added.wait()
            if self._dirty:  # else it was committed at once
                await self._commit()
            if not self._dirty and self.on_idle is not None:
                self.on_idle()

    async def _commit(self) -> None:
        lives = {live: origin for live, origin in self._dirty.items() if live.lost is None}
        self._dirty.clear()
        changes = [live.next_change() for live in lives]
        self._committing = True
        began = monotonic()
        try:
            results = await self._store_all(changes, [*lives.values()])
        finally:
            self._committing = False
        self.durations.add(monotonic() - began)
        if isinstance(results, Raised):
            return self._fail(lives, results.exc)
        for (live, origin), change, refusal in zip(lives.items(), changes, results, strict=True):
            if self._tracing is None or not live.push_targets:
                self._finish(live, change, refusal)
            else:  # what is pushed belongs to what has changed the task
                with self._tracing.resumed(origin):
                    self._finish(live, change, refusal)

    async def _store_all(
        self, changes: Sequence[TaskChange], origins: Sequence[Origin]
    ) -> Sequence[CommitRefusal | None] | Raised:
        """What the store says to each; or what it raised, whatever that is: other tasks go on."""
        if self._tracing is None or not self._store.durable:  # in memory there is nothing to wait for
            return await attempt(lambda: self._store.commit(changes))
        span = self._tracing.commit(origins)
        try:
            with span.entered():
                results = await attempt(lambda: self._store.commit(changes))
            if isinstance(results, Raised):
                span.record_error(type(results.exc).__name__)
            return results
        finally:
            span.end()

    def _finish(self, live: LiveTask, change: TaskChange, refusal: CommitRefusal | None) -> None:
        match refusal:
            case None:
                live.mark_committed(change)
                self._on_committed(live, change.events)
            case CommitConflict():
                log.warning("task.taken_over", task=live.id, generation=refusal.generation)
                self._lose(live, "conflict")
            case StoreFull():
                self._lose(live, "full")
            case Unserializable():
                log.error("task.unstorable", task=live.id)
                self._lose(live, "unstorable")
            case DamagedTask(reason):
                log_failure(DamagedTaskError(reason))
                self._lose(live, "failed")
            case _:
                assert_never(refusal)

    def _fail(self, lives: Iterable[LiveTask], exc: BaseException) -> None:
        self.failed += 1
        log_failure(exc)
        for live in lives:
            self._lose(live, "unavailable" if isinstance(exc, StoreUnavailableError) else "failed")

    def _lose(self, live: LiveTask, reason: LossReason) -> None:
        live.lose(reason)
        self._on_lost(live)
