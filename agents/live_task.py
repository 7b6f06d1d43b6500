"""Holds the tasks in memory, each at most once, from the first user that needs one to the last: its state, the events that the
store does not have yet, how they get there, and its watchers.

A published event changes the task at once, but is shown only once the store has it. A task that does not fit into the
memory is refused. Runs nothing but commits, and never waits for a watcher.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, assert_never, final

import msgspec

from ..a2a.errors import EventsLost, InvalidStateTransition, TaskConflict, task_not_found
from ..a2a.task import (
    NOT_EXECUTED_TEXT,
    TaskDraft,
    addressed,
    apply_events,
    check_same_content,
    size_of_artifact,
    size_of_event,
    size_of_message,
    size_of_step,
    size_of_task,
)
from ..a2a.types import (
    INACTIVE,
    INTERRUPTED,
    TERMINAL,
    TRANSITIONS,
    Artifact,
    ArtifactChanged,
    CallFacts,
    ExecutionBegun,
    JsonObject,
    Message,
    MessageAdded,
    MessageRefused,
    Part,
    Role,
    StatusChanged,
    Step,
    StepStored,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
    TaskStatus,
    WaitingMessage,
    new_id,
    now,
)
from ..change_signal import ChangeSignal
from ..daemon.dispatch.execution import Raised, attempt
from ..daemon.dispatch.metrics import Durations
from ..daemon.logs import log
from ..daemon.memory import SMALL, MemoryBudget
from ..errors.exceptions import FailureError
from ..errors.failures import Internal, InvalidAgentResponse, Overloaded, Unavailable
from ..lazy import anyio
from .event_buffer import EventBuffer
from .stores.failures import log_failure
from .stores.interface import (
    QUEUED,
    ClaimedTask,
    CommitConflict,
    CommitRefusal,
    DamagedTask,
    DamagedTaskError,
    EventLog,
    LoggedEvent,
    LogTruncatedError,
    PushTarget,
    StoredTask,
    StoreFull,
    StoreUnavailableError,
    TaskChange,
    TaskStore,
    Unserializable,
)

if TYPE_CHECKING:
    from ..daemon.tracing import Origin, Tracing

TASKS_SHARE: Final = 0.75
"""How much of the budget tasks may take: the rest stays for the requests that read and cancel them."""

MAX_TOTAL_BYTES: Final = 512 * 1024 * 1024
"""The limit of the buffers of all tasks together. The buffer that is added to beyond it drops its own oldest events."""


@final
class TaskMemory:
    """One per daemon. Counts the tasks that are in use, the buffers of their watchers, and the tasks of a store in memory.

    Without a `budget` nothing is refused. Each byte of a task that is in use is in memory twice: in a store in memory, which
    counts it itself, or else (`durable`) in encoded form on its way to or from the store. `free(size)` has the store delete
    ended tasks.
    """

    __slots__ = ("_budget", "_buffered", "_copies", "_free")

    def __init__(
        self, budget: MemoryBudget | None = None, *, durable: bool = False, free: Callable[[int], None] = lambda _: None
    ) -> None:
        self._budget = budget
        self._copies = 2 if durable else 1
        self._free = free
        self._buffered = 0

    def add_task(self, size: int) -> None:
        """Count so many bytes more of a task in use; fewer where `size` is negative."""
        if self._budget is not None and size:
            self._budget.add("tasks", size * self._copies)

    def add_buffered(self, size: int) -> bool:
        """Count so many bytes more in the buffers of watchers. Returns whether a buffer that grows must drop something."""
        budget = self._budget
        self._buffered += size
        if budget is None:
            return self._buffered > MAX_TOTAL_BYTES
        if size:
            budget.add("tasks", size)
        return self._buffered > MAX_TOTAL_BYTES or not budget.fits_in_share("tasks", 0, TASKS_SHARE)

    def check(self, size: int) -> None:
        """Raises `FailureError(Overloaded)` unless a task may take so many bytes more. Ended tasks make room first."""
        wanted, budget = 2 * size, self._budget
        if budget is None or budget.fits_in_share("tasks", wanted, TASKS_SHARE):
            return
        self._free(wanted)
        if not budget.fits_in_share("tasks", wanted, TASKS_SHARE):
            raise FailureError(Overloaded())


UNCOUNTED: Final = TaskMemory()

LossReason: TypeAlias = Literal["conflict", "behind", "full", "unstorable", "failed", "unavailable"]
"""Why a task in memory can't be used any more.

