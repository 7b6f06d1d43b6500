"""The Protocols that every task store implements, and the data that callers exchange with one. Implements nothing.

The event log of a task is the task. Events are numbered from 1 without gaps; the number of the last one is the task's
generation. A snapshot is the task as of some generation. It may be older than the log, and saves reading the log from its
beginning. `TaskStore.commit` makes each change completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from ...a2a.types import PushConfig, Task, TaskEvent, TaskPage, TaskQuery, TaskState, WaitingMessage

CANCEL: Final = "cancel"
"""Kind of an `OwnerRequest`: cancel the task."""

MESSAGE: Final = "message"
"""Kind of an `OwnerRequest`: work on the message that its body holds."""

RELOAD_PUSH_TARGETS: Final = "reload-push-targets"
"""Kind of an `OwnerRequest`: another daemon changed the task's push targets; load them again."""

QUEUED: Final = "queue"
"""Owner of a task that waits until a daemon has room for it: see `TaskStore.claim`. No daemon has this name."""


RETRY_MS: Final = 2000
"""How long callers are told to wait for a store that has no room."""


class StoreError(Exception):
    """The store can't be used. The message is one line for the operator and never reaches a caller.

    `repeated` says that the store has raised it before, and that it lasts.
    """

    def __init__(self, message: str, *, repeated: bool = False) -> None:
        super().__init__(message)
        self.repeated = repeated


class StoreUnavailableError(StoreError):
    """The store can't be used now: its server is away and is looked for again, its disk or memory is full, it is locked.

    `retry_after_ms` is how long to wait until the next attempt.
    """

    def __init__(self, message: str, *, retry_after_ms: int = RETRY_MS, repeated: bool = False) -> None:
        super().__init__(message, repeated=repeated)
        self.retry_after_ms = retry_after_ms


class DamagedTaskError(StoreError):
    """One task is not as it was stored. The store can be used for the others."""


class LogTruncatedError(Exception):
    """The log no longer holds the event that was asked for.

    `generation` is the task's current one, 0 if the store has no such task (any more).
    """

    def __init__(self, task_id: str, generation: int) -> None:
        super().__init__(
            f"the log of task {task_id} no longer holds that event; the task is at generation {generation}"
        )
        self.task_id = task_id
        self.generation = generation


class CommitConflict(msgspec.Struct, frozen=True):
    """Someone else changed or owns the task. `generation` is its current one, 0 if it does not exist; `owner` its owner."""

    generation: int
    owner: str | None = None


class StoreFull(msgspec.Struct, frozen=True):
    """The store accepts no new task until some of its tasks have ended."""


class Unserializable(msgspec.Struct, frozen=True):
    """The change holds a value that is not JSON, or JSON that is nested too deeply to be written."""


class DamagedTask(msgspec.Struct, frozen=True):
    """A task that something else has changed in the store, so it is not written over. `reason` is one line for the operator."""

    reason: str


CommitRefusal: TypeAlias = CommitConflict | StoreFull | Unserializable | DamagedTask
"""Why a change was not made."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event with its number in the task's log."""

    generation: int
    event: TaskEvent


class OwnerRequest(msgspec.Struct, frozen=True):
    """What another daemon asks of the owner of a task. `kind` is `CANCEL`, `MESSAGE` or `RELOAD_PUSH_TARGETS`; ignore unknown
    ones."""

    task_id: str
    kind: str
    body: bytes = b""


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """Appends `events` to a task that is at `expected_generation` (0: the task is new), and sets its other fields.

    The other fields describe the task after these events. `scope` says which callers see it. `state`, `context_id` and
    `status_timestamp` are what `TaskStore.list` filters by. `owner` is the daemon that works on the task, None for no one.
    `snapshot` is the task after these events, and `waiting` are the messages whose execution is not over then; None keeps the
    stored snapshot. A change without events sets only the snapshot and the owner.

    A task that another daemon owns can't be changed: its owner must be this store's `owner_id` or None. With
    `previous_owner` it must be exactly that daemon. A takeover from a dead daemon says so, and a change of a task that is
    `QUEUED`; of several that try, one succeeds.

    `requests` are left for the owner in the same commit. There are none where the owner is None.
    """

    task_id: str
    expected_generation: int
    events: tuple[TaskEvent, ...]
    scope: str
    context_id: str
    state: TaskState
    status_timestamp: str
    owner: str | None
    snapshot: Task | None = None
    waiting: tuple[WaitingMessage, ...] = ()
    previous_owner: str | None = None
    requests: tuple[OwnerRequest, ...] = ()

    @property
    def generation(self) -> int:
        """The task's generation after this change."""
        return self.expected_generation + len(self.events)


class StoredTask(msgspec.Struct, frozen=True):
    """A task as the store holds it: a snapshot as of `snapshot_generation`, with the messages whose execution was not over then,
    and the events after it."""

    snapshot: Task
    snapshot_generation: int
    later_events: tuple[LoggedEvent, ...]
    scope: str
    owner: str | None
    waiting: tuple[WaitingMessage, ...] = ()

    @property
    def generation(self) -> int:
        return self.later_events[-1].generation if self.later_events else self.snapshot_generation


class PushTarget(msgspec.Struct, frozen=True):
    """A stored push config and the A2A version (`1.0`, `0.3`) of its receiver. `config.id` and `config.task_id` are set."""

    config: PushConfig
    protocol_version: str


class Changes(msgspec.Struct, frozen=True):
    """What other daemons have done to the store since somebody last heard. More may be told than was done, never less.

    `may_concern(task_id)` tells whether that task may have changed. `requests` says that there may be requests to this daemon,
    `queued` that there may be tasks to claim.
    """

    may_concern: Callable[[str], bool]
    requests: bool = True
    queued: bool = True


