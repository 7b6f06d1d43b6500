"""The tasks that are in memory, each at most once, from the first user that needs one to the last; and how what is published of
them reaches the store. Decides nothing about tasks and runs nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never, final

from ..a2a.errors import task_not_found
from ..a2a.task import apply_events, size_of_message, size_of_task
from ..a2a.types import ArtifactChanged, Message, Task, TaskEvent, WaitingMessage
from ..change_signal import ChangeSignal
from ..daemon.dispatch.execution import Raised, attempt
from ..daemon.dispatch.metrics import Durations
from ..daemon.logs import log
from ..lazy import anyio
from .live_task import LiveTask, LossReason, TaskMemory
from .stores.failures import log_failure
from .stores.interface import (
    CommitConflict,
    CommitRefusal,
    DamagedTask,
    DamagedTaskError,
    StoredTask,
    StoreFull,
    StoreUnavailableError,
    TaskChange,
    TaskStore,
    Unserializable,
)

if TYPE_CHECKING:
    from ..daemon.tracing import Origin, Tracing


CommitNowait: TypeAlias = Callable[[Sequence[TaskChange]], Sequence[CommitRefusal | None]]

MAX_LOADS: Final = 8
"""Tasks that are loaded at the same time. They count in the memory only when they are there."""


@final
class TaskCache:
    """One per daemon. A task stays in memory while it is pinned, and until the store has all of it. What is published of it is
    committed: at once where the store waits for nothing, else by `run`. To be used on the event loop.

    `durations` are those of the commits, `failed` counts those that the store raised something for.

    `on_push(live, events)` is called, in order, when the store has events of a task with push targets; `on_lost(live)` when a
    task can't be used any more; `on_load(live)` when one was read from the store, and other daemons may change it; `on_idle()`
    when nothing is left to commit.
    """

    def __init__(self, store: TaskStore, memory: TaskMemory | None = None, tracing: Tracing | None = None) -> None:
        self.store: Final = store
        self._memory = memory or TaskMemory()
        self._tracing = tracing
        self._commit_nowait: CommitNowait | None = None
        if hasattr(type(store), "commit_nowait"):  # its own, not that of a store that it wraps
            self._commit_nowait = getattr(store, "commit_nowait")  # noqa: B009 - not of the Protocol
        self._tasks: dict[str, LiveTask] = {}
        self._dirty: dict[LiveTask, Origin] = {}
        """What is to be committed, and for which span: that in which the task changed first."""
        self._committing = False
        self._work_added = ChangeSignal()
        self._loading: dict[str, anyio.Event] = {}
        self._load_limit: anyio.Semaphore | None = None
        self._read_lock: anyio.Lock | None = None
        self.durations: Final = Durations()
        self.failed = 0
        self.on_push: Callable[[LiveTask, Sequence[TaskEvent]], None] = lambda _live, _events: None
        self.on_lost: Callable[[LiveTask], None] = lambda _: None
        self.on_load: Callable[[LiveTask], None] = lambda _: None
        self.on_idle: Callable[[], None] | None = None

    # -- commits -----------------------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether the store has everything."""
        return not (self._dirty or self._committing)

    def _schedule(self, live: LiveTask) -> None:
        """Have this task's changes committed. Chunks of artifacts wait for more of them."""
        if self._commit_nowait is not None and not (live.pending and isinstance(live.pending[-1], ArtifactChanged)):
            self._dirty.pop(live, None)
            self._commit_now(live, self._commit_nowait)
        elif live not in self._dirty:
            self._dirty[live] = None if self._tracing is None else self._tracing.origin()
            self._work_added.notify()

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
            while not self._dirty:
                await self._work_added.wait()
            lives = {live: origin for live, origin in self._dirty.items() if live.lost is None}
            self._dirty.clear()
            if self._commit_nowait is None:
                await self._commit(lives)
            else:
                for live, origin in lives.items():
                    with self._resumed(live, origin):
                        self._commit_now(live, self._commit_nowait)
            if not self._dirty and self.on_idle is not None:
                self.on_idle()

    async def _commit(self, lives: Mapping[LiveTask, Origin]) -> None:
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
            with self._resumed(live, origin):
                self._finish(live, change, refusal)

    def _resumed(self, live: LiveTask, origin: Origin) -> AbstractContextManager[object]:
        """What is pushed belongs to what has changed the task."""
        return nullcontext() if self._tracing is None or not live.push_targets else self._tracing.resumed(origin)

    async def _store_all(
        self, changes: Sequence[TaskChange], origins: Sequence[Origin]
    ) -> Sequence[CommitRefusal | None] | Raised:
        """What the store says to each; or what it raised, whatever that is: other tasks go on."""
        if self._tracing is None or not self.store.durable:  # in memory there is nothing to wait for
            return await attempt(lambda: self.store.commit(changes))
        span = self._tracing.commit(origins)
        try:
            with span.entered():
                results = await attempt(lambda: self.store.commit(changes))
            if isinstance(results, Raised):
                span.record_error(type(results.exc).__name__)
            return results
        finally:
            span.end()

    def _finish(self, live: LiveTask, change: TaskChange, refusal: CommitRefusal | None) -> None:
        match refusal:
            case None:
                live.mark_committed(change)
                if live.push_targets:
                    self.on_push(live, change.events)
                if not (live.pins or live.pending):
                    self.evict(live)
            case CommitConflict():
                log.warning("task.taken_over", task=live.id, generation=refusal.generation)
                self.lose(live, "conflict")
            case StoreFull():
                self.lose(live, "full")
            case Unserializable():
                log.error("task.unstorable", task=live.id)
                self.lose(live, "unstorable")
            case DamagedTask(reason):
                log_failure(DamagedTaskError(reason))
                self.lose(live, "failed")
            case _:
                assert_never(refusal)

    def _fail(self, lives: Iterable[LiveTask], exc: BaseException) -> None:
        self.failed += 1
        log_failure(exc)
        for live in lives:
            self.lose(live, "unavailable" if isinstance(exc, StoreUnavailableError) else "failed")

    def lose(self, live: LiveTask, reason: LossReason) -> None:
        """Drop what the store does not have of a task; the next user loads it again."""
        live.lose(reason)
        self.evict(live)
        self.on_lost(live)

    # -- tasks in memory ---------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[LiveTask]:
        return iter([*self._tasks.values()])

    def find(self, task_id: str, scope: str | None) -> LiveTask | None:
        """The task if it is in memory. It is not pinned. `scope` None is for the daemon itself."""
        live = self._tasks.get(task_id)
        return live if live is not None and scope in (None, live.scope) and live.generation else None

    def create(self, task: Task, scope: str) -> LiveTask:
        """A new task, pinned. Raises `FailureError(Overloaded)` where there is no memory for it."""
        size = size_of_task(task)
        self._memory.check(size)
        live = self._new(task, 0, scope, size=size)
        live.pins = 1
        self._tasks[task.id] = live
        return live

    def check_memory(self, message: Message) -> None:
        """Raises `FailureError(Overloaded)` where there is no memory for one more message of a task."""
        self._memory.check(size_of_message(message))

    def count_message(self, message: Message, times: int) -> None:
        """Count a message that is in memory beside its task; with `times` -1 no more."""
        self._memory.add_task(times * size_of_message(message))

    async def pin(self, task_id: str, scope: str | None) -> LiveTask:
        """The task, in memory until `unpin`. `scope` None is for the daemon itself.

        Raises `FailureError(TaskNotFound)`, and `StoreError`.
        """
        live = self._tasks.get(task_id) or await self._load(task_id)
        if live is None or not live.generation or scope not in (None, live.scope):
            raise task_not_found(task_id)
        live.pins += 1
        return live

    def unpin(self, live: LiveTask) -> None:
        """Undo `pin` or `create`."""
        live.pins -= 1
        if not (live.pins or live.pending):
            self.evict(live)

    @asynccontextmanager
    async def pinned(self, task_id: str, scope: str | None) -> AsyncIterator[LiveTask]:
        """`pin` and `unpin` around a block."""
        live = await self.pin(task_id, scope)
        try:
            yield live
        finally:
            self.unpin(live)

    async def read(self, task_id: str, scope: str) -> Task:
        """The task as it is in the store; it does not enter the cache. Raises `FailureError(TaskNotFound)`."""
        stored = await (self._load_alone(task_id) if self.store.durable else self.store.load(task_id))
        if stored is None or stored.scope != scope:
            raise task_not_found(task_id)
        if not stored.later_events:
            return stored.snapshot
        return apply_events(stored.snapshot, [logged.event for logged in stored.later_events])

    async def _load_alone(self, task_id: str) -> StoredTask | None:
        """Load one task at a time: until its reply is counted, a task that was read from the disk counts nowhere."""
        if self._read_lock is None:
            self._read_lock = anyio.Lock(fast_acquire=True)
        async with self._read_lock:
            return await self.store.load(task_id)

    async def _load(self, task_id: str) -> LiveTask | None:
        """Load a task once at a time: else it could be loaded, changed and evicted while an older state of it is still read."""
        while (loading := self._loading.get(task_id)) is not None:
            await loading.wait()
        if (live := self._tasks.get(task_id)) is not None:
            return live
        loading = self._loading[task_id] = anyio.Event()
        if self._load_limit is None:
            self._load_limit = anyio.Semaphore(MAX_LOADS, fast_acquire=True)
        try:
            async with self._load_limit:
                return await self._load_now(task_id)
        finally:
            del self._loading[task_id]
            loading.set()

    async def _load_now(self, task_id: str) -> LiveTask | None:
        stored = await self.store.load(task_id)
        if stored is None:
            return None
        push_targets = await self.store.load_push_targets(task_id)
        live = self._new(stored.snapshot, stored.snapshot_generation, stored.scope, stored.waiting)
        for logged in stored.later_events:
            live.append_stored(logged)
        live.stop_generation = 0
        live.push_targets = push_targets
        if not live.ended:
            live.owned = stored.owner == self.store.owner_id
            live.remote_owner = None if live.owned else stored.owner
        self._tasks[task_id] = live
        if live.shared:
            self.on_load(live)
        return live

    def _new(
        self,
        task: Task,
        generation: int,
        scope: str,
        waiting: Sequence[WaitingMessage] = (),
        *,
        size: int | None = None,
    ) -> LiveTask:
        owner_id = self.store.owner_id
        return LiveTask(task, generation, scope, owner_id, self._schedule, self._memory, waiting, size=size)

    def evict(self, live: LiveTask) -> None:
        """The next user of this task loads it from the store."""
        if self._tasks.get(live.id) is live:
            del self._tasks[live.id]
            live.forget()
