"""Defines the Protocols of task stores, and the data that callers exchange with them. Implements nothing.

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

ANSWER: Final = "answer"
"""Kind of an `OwnerRequest`: take the client's answers that its body holds (JSON, by the keys of requests)."""

RELOAD_PUSH_TARGETS: Final = "reload-push-targets"
"""Kind of an `OwnerRequest`: another daemon changed the task's push targets; load them again."""

QUEUED: Final = "queue"
"""Owner of a task that waits until a daemon has room for it: see `TaskStore.claim`. No daemon has this name."""


RETRY_MS: Final = 2000
"""How long callers are told to wait for a store that has no room."""


class StoreError(Exception):
    """The store failed. The message is one line for the operator and never reaches a caller.

    `repeated` is true if the store has raised the same error before and it lasts.
    """

    def __init__(self, message: str, *, repeated: bool = False) -> None:
        super().__init__(message)
        self.repeated = repeated


class StoreUnavailableError(StoreError):
    """The store fails for now: its server is away and is looked for again, its disk or memory is full, or it is locked.

    `retry_after_ms` is how long to wait before the next attempt.
    """

    def __init__(self, message: str, *, retry_after_ms: int = RETRY_MS, repeated: bool = False) -> None:
        super().__init__(message, repeated=repeated)
        self.retry_after_ms = retry_after_ms


class DamagedTaskError(StoreError):
    """One task is not as it was stored. The store can be used for all other tasks."""


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
    """The task was changed, or is owned, by another writer. `generation` is its current one, 0 if it does not exist; `owner` its
    owner."""

    generation: int
    owner: str | None = None


class StoreFull(msgspec.Struct, frozen=True):
    """The store accepts no new task until some of its tasks have ended."""


class Unserializable(msgspec.Struct, frozen=True):
    """The change holds a value that is not JSON, or JSON that is nested too deeply to be written."""


class DamagedTask(msgspec.Struct, frozen=True):
    """A task that was changed in the store by something else, so it is not written over. `reason` is one line for the
    operator."""

    reason: str


CommitRefusal: TypeAlias = CommitConflict | StoreFull | Unserializable | DamagedTask
"""Why a change was not made."""


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event with its number in the task's log."""

    generation: int
    event: TaskEvent


class OwnerRequest(msgspec.Struct, frozen=True):
    """A request of another daemon to the owner of a task. `kind` is `CANCEL`, `MESSAGE`, `ANSWER` or
    `RELOAD_PUSH_TARGETS`; ignore unknown ones."""

    task_id: str
    kind: str
    body: bytes = b""


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of one task: appends `events` at `expected_generation` (0: the task is new), and sets the other fields.

    The other fields describe the task after these events. `scope` says which callers see it. `TaskStore.list` filters by
    `state`, `context_id` and `status_timestamp`. `owner` is the daemon that works on the task; None if no daemon does.
    `snapshot` is the task after these events, and `waiting` has the messages whose execution is not over then, as
    `TaskDraft.unfinished`; None keeps the stored snapshot. A change without events sets only the snapshot and the owner.

    A daemon can change only a task whose owner is its own `owner_id` or None. With `previous_owner` the owner must be exactly
    that one: so a daemon takes a task over from a dead daemon, or takes one that is `QUEUED`. If several try, one succeeds.

    `requests` are left for the owner in the same commit. They must be empty if `owner` is None.
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
    """A task as the store holds it: a snapshot as of `snapshot_generation`, and the events after it. `waiting` has the
    messages whose execution was not over at the snapshot."""

    snapshot: Task
    snapshot_generation: int
    later_events: tuple[LoggedEvent, ...]
    scope: str
    owner: str | None
    waiting: tuple[WaitingMessage, ...] = ()

    @property
    def generation(self) -> int:
        return self.later_events[-1].generation if self.later_events else self.snapshot_generation