class EventLog(Protocol):
    """Reads the events that `TaskStore.commit` appended.

    Whoever reads a task's log over some time calls `retain` before and `release` afterwards.
    """

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        """The next events after generation `after`, oldest first, without gaps; empty if the task has none yet.

        Returns at most `limit` events, fewer if they are large. Raises `LogTruncatedError` if the next event has been
        deleted, and if there is no such task. Events after the snapshot are never deleted before their task.
        """
        ...

    def retain(self, task_id: str) -> None:
        """Do not delete this task, once it has ended, for its age or for the number of ended tasks.

        A store whose size is limited may still have to, and other daemons on the same store do not know. Never waits. The
        task need not exist.
        """
        ...

    def release(self, task_id: str) -> None:
        """Undo one call of `retain`."""
        ...


class TaskStore(Protocol):
    """Stores tasks. Every method may be cancelled; a cancelled `commit` is done completely or not at all.

    Every method but `free` raises `StoreError` if the disk fails, or the stored data is not what was stored. Then
    nothing has changed; a change that fails because the store's files were taken away may come to light again with them, and
    one that fails because its server went away may have been made just before.
    """

    @property
    def durable(self) -> bool:
        """Whether committed changes survive the end of the process."""
        ...

    @property
    def owner_id(self) -> str:
        """This daemon's name among the owners of tasks. Available once the store is open; a new one each time."""
        ...

    @property
    def event_log(self) -> EventLog: ...

    @property
    def grace_seconds(self) -> float:
        """How long a daemon must have been among the dead before its tasks are taken over: it may have lost the store, and still
        work until it knows. See `lease_end`."""
        ...

    def lease_end(self) -> float:
        """The time of `time.monotonic` until which no other daemon takes over a task of this one. Later ones are told as this
        daemon hears of the store; `math.inf` where others take over only what has ended for certain. Never waits."""
        ...

    def open_early(self) -> None:
        """Do what can be done of `open` without an event loop: it fails then where `open` would.

        Blocks. `open` or `close_early` must follow. Raises `StoreError`, also if the system does not provide what the store
        needs.
        """
        ...

    def close_early(self) -> None:
        """Undo `open_early`, if `open` did not follow; else do nothing. Blocks. Raises `StoreError`."""
        ...

    async def open(self) -> None:
        """Call once, before anything else but `open_early`, on the event loop. Raises `StoreError`."""
        ...

    async def close(self) -> None:
        """Close the store. The tasks that this daemon owns become orphans. A second call does nothing."""
        ...

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        """Make every change that can be made. Returns, in order, why each was refused, or None if it was made.

        Readers see the changes of one call all at once. When this returns, what was made is stored (by a durable store: on
        the disk). Raises `ValueError` for two changes of one task, and for a new task that does not begin with
        `TaskCreated`.

        A store that waits for nothing may have the method `commit_nowait` as well, which does the same at once.
        """
        ...

    async def load(self, task_id: str) -> StoredTask | None:
        """The task, or None if there is none. Tasks that ended are deleted some time later."""
        ...

    async def list(self, query: TaskQuery) -> TaskPage:
        """One page of tasks, fewer where they are large. Raises `ValueError` for a token that this store did not make, and for
        a bad page size. A damaged task does not make it fail: see `TaskPage.unreadable`.

        A change between two pages makes no page repeat or skip a task that it does not affect.
        """
        ...

    async def count(self) -> Mapping[TaskState, int]:
        """How many tasks of all callers are in each state. States without tasks may be left out."""
        ...

    def check_reachable(self) -> None:
        """Raises `StoreUnavailableError` where the store's server has been away for longer than callers are to wait.

        Never waits itself.
        """
        ...

    async def probe(self) -> None:
        """Raises `StoreError` where nothing could be committed now. Changes nothing that anybody reads."""
        ...

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        """Add a target, or replace the one with the same config id. False if there is no such task."""
        ...

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        """The task's targets, in the order in which they were added. They are deleted with the task."""
        ...

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        """False if there was no such target."""
        ...

    async def list_orphans(self) -> Sequence[str]:
        """The ids of tasks that have not ended and whose owner is dead. `TaskChange.previous_owner` takes one over."""
        ...

    async def list_owned(self) -> Sequence[str]:
        """The ids of tasks that have not ended and whose owner is this daemon."""
        ...

    async def claim(self, limit: int) -> Sequence[str]:
        """Become the owner of `QUEUED` tasks, at most so many, least recently changed first. Returns their ids.

        Of several daemons that claim at once, each gets others, and none waits for another's. Requests to the owner stay with
        the tasks.
        """
        ...

    async def count_queued(self) -> int:
        """How many tasks are `QUEUED`."""
        ...

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        """Leave a request for the daemon that owns the task, or will claim it. False if no daemon does. An equal one, as long as
        it was not taken, counts once.

        Requests stay with the task: a new owner inherits them, and they are deleted when the task has no owner any more.
        """
        ...

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        """The requests to this daemon, oldest first, each returned once."""
        ...

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        """Wait until other daemons have changed something since the last call returned; it may have been before this call.

        `poll_seconds` is how often a store looks that nobody tells of changes. Cancelling it loses no change. Raises nothing.
        To be called by one task at a time.
        """
        ...

    def free(self, size: int) -> None:
        """Delete ended tasks, oldest first, until so many bytes of memory are free; of a store on the disk nothing. Never
        waits."""
        ...
