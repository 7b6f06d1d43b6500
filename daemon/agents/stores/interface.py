"""What keeps tasks: the two Protocols that every store implements, and the data that crosses them.

A task is its event log: events are numbered from 1 without gaps, and the number of the last is the task's generation. A
snapshot is a task as of some generation; it saves reading the log from its beginning and may lie behind it. Between what
is asked in one `commit`, all of a change holds or nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

from ..model.types import Event, PushConfig, Task, TaskState


class ConflictError(Exception):
    """Somebody else has changed the task, or works on it. `last` is its generation now, 0 where there is no such task;
    `owner` is who works on it."""

    def __init__(self, task_id: str, last: int, owner: str | None = None) -> None:
        super().__init__(f"task {task_id} is at {last}")
        self.task_id = task_id
        self.last = last
        self.owner = owner


class StoreFullError(Exception):
    """The store takes no new task before some of those that it has have ended."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"no room for task {task_id}")
        self.task_id = task_id


class UnstorableError(Exception):
    """What a change holds is not JSON, or nested too deeply to be written."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"task {task_id} holds what can't be written")
        self.task_id = task_id


Refusal: TypeAlias = ConflictError | StoreFullError | UnstorableError
"""Why a change was not made."""


class LogMovedError(Exception):
    """The log does not reach back to what was asked for. `last` is the task's generation now."""

    def __init__(self, task_id: str, last: int) -> None:
        super().__init__(f"the log of task {task_id} has moved on to {last}")
        self.task_id = task_id
        self.last = last


class Logged(msgspec.Struct, frozen=True):
    """An event and its number."""

    generation: int
    event: Event


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of one task: `events` are appended, if it is at generation `expected` (0: it does not exist).

    The rest tells where the task stands after them. `scope` names whose it is: callers see tasks of their own scope only.
    `state` and `updated` (the status' timestamp) are for `list`, `context_id` too. `snapshot` is the task as of the last of
    these events, None to leave the one that is there. `owner` is the daemon that works on it, None when nobody does.
    A change without events saves a snapshot, an owner, or both, and the rest stays as it was.

    Nobody changes a task that another daemon owns: the owner now must be the store's own, or nobody. With `taken_from` it
    must be that daemon, and no other: whoever takes over a dead one's task says so, and of all who try one succeeds.
    """

    task_id: str
    expected: int
    events: tuple[Event, ...]
    scope: str
    context_id: str
    state: TaskState
    updated: str
    owner: str | None
    snapshot: Task | None = None
    taken_from: str | None = None

    @property
    def generation(self) -> int:
        """The task's generation when this is done."""
        return self.expected + len(self.events)


class Stored(msgspec.Struct, frozen=True):
    """A task as it is kept: a snapshot with the generation that it reflects, the events behind it, and whose it is."""

    snapshot: Task
    reflects: int
    later: tuple[Logged, ...]
    scope: str
    owner: str | None

    @property
    def generation(self) -> int:
        return self.later[-1].generation if self.later else self.reflects


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks are wanted. `after` is a timestamp that the status' own is not below. `token` is empty for the first page.

    `size` is 1 to 100. Without `artifacts` the tasks come without theirs, which saves reading them.
    """

    scope: str
    context_id: str | None = None
    state: TaskState | None = None
    after: str | None = None
    size: int = 50
    token: str = ""
    artifacts: bool = True


class Listed(msgspec.Struct, frozen=True):
    """One page: the tasks, newest change first, the token of the next page (empty: none), and how many match in all."""

    tasks: tuple[Task, ...]
    next_token: str
    total: int


class PushTarget(msgspec.Struct, frozen=True):
    """A push config as it is kept, with the dialect in which its receiver is spoken to; `config.id` and `.task_id` are set."""

    config: PushConfig
    dialect: str


class EventLog(Protocol):
    """Reads what `TaskStore.commit` has appended."""

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[Logged]:
        """The next events behind generation `after`, oldest first and without gaps; empty when there are none.

        At most `limit`, and fewer where they are large.

        Raises `LogMovedError` when the next one is not kept any more; what is behind the snapshot always is. A task that
        does not exist has no events.
        """
        ...


class TaskStore(Protocol):
    """Keeps tasks. Every method may be cancelled; a `commit` that was is done wholly or not at all.

    `durable` says that what was committed is there after the process has been killed. `owner` names this daemon among
    those that share the store; it is there once the store is open, and another one each time. All but `moves` raise
    `StoreError` when the disk fails: then nothing was done.
    """

    @property
    def durable(self) -> bool: ...

    @property
    def owner(self) -> str: ...

    @property
    def events(self) -> EventLog: ...

    async def open(self) -> None:
        """Before anything else, once, on the event loop. Raises `StoreError` in one line for people."""
        ...

    async def close(self) -> None:
        """What was committed stays where it is durable; what this daemon owned is orphaned. A second time does nothing."""
        ...

    async def commit(self, changes: Sequence[Change]) -> Sequence[Refusal | None]:
        """Do what can be done, each change by itself, all at once for whoever reads: what went wrong with each.

        When it returns, what it did is kept (for a durable store: on the disk). At most one change per task, and a new task
        begins with `Created`: raises `ValueError`.
        """
        ...

    async def load(self, task_id: str) -> Stored | None:
        """The task, None where there is none, or none any more: tasks that have ended don't stay for ever."""
        ...

    async def list(self, query: Query) -> Listed:
        """Raises `ValueError` for a token that is none of this store's. Changes between two pages make no page repeat or
        skip a task that they don't touch."""
        ...

    async def put_target(self, task_id: str, target: PushTarget) -> bool:
        """Add it, or put it in the place of the one with its id. False where there is no such task."""
        ...

    async def targets(self, task_id: str) -> Sequence[PushTarget]:
        """In the order in which they were first put. They go with their task."""
        ...

    async def drop_target(self, task_id: str, config_id: str) -> bool:
        """False where there was none."""
        ...

    async def orphans(self) -> Sequence[str]:
        """The tasks that have not ended and whose owner is no more: for whoever first commits a change `taken_from` it."""
        ...

    async def ask_owner(self, task_id: str, what: str) -> bool:
        """Leave a request for the daemon that works on the task; False where none does. The same one twice is one.

        Requests stay with the task: who takes it over gets them, and they are gone when nobody works on it any more.
        """
        ...

    async def asked(self) -> Sequence[tuple[str, str]]:
        """Requests for this daemon as task and what is asked for, oldest first, each once."""
        ...

    def moves(self) -> int:
        """A number that changes when another process has changed something; always the same where no other can. Cheap."""
        ...


class StoreError(Exception):
    """The store can't be used; the message is one line for people."""
