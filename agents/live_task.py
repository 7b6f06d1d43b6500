"""One task in memory: its state, the events that the store does not have yet, and the memory that it and its watchers take.

A published event changes the task at once, but nobody is told of it before the store has it. A task that does not fit into the
memory is refused, and a full buffer drops its oldest events. Runs nothing and never waits for a watcher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Literal, TypeAlias, assert_never, final

import msgspec

from ..a2a.errors import EventsLost, InvalidStateTransition, TaskConflict
from ..a2a.task import NOT_EXECUTED_TEXT, TaskDraft, size_of_artifact, size_of_event, size_of_task
from ..a2a.types import (
    INACTIVE,
    INTERRUPTED,
    TERMINAL,
    TRANSITIONS,
    Artifact,
    ArtifactChanged,
    CallFacts,
    ExecutionBegun,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
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
from ..daemon.memory import SMALL, MemoryBudget
from ..errors.exceptions import FailureError
from ..errors.failures import Internal, InvalidAgentResponse, Overloaded, Unavailable
from .stores.interface import QUEUED, EventLog, LoggedEvent, LogTruncatedError, PushTarget, TaskChange

TASKS_SHARE: Final = 0.75
"""How much of the budget tasks may take: the rest stays for the requests that read and cancel them."""


MAX_EVENTS: Final = 65_536
"""Events that one task's buffer may hold."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""Approximate size of the events that one task's buffer may hold."""

MAX_TOTAL_BYTES: Final = 512 * 1024 * 1024
"""The same for the buffers of all tasks together. The buffer that is added to beyond it drops its own oldest events."""

BACKPRESSURE_BYTES: Final = 4 * 1024 * 1024
"""Above this size an executor waits a moment for its watchers. Each wait in vain doubles it: 4, 8, 16 and 32 MiB."""

BATCH_EVENTS: Final = 64
"""Events that a reader takes from the buffer at once."""


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

    def add_buffered(self, size: int) -> None:
        """Count so many bytes more in the buffers of watchers."""
        self._buffered += size
        if self._budget is not None and size:
            self._budget.add("tasks", size)

    @property
    def buffers_full(self) -> bool:
        """Whether a buffer that grows must drop something."""
        budget = self._budget
        return self._buffered > MAX_TOTAL_BYTES or not (budget is None or budget.fits_share("tasks", 0, TASKS_SHARE))

    def check(self, size: int) -> None:
        """Raises `FailureError(Overloaded)` unless a task may take so many bytes more. Ended tasks make room first."""
        wanted, budget = 2 * size, self._budget
        if budget is None or budget.fits_share("tasks", wanted, TASKS_SHARE):
            return
        self._free(wanted)
        if not budget.fits_share("tasks", wanted, TASKS_SHARE):
            raise FailureError(Overloaded())


@final
class EventBuffer:
    """Consecutive events of one task, for its readers; empty without one. `bytes` is their approximate size.

    A reader that falls behind reads on in the store.
    """

    __slots__ = ("_backpressure_bytes", "_base", "_events", "_memory", "_sizes", "bytes", "readers")

    def __init__(self, memory: TaskMemory) -> None:
        self._base = 0  # the generation before the first event
        self._memory = memory
        self.readers: Final[set[EventReader]] = set()
        self._backpressure_bytes = BACKPRESSURE_BYTES
        self._events: list[LoggedEvent] = []
        self._sizes: list[int] = []
        self.bytes = 0

    def open(self, reader: EventReader, generation: int) -> None:
        """Keep what comes after this generation, which is the task's present one, until `reader` is closed."""
        if not self.readers:
            self._base = generation
        self.readers.add(reader)

    def add(self, logged: LoggedEvent, size: int) -> None:
        """Append the next event if anybody reads; drop an eighth of the buffer where it exceeds a limit."""
        if not self.readers:
            return
        self._events.append(logged)
        self._sizes.append(size)
        self.bytes += size
        self._memory.add_buffered(size)
        if self.bytes > MAX_BYTES or self._memory.buffers_full or len(self._events) > MAX_EVENTS:
            self._drop(1 + len(self._events) // 8)

    def read(self, after: int, upto: int) -> Sequence[LoggedEvent]:
        """Some events after generation `after`, none after `upto`. None where the next one was dropped, or is yet to come."""
        start = after - self._base
        return () if start < 0 else self._events[start : max(start, min(start + BATCH_EVENTS, upto - self._base))]

    def trim(self) -> bool:
        """Drop what every reader has: in batches, so that the cost of dropping stays linear. Returns whether the buffer was
        congested before and is no more."""
        was_congested = self.congested
        if not self.readers:
            self._backpressure_bytes = BACKPRESSURE_BYTES
            self._drop(len(self._events))
            return was_congested
        count = min(reader.position for reader in self.readers) - self._base
        count = min(count, len(self._events))  # the store may have been ahead of what was heard here
        if count < min(256, 1 + len(self._events) // 2):
            return False
        self._drop(count)
        if self.bytes < BACKPRESSURE_BYTES // 2:
            self._backpressure_bytes = BACKPRESSURE_BYTES
        return was_congested and not self.congested

    @property
    def congested(self) -> bool:
        """Whether publishers should wait a moment for the readers."""
        return self.bytes > self._backpressure_bytes

    def raise_backpressure_limit(self) -> None:
        """The readers did not catch up: publishers may go twice as far."""
        self._backpressure_bytes *= 2

    def _drop(self, count: int) -> None:
        freed = sum(self._sizes[:count])
        self.bytes -= freed
        self._memory.add_buffered(-freed)
        del self._events[:count], self._sizes[:count]
        self._base += count


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
        self._buffer = live.buffer = live.buffer or EventBuffer(live.memory)
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


UNCOUNTED: Final = TaskMemory()

LossReason: TypeAlias = Literal["conflict", "behind", "full", "unstorable", "failed", "unavailable"]
"""Why a task in memory can't be used any more.

`conflict`: another daemon has changed it. `behind`: another daemon works on it, and the events in between are gone.
`full`: the store has no space. `unstorable`: an event is not JSON. `failed`: the store failed.
`unavailable`: its server is away.
"""

RETRY_AFTER_MS: Final = 1000
"""What callers are told to wait for a server that is away: about the pause between two attempts to reach it."""

MAX_LOSSES: Final = 8
"""How often in a row a call goes on after its task was lost to another daemon."""

_SNAPSHOT_BYTES: Final = 1024 * 1024
"""A task that is worked on gets a snapshot after at least so many bytes of events."""

_RESTING_SNAPSHOT_BYTES: Final = 16 * 1024
"""A task that waits for its caller gets one sooner: it leaves memory, and whoever needs it reads the events too."""


@final
class LiveTask:
    """A task in memory. `generation` is the number of its last event, `committed` that of the last one in the store.

    A task *stops* when it ends or waits for its caller. `stop_generation` is the event by which it stopped last, 0 where it
    has not since it was loaded, and `stopped_task` the task at that event.

    `waiting` are its messages whose execution is not over; `begun` has the generation by which each execution began last, by
    the message's place in the history, and `received` the places of messages by the keys of their calls: both since it was
    loaded, and of what was waiting then. `busy` is set by the runner while this daemon executes something for it, or is about
    to. `pins` counts the users that need it in memory, `expected` messages that another daemon is to publish.

    `size` is that of the task, where it is known.

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
        self._snapshot_bytes = self._size = size_of_task(task) if size is None else size
        self.memory.add_task(self._size)
        self._bytes_since_snapshot = 0
        self._queued = False
        self.expected = 0
        self.begun: dict[int, int] = {}
        self.received: dict[str, int] = {}
        for each in waiting:
            if each.begun:
                self.begun[each.position] = generation
            if each.call.key:
                self.received[each.call.key] = each.position
        self.scope = scope
        self.generation = generation
        self.committed = generation
        self.pending: list[TaskEvent] = []
        self.stop_generation = 0
        self.stopped_task: Task | None = None
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
        """Whether another daemon may change it: because that one works on it, or because nobody does."""
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
        self._append(logged.event, size_of_event(logged.event))
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

    def _append(self, event: TaskEvent, size: int) -> None:
        self._draft.apply(event)
        self.generation += 1
        self._bytes_since_snapshot += size
        match event:
            case StatusChanged(status):
                self.state, self.ended = status.state, status.state in TERMINAL
                self._count(size)
                if status.state in INACTIVE:
                    self.stop_generation = self.generation
                    self.stopped_task = self.task()
            case MessageAdded() | TaskCreated():
                if isinstance(event, MessageAdded):
                    self._count(size)  # a new task was counted from the beginning
                position = self._draft.messages - 1
                if event.begun:
                    self.begun[position] = self.generation
                if event.call is not None and event.call.key:
                    self.received[event.call.key] = position
            case ExecutionBegun(position):
                self.begun[position] = self.generation
            case ArtifactChanged(artifact, append):
                before = self._artifact_sizes.get(artifact.artifact_id, 0)
                self._artifact_sizes[artifact.artifact_id] = after = size + (before if append else 0)
                self._count(after - before)
        if self.buffer is not None:
            self.buffer.add(LoggedEvent(self.generation, event), size)

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
        resting = self.ended or (self.state in INTERRUPTED and not (self.busy or self.waiting))
        in_queue = self.remote_owner == QUEUED
        new = self.committed == 0
        snapshot = None
        # As many bytes of events as the last snapshot had: so the work of all snapshots stays linear.
        enough = max(self._snapshot_bytes, _RESTING_SNAPSHOT_BYTES if resting else _SNAPSHOT_BYTES)
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
            owner=None if resting else QUEUED if self._queued or in_queue else self.local_owner,
            previous_owner=QUEUED if in_queue else None,
            snapshot=snapshot,
            waiting=() if snapshot is None else tuple(self.waiting),
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