class News(msgspec.Struct, frozen=True):
    """The events of a task behind some generation, all as of one moment, and the task's owner at that moment."""

    events: Sequence[LoggedEvent]
    owner: str | None


class PushTarget(msgspec.Struct, frozen=True):
    """A stored push config and the A2A version (`1.0`, `0.3`) of its receiver. `config.id` and `config.task_id` are set."""

    config: PushConfig
    protocol_version: str


class ClaimedTask(msgspec.Struct, frozen=True):
    """A task that was claimed. `stored` is the task as it is then, None where it is too large to come with the claim or can't be
    read; `begun` is the generation of the event by which its execution began with the claim, 0 where it did not. `asked` says
    that there are requests to its owner."""

    task_id: str
    stored: StoredTask | None = None
    push_targets: Sequence[PushTarget] = ()
    begun: int = 0
    asked: bool = True


ANNOUNCED: Final = "announced:"
"""Begins the names that `TaskStore.announce` takes. No task has such an id."""


class Changes(msgspec.Struct, frozen=True):
    """Changes of other daemons since the last report. A report may name more than was done, never less.

    `may_concern(task_id)` tells whether that task may have changed, or what has that announced name. `requests` is true if there
    may be requests to this daemon, `queued` if there may be tasks to claim. `names`, if there are any, are those of everything
    that may have changed: `name_of(task_id)` gives that of a task.
    """

    may_concern: Callable[[str], bool]
    requests: bool = True
    queued: bool = True
    names: frozenset[str] | None = None
    name_of: Callable[[str], str] = str


class EventLog(Protocol):
    """Reads the events that `TaskStore.commit` appended.

    A caller that reads a task's log over some time calls `retain` before and `release` afterwards.
    """

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        """Return the next events after generation `after`, oldest first, without gaps; empty if the task has none yet.

        Returns at most `limit` events, fewer if they are large. Raises `LogTruncatedError` if the next event has been deleted,
        or if there is no such task. Events after the snapshot are deleted only with their task.
        """
        ...

    def retain(self, task_id: str) -> None:
        """Keep this task once it has ended, whatever its age and the number of ended tasks.

        A store of limited size may still have to delete it, and so may other daemons on the same store. The task need not
        exist. Never waits.
        """
        ...

    def release(self, task_id: str) -> None:
        """Undo one call of `retain`."""
        ...