`conflict`: another daemon has changed it. `behind`: another daemon works on it, and the events in between are gone.
`full`: the store has no space. `unstorable`: an event is not JSON. `failed`: the store failed.
`unavailable`: its server is away.
"""

RETRY_AFTER_MS: Final = 1000
"""The time that callers are told to wait for a server that is away: about the pause between two attempts to reach it."""

MAX_LOSSES: Final = 8
"""How often in a row a call goes on after its task was lost to another daemon."""

_SNAPSHOT_BYTES: Final = 1024 * 1024
"""A task that is worked on gets a snapshot after at least so many bytes of events."""

_UNOWNED_SNAPSHOT_BYTES: Final = 16 * 1024
"""A task that waits for its caller gets one sooner: it leaves memory, and its next user reads the events too."""


@final
class LiveTask:
    """A task in memory. `generation` is the number of its last event, `committed` that of the last one in the store.

    A task *stops* when it ends or waits for its caller. `stop_generation` is the event by which it stopped last, 0 where it
    has not since it was loaded, and `stopped_task` the task at that event. `turn` is the place of the message whose execution
    began last, where that is known; each of `stop_watches` is called when the task stops.

    `waiting` are its messages whose execution is not over; `begun` has the generation by which each execution began last, by
    the message's place in the history: since it was loaded, and of what was waiting then. `received` has the places of its
    callers' messages by their ids, and by the keys of their calls as far as `begun` does. `busy` is set by the runner while this
    daemon executes something for it, or is about to. `pins` counts the users that need it in memory, `expected` messages that
    another daemon is to publish, `refused` the errors of those that it does not take, by their keys, `asking` how often its
    execution waits for the client, and `resting` how often so that another daemon can go on with it.

    `size` is that of the task, where it is known, and `steps_size` that of the steps of its execution.

    `local_owner` is this daemon's name in the store, and `owned` says that the store has it as the owner; `remote_owner` is
    another daemon that works on the task, `QUEUED` where one is still to be found, empty where it is unknown which one.
    `lost` says why nothing can be published any more. Its size counts in `memory` until `forget`.
    """

    def __init__(
        self,
        task: Task,
        generation: int,
        scope: str,
        local_owner: str,
        on_publish: Callable[[LiveTask], None],
        memory: TaskMemory | None = None,
        waiting: Sequence[WaitingMessage] = (),
        *,
        size: int | None = None,
    ) -> None:
        self._changed: ChangeSignal | None = None
        self.memory = memory or UNCOUNTED
        self._on_publish = on_publish
        self._draft = TaskDraft(task, waiting)
        self.task: Final = self._draft.freeze  # the task as of `generation`
        self.id: Final = task.id
        self.context_id: Final = task.context_id
        self.state = task.status.state
        self.ended = self.state in TERMINAL
        self.waiting: Final[Sequence[WaitingMessage]] = self._draft.waiting
        self._artifact_sizes: dict[str, int] = {}
        for artifact in task.artifacts:
            self._artifact_sizes[artifact.artifact_id] = size_of_artifact(artifact)
        self.steps_size = sum(size_of_step(step) for each in waiting for step in each.steps) if waiting else 0
        self._snapshot_bytes = self._size = self.steps_size + (size_of_task(task) if size is None else size)
        self.memory.add_task(self._size)
        self._bytes_since_snapshot = 0
        self._queued = False
        self.expected = self.asking = self.resting = 0
        self.refused: Final[dict[str, JsonObject | None]] = {}
        self.begun: dict[int, int] = {}
        self.received: dict[str, int] = {}
        for each in waiting:
            if each.begun:
                self.begun[each.position] = generation
            if each.call.key:
                self.received[each.call.key] = each.position
        for position, message in enumerate(task.history):
            self._receive(message, position)
        self.scope = scope
        self.generation = generation
        self.committed = generation
        self.pending: list[TaskEvent] = []
        self.stop_generation = 0
        self.stopped_task: Task | None = None
        self.turn: int | None = None
        self.stop_watches: Final[list[Callable[[], None]]] = []
        self.local_owner = local_owner
        self.remote_owner: str | None = None
        self.owned = False
        self.lost: LossReason | None = None
        self.busy = False
        self.pins = 0
        self.buffer: EventBuffer | None = None
        self.push_targets: Sequence[PushTarget] = ()

    def notify(self) -> None:
        """Wake everybody in `wait_for_change`."""
        if self._changed is not None:
            self._changed.notify()

    async def wait_for_change(self) -> None:
        """Wait for the next `notify`."""
        if self._changed is None:
            self._changed = ChangeSignal()
        await self._changed.wait()

    @property
    def status(self) -> TaskStatus:
        return self._draft.status

    @property
    def remote(self) -> bool:
        """Whether another daemon works on it."""
        return self.remote_owner is not None

    @property
    def shared(self) -> bool:
        """Whether another daemon may change it: because that one works on it, or because none does."""
        return self.remote or self.released

    @property
    def released(self) -> bool:
        """Whether the store has it as waiting for its caller, without an owner. Any daemon may then go on with it."""
        return self.state in INTERRUPTED and not (self.pending or self.owned or self.remote)

    # -- its messages ------------------------------------------------------------------------------------------

    @property
    def last_position(self) -> int:
        """The place of the last message of the history."""
        return self._draft.messages - 1

    def message(self, position: int) -> Message:
        """The message at this place of the history."""
        return self._draft.message(position)

    def find(self, key: str, message: Message) -> int | None:
        """Return the place of a message that was sent before, by its `key`; None if none has this key.

        Raises `FailureError(InvalidParams)` if the one that has it has other content.
        """
        position = self.received.get(key)
        if position is not None:
            sent = addressed(message, self.id, message.context_id or self.context_id)
            check_same_content(self.message(position), sent)
        return position

    def _receive(self, message: Message, position: int) -> None:
        if message.role is Role.USER:
            self.received.setdefault(message.message_id, position)

    def waits(self, position: int) -> bool:
        """Whether the execution of the message at this place is still to come, or not over."""
        return position in [each.position for each in self.waiting]

    def add_message(self, message: Message, call: CallFacts, *, begun: bool) -> int:
        """Publish a message that is to be executed; returns its place in the history. Raises as `publish`.

        A task that waits for its caller first goes on, so that the agent's question precedes the answer in the history.
        """
        self.go_on()
        self.publish(MessageAdded(message, call, begun))
        return self.last_position

    def go_on(self) -> None:
        """Have a task that waits for its caller go on."""
        if self.state in INTERRUPTED:
            self.set_status(TaskState.WORKING)

    # -- events ------------------------------------------------------------------------------------------------

    def ensure_created(self, call: CallFacts | None = None, *, begun: bool = True) -> None:
        """Publish a new task before its first event. Its message is to be executed, or that has `begun`."""
        if not self.generation and self.lost is None:
            self._publish(TaskCreated(self.task(), call or CallFacts(), begun), self._size)

    def publish(self, event: TaskEvent, *, limited: bool = False) -> None:
        """Append an event. Of a lost task it is dropped.

        Raises `InvalidStateTransition` where the table of states forbids it, and `TypeError` or `ValueError` for data that
        is not JSON; with `limited`, `FailureError(Overloaded)` where there is no memory for it. A small status always fits,
        or no task could end.
        """
        target = event.status.state if isinstance(event, StatusChanged) else None
        if self.ended if target is None else target not in TRANSITIONS[self.state]:
            raise InvalidStateTransition(current=self.state.value, target=(target or self.state).value)
        if self.lost is not None:
            return
        if isinstance(event, StatusChanged) and target in TERMINAL and self.waiting:
            count = len(self.waiting) - self.waiting[0].begun  # only the first may have begun
            if count:
                event = self._with_unexecuted(event, count)
        size = size_of_event(event)
        if limited and (size > SMALL or target is None):
            self.memory.check(size)
        self._publish(event, size)

    def _publish(self, event: TaskEvent, size: int) -> None:
        self._append(event, size)
        self.pending.append(event)
        self._on_publish(self)

    def set_status(self, state: TaskState) -> None:
        """Publish a new status that says nothing but the state. Raises `InvalidStateTransition`."""
        self.publish(StatusChanged(TaskStatus(state, timestamp=now())))

    def note(self, artifact: Artifact) -> None:
        """See `agents.editor.Published`."""
        if self.generation and self.state in (TaskState.SUBMITTED, TaskState.WORKING):
            with suppress(FailureError):
                self.publish(ArtifactChanged(artifact, append=True), limited=True)

    def append_stored(self, logged: LoggedEvent) -> None:
        """Append an event that another daemon has published and the store has."""
        event = logged.event
        self._append(event, size_of_event(event))
        if self.expected and isinstance(event, MessageRefused):
            self.refused[event.key] = event.error
        self.committed = self.generation
        self.notify()

    def _with_unexecuted(self, event: StatusChanged, count: int) -> StatusChanged:
        """The end of the task, which says how many messages have waited for their turn in vain."""
        text = Part(
            text=NOT_EXECUTED_TEXT if count == 1 else f"{count} messages were not executed: the task ended before."
        )
        before = event.status.message
        message = (
            Message(new_id(), Role.AGENT, (text,), context_id=self.context_id, task_id=self.id)
            if before is None
            else msgspec.structs.replace(before, parts=(*before.parts, text))
        )
        return msgspec.structs.replace(event, status=msgspec.structs.replace(event.status, message=message))

    def find_step(self, name: str) -> Step | None:
        """The step of this name that the execution has stored."""
        steps = self.waiting[0].steps if self.waiting else ()
        return next((each for each in steps if each.name == name), None)

    def _append(self, event: TaskEvent, size: int) -> None:
        replaced = self.find_step(event.step.name) if isinstance(event, StepStored) else None
        self._draft.apply(event)
        self.generation += 1
        self._bytes_since_snapshot += size
        match event:
            case ArtifactChanged():  # first: a stream of text is many of these
                identity = event.artifact.artifact_id
                before = self._artifact_sizes.get(identity, 0)
                self._artifact_sizes[identity] = after = size + (before if event.append else 0)
                self._count(after - before)
            case StatusChanged(status):
                self.state, self.ended = status.state, status.state in TERMINAL
                self._count(size)
                if self.steps_size and not any(each.steps for each in self._draft.unfinished):
                    self._count(-self.steps_size)
                    self.steps_size = 0
                if status.state in INACTIVE:
                    self._stop()
            case MessageAdded() | TaskCreated():
                if isinstance(event, MessageAdded):
                    self._count(size)  # a new task was counted from the beginning
                    self._receive(event.message, self._draft.messages - 1)
                position = self._draft.messages - 1
                if event.begun:
                    self.turn, self.begun[position] = position, self.generation
                if event.call is not None and event.call.key:
                    self.received[event.call.key] = position
            case ExecutionBegun(position):
                self.turn, self.begun[position] = position, self.generation
            case StepStored():
                grown = size if replaced is None else size - size_of_step(replaced)
                self.steps_size += grown
                self._count(grown)
            case _:  # a refusal changes nothing
                pass
        if self.buffer is not None:
            self.buffer.add(LoggedEvent(self.generation, event), size)

    def _stop(self) -> None:
        self.stop_generation, self.stopped_task = self.generation, self.task()
        for watch in self.stop_watches:
            watch()

    def _count(self, size: int) -> None:
        self._size += size
        self.memory.add_task(size)

    def forget(self) -> None:
        """It leaves the memory as soon as its last user does: do not count it any more."""
        self.memory.add_task(-self._size)
        self.memory, self._size = UNCOUNTED, 0

    # -- the store ---------------------------------------------------------------------------------------------

    def queue(self) -> None:
        """Leave the task to the first daemon that has room for it. It is another daemon's as soon as the store has that. One that
        has ended, waits for its caller or was lost stays as it is."""
        if not self.ended and (self.state not in INTERRUPTED or self.waiting) and self.lost is None:
            self._queued = True
            self._on_publish(self)

    def settle(self) -> None:
        """Nothing is executed for it any more: have the store know that it waits for its caller, if it does."""
        if self.owned and self.state in INTERRUPTED and not self.waiting and self.lost is None:
            self._on_publish(self)

    def next_change(self) -> TaskChange:
        """Everything that the store does not have yet, as one change."""
        unowned = self.ended or (self.state in INTERRUPTED and not (self.busy or self.waiting))
        in_queue = self.remote_owner == QUEUED
        new = self.committed == 0
        snapshot = None
        # As many bytes of events as the last snapshot had: so the work of all snapshots stays linear.
        enough = max(self._snapshot_bytes, _UNOWNED_SNAPSHOT_BYTES if unowned else _SNAPSHOT_BYTES)
        if new or self.ended or self._bytes_since_snapshot > enough:
            snapshot = self.stopped_task if self.ended and self.stopped_task is not None else self.task()
            self._bytes_since_snapshot = 0
            if not self.ended:  # else it was the last
                self._snapshot_bytes = self._size
        return TaskChange(
            task_id=self.id,
            expected_generation=self.committed,
            events=tuple(self.pending),
            scope=self.scope,
            context_id=self.context_id,
            state=self.state,
            status_timestamp=self._draft.status.timestamp or "",
            owner=None if unowned else QUEUED if self._queued or in_queue else self.local_owner,
            previous_owner=QUEUED if in_queue else None,
            snapshot=snapshot,
            waiting=() if snapshot is None else self._draft.unfinished,
        )

    def mark_committed(self, change: TaskChange) -> None:
        """The store has this change."""
        del self.pending[: len(change.events)]
        self.committed += len(change.events)
        self.owned = change.owner == self.local_owner
        if change.owner == QUEUED:
            self.remote_owner = QUEUED
            self._queued = False
        elif change.owner is None:
            self._queued = False
        self.notify()

    def lose(self, reason: LossReason) -> None:
        """Drop what the store does not have, and publish nothing more."""
        self.lost = reason
        self.pending.clear()
        self.notify()


def raise_if_lost(live: LiveTask) -> None:
    """Raise the error for callers that wait for a lost task."""
    match live.lost:
        case None:
            return
        case "conflict" | "behind":
            raise TaskConflict
        case "full":
            raise FailureError(Overloaded())
        case "unstorable":
            raise FailureError(InvalidAgentResponse(task_id=live.id))
        case "failed":
            raise FailureError(Internal())
        case "unavailable":
            raise FailureError(Unavailable(RETRY_AFTER_MS))
        case _:
            assert_never(live.lost)


async def wait_committed(live: LiveTask) -> Task:
    """The task as it is now, once the store has it. Raises `FailureError` or `TaskConflict` where the task is lost."""
    task, generation = live.task(), live.generation
    while live.committed < generation and live.lost is None:
        await live.wait_for_change()
    if live.lost is not None:
        raise_if_lost(live)
    return task


# -- watching one ------------------------------------------------------------------------------------------------------


@final
class EventReader:
    """Reads one task's events in order: those that are published from now on, or those after the generation `after`, which the
    task has reached. From its buffer, or from the store where the buffer has dropped them. It must be closed.

    `position` is the generation of the last event that it has read. Each turn of its loop returns events, raises, or waits for
    the task to change.
    """

    def __init__(self, live: LiveTask, log: EventLog, *, after: int | None = None) -> None:
        self._live = live
        self._log = log
        self._buffer = live.buffer = live.buffer or EventBuffer(live.memory.add_buffered)
        self._buffer.open(self, live.generation)
        self.position = live.generation if after is None else after
        log.retain(live.id)

    async def next_batch(self, is_over: Callable[[], bool] = lambda: False) -> Sequence[LoggedEvent]:
        """Wait for the next events. None is skipped and none comes twice.

        Empty once the task has ended or `is_over()`, and everything was read. Raises `EventsLost` where the store does not
        keep the next event any more, or has deleted the task, and what `raise_if_lost` raises.
        """
        live = self._live
        while True:
            committed = live.committed
            batch = await self._read(committed)
            if batch:
                self.position = batch[-1].generation
                if self._buffer.trim():
                    live.notify()
                return batch
            raise_if_lost(live)
            if self.position >= live.generation and (live.ended or is_over()):
                return ()
            if live.committed == committed:  # else it was committed while the store was read
                await live.wait_for_change()

    async def _read(self, committed: int) -> Sequence[LoggedEvent]:
        """The next events up to `committed`, none only where there are none. Raises `EventsLost`."""
        live, is_behind = self._live, self.position < committed
        batch = self._buffer.read(self.position, committed)
        if batch or not (is_behind or live.lost == "behind"):
            return batch
        try:
            batch = await self._log.read(live.id, after=self.position)
        except LogTruncatedError as exc:
            last_generation = max(exc.generation, live.committed)  # the store may have deleted the task
            raise EventsLost(taskId=live.id, lastGeneration=last_generation) from None
        if is_behind and not batch:
            raise EventsLost(taskId=live.id, lastGeneration=committed)
        return batch

    def close(self) -> None:
        """Closing it again does nothing."""
        if self in self._buffer.readers:
            self._buffer.readers.remove(self)
            if self._buffer.trim():
                self._live.notify()
            self._log.release(self._live.id)


# -- those that are in memory ------------------------------------------------------------------------------------------


CommitNowait: TypeAlias = Callable[[Sequence[TaskChange]], Sequence[CommitRefusal | None]]

ALARM_BYTES: Final = 256
"""What a daemon keeps of a task that sleeps: its id, and its place among the others."""

MAX_FORGOTTEN_NAMES: Final = 1024
"""Names of tasks that have left memory, which are kept beside as many as there are tasks in it."""

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
        self.claiming: Final[set[str]] = set()
        """The ids of tasks whose execution begins with a claim that is under way."""
        self._claim_ended = ChangeSignal()
        self._by_name: dict[str, set[str]] = {}
        self._unnamed: dict[str, None] = {}
        """The ids of tasks by the names that a store has for them: only once it is asked for those of some names."""
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
                if change.expected_generation:  # else the same message has begun the task before
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

    @property
    def has_shared(self) -> bool:
        """Whether another daemon may change one of them."""
        return any(live.shared for live in self._tasks.values())

    def find_named(self, names: Iterable[str], name_of: Callable[[str], str]) -> list[LiveTask]:
        """Return the tasks with one of these names, at the cost of these. `name_of(task_id)` is always the same function."""
        if len(self._by_name) > 2 * len(self._tasks) + MAX_FORGOTTEN_NAMES:
            self._by_name.clear()
            self._unnamed.update(dict.fromkeys(self._tasks))
        for task_id in self._unnamed:
            self._by_name.setdefault(name_of(task_id), set()).add(task_id)
        self._unnamed.clear()
        ids = [task_id for name in names for task_id in self._by_name.get(name, ())]
        return [self._tasks[task_id] for task_id in ids if task_id in self._tasks]

    def find(self, task_id: str, scope: str | None) -> LiveTask | None:
        """The task if it is in memory, and the store has it. It is not pinned. `scope` None is for the daemon itself."""
        live = self._tasks.get(task_id)
        return live if live is not None and scope in (None, live.scope) and live.committed else None

    def knows(self, task_id: str) -> bool:
        """Whether the task is in memory, also one that was not published yet, or is being loaded."""
        return task_id in self._tasks or task_id in self._loading

    def find_unpublished(self, task_id: str) -> LiveTask | None:
        """The task if it is in memory and has no events yet. It is not pinned."""
        live = self._tasks.get(task_id)
        return live if live is not None and not live.generation else None

    def create(self, task: Task, scope: str) -> LiveTask:
        """A new task, pinned, with an id that the cache does not know. Raises `FailureError(Overloaded)` where there is no memory
        for it."""
        size = size_of_task(task)
        self._memory.check(size)
        live = self._new(task, 0, scope, size=size)
        live.pins = 1
        self._add(live)
        return live

    def _add(self, live: LiveTask) -> None:
        self._tasks[live.id] = live
        self._unnamed[live.id] = None

    def check_memory(self, message: Message) -> None:
        """Raises `FailureError(Overloaded)` where there is no memory for one more message of a task."""
        self._memory.check(size_of_message(message))

    def count_message(self, message: Message, times: int) -> None:
        """Count a message that is in memory beside its task; with `times` -1 no more."""
        self._memory.add_task(times * size_of_message(message))

    def count_alarm(self, times: int) -> None:
        """Count what the daemon keeps of a task that sleeps; with `times` -1 no more."""
        self._memory.add_task(times * ALARM_BYTES)

    async def pin(self, task_id: str, scope: str | None) -> LiveTask:
        """The task, in memory until `unpin`. `scope` None is for the daemon itself.

        Raises `FailureError(TaskNotFound)`, and `StoreError`.
        """
        while True:
            live = self._tasks.get(task_id) or await self._load(task_id)
            if live is None or not live.generation or scope not in (None, live.scope):
                raise task_not_found(task_id)
            if live.committed or live.lost is not None:
                live.pins += 1
                return live
            await (
                live.wait_for_change()
            )  # the same message may have begun it before: then the store has another state of it

    def unpin(self, live: LiveTask) -> None:
        """Undo `pin` or `create`."""
        live.pins -= 1
        if not (live.pins or live.pending or live in self._dirty):  # else two of one task would be committed together
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
        while True:
            stored = await self.store.load(task_id)
            if stored is None:
                return None
            push_targets = await self.store.load_push_targets(task_id)
            if (live := self._tasks.get(task_id)) is not None:  # it came with its claim
                return live
            if not self.is_claiming(task_id, stored.owner):
                return self._enter(stored, push_targets)
            while task_id in self.claiming:
                await self._claim_ended.wait()

    def is_claiming(self, task_id: str, owner: str | None) -> bool:
        """Whether the store has a claim of this daemon that it has not heard of: the task comes with that."""
        return task_id in self.claiming and owner == self.store.owner_id

    def take_claimed(self, claimed: ClaimedTask) -> LiveTask | None:
        """Have a task that came with its claim in memory, as this daemon's own, pinned. None where it has to be loaded."""
        stored = claimed.stored
        if stored is None:
            return None
        live = self._tasks.get(claimed.task_id)
        if live is not None and (live.pending or live.lost or live.generation > stored.generation):
            self.lose(live, "conflict")  # what was published here meanwhile is refused
            live = None
        if live is not None:
            events = {each.generation: each for each in stored.later_events}
            while live.generation < stored.generation and (logged := events.get(live.generation + 1)) is not None:
                live.append_stored(logged)
        if live is not None and live.generation < stored.generation:
            self.lose(live, "behind")
            live = None
        if live is None:
            live = self._enter(stored, claimed.push_targets)
        live.push_targets, live.remote_owner, live.owned = claimed.push_targets, None, True
        live.pins += 1
        live.notify()
        return live

    def end_claim(self) -> None:
        """What was claimed is in memory, or was not claimed."""
        self.claiming.clear()
        self._claim_ended.notify()

    def _enter(self, stored: StoredTask, push_targets: Sequence[PushTarget]) -> LiveTask:
        live = self._new(stored.snapshot, stored.snapshot_generation, stored.scope, stored.waiting)
        for logged in stored.later_events:
            live.append_stored(logged)
        live.stop_generation = 0
        live.push_targets = push_targets
        if not live.ended:
            live.owned = stored.owner == self.store.owner_id
            live.remote_owner = None if live.owned else stored.owner
        self._add(live)
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
            self._unnamed.pop(live.id, None)
        live.forget()