class TaskStore(Protocol):
    """Stores tasks. Every method may be cancelled; a cancelled `commit` is done completely or not at all.

    Every method but `free` raises `StoreError` if the disk or the server fails, or if stored data was changed. Then nothing
    has changed, with two exceptions. If the server was lost, the change may have been made just before. If the store's files
    were removed, the change may appear once they are put back.
    """

    @property
    def durable(self) -> bool:
        """Whether committed changes survive the end of the process."""
        ...

    @property
    def owner_id(self) -> str:
        """This daemon's name as an owner of tasks. Available once the store is open. Each opening gives a new one."""
        ...

    @property
    def event_log(self) -> EventLog:
        """The logs of the tasks in this store."""
        ...

    @property
    def grace_seconds(self) -> float:
        """Seconds that a daemon must have counted as dead before its tasks are taken over.

        A daemon that has lost the store may go on working until it knows: see `lease_end`.
        """
        ...

    def lease_end(self) -> float:
        """Return the time of `time.monotonic` until which no other daemon takes over a task of this one.

        The time moves on while this daemon reaches the store. It is `math.inf` if other daemons only take over from a daemon
        whose process has ended. Never waits.
        """
        ...

    def open_early(self) -> None:
        """Do the part of `open` that needs no event loop, so that errors show early. Blocks.

        `open` or `close_early` must follow. Raises `StoreError`, also if the system lacks something that the store needs.
        """
        ...

    def close_early(self) -> None:
        """Undo `open_early` if `open` did not follow; else do nothing. Blocks. Raises `StoreError`."""
        ...

    async def open(self) -> None:
        """Open the store, once, on the event loop, before any other call but `open_early`. Raises `StoreError`."""
        ...

    async def close(self) -> None:
        """Close the store. The tasks that this daemon owns become orphans. A second call does nothing."""
        ...

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        """Make every change that can be made. Returns, in order, None for a change that was made, else why it was refused.

        Readers see the changes of one call all at once. They are stored when this returns (by a durable store: on the disk).
        Raises `ValueError` for two changes of one task, and for a new task that does not begin with `TaskCreated`.

        A store that need not wait may also have a method `commit_nowait`, which does the same at once.
        """
        ...

    async def load(self, task_id: str) -> StoredTask | None:
        """Return a task; None if there is none. Tasks that have ended are deleted some time later."""
        ...

    async def list(self, query: TaskQuery) -> TaskPage:
        """Return one page of tasks. A page has fewer tasks than asked for if they are large.

        A change between two pages makes no page repeat or skip a task that it does not affect. A damaged task is in
        `TaskPage.unreadable`. Raises `ValueError` for a token of another store and for a bad page size.
        """
        ...

    async def count(self) -> Mapping[TaskState, int]:
        """Count the tasks of all callers by state. States without tasks may be left out."""
        ...

    def check_reachable(self) -> None:
        """Raise `StoreUnavailableError` if the store's server has been away for longer than callers should wait. Never waits."""
        ...

    async def probe(self) -> None:
        """Raise `StoreError` if nothing could be committed now. Changes no task."""
        ...

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        """Add a target, or replace the one with the same config id. Returns False if there is no such task."""
        ...

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        """Return the task's targets, in the order in which they were added. They are deleted with the task."""
        ...

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        """Delete a target. Returns False if there was none."""
        ...

    async def list_orphans(self) -> Sequence[str]:
        """Return the ids of tasks that have not ended and whose owner is dead. `TaskChange.previous_owner` takes one over."""
        ...

    async def list_owned(self) -> Sequence[str]:
        """Return the ids of tasks that have not ended and that this daemon owns."""
        ...

    async def claim(self, limit: int) -> Sequence[str]:
        """Become the owner of at most `limit` `QUEUED` tasks, least recently changed first. Returns their ids.

        Daemons that claim at the same time get different tasks and never wait for each other. Requests to the owner stay with
        the tasks.

        A store may also have a method `claim_begun(limit, begin, told)`, which does the same, returns a `ClaimedTask` for each,
        and appends in the same commit the event that `begin(stored)` returns, unless that is None. `begin` may be called in
        another thread. `told` says that `wait_for_changes` has reported tasks to claim. Other daemons hear of such a commit with
        the next one of the task, at the latest a second later.
        """
        ...

    # A store may also have a method `read_news(after)`, which takes generations by the ids of tasks, and returns for each the
    # `News` behind it, as many at once as there are. Those that are too large, lost or damaged are left out.

    async def count_queued(self) -> int:
        """Count the tasks that are `QUEUED`."""
        ...

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        """Leave a request for the daemon that owns the task or will claim it. Returns False if there is no such daemon.

        A second request that equals a waiting one is dropped. Requests stay with the task: a new owner inherits them. They are
        deleted when the task has no owner any more.
        """
        ...

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        """Return the requests to this daemon, oldest first, each once."""
        ...

    async def announce(self, names: Sequence[str]) -> None:
        """Have `wait_for_changes` of the other daemons report these names, which begin with `ANNOUNCED` and are short and ASCII.

        Nothing is stored for daemons that start later.
        """
        ...

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        """Wait until another daemon has changed something since the last call returned, perhaps before this call.

        A store that is not told of changes looks every `poll_seconds`. Cancelling the call loses no change. Raises nothing. Only
        one task at a time may call it.
        """
        ...

    def free(self, size: int) -> None:
        """Delete ended tasks, oldest first, until `size` bytes of memory are free. A store on a disk deletes none. Never
        waits."""
        ...
