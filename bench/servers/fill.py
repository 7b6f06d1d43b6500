"""Makes many tasks: a few as the store writes them, and the others by copying their rows in PostgreSQL."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from discreet.a2a.task import apply_events
from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Message,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
    TaskStatus,
    new_id,
)
from discreet.agents.stores.interface import MESSAGE, QUEUED, OwnerRequest, TaskChange, TaskStore
from discreet.agents.stores.postgres.schema import ALL_SCOPES

SHARED = "shared"
"""A context of 100 tasks. Every other task has one of its own."""

WAITING_EVERY = 100
"""One task in so many waits for input; the others have ended."""

# -- tasks -----------------------------------------------------------------------------------------------------


class Work:
    """One task, and the changes that make it: created, chunks of text in one artifact, ended."""

    def __init__(self, owner: str | None, *, scope: str = "", context: str = "", text: str = "hello") -> None:
        self.id, self.context = new_id(), context or new_id()
        self._owner, self._scope = owner, scope
        message = Message(new_id(), Role.USER, (Part(text=text),), self.context, self.id)
        self.task = Task(self.id, self.context, _status(TaskState.WORKING), history=(message,))
        self._generation = 0

    def create(self) -> TaskChange:
        return self._change(TaskCreated(self.task))

    def queue(self) -> TaskChange:
        """As `create`, for whoever has room for it."""
        change = self.create()
        request = OwnerRequest(self.id, MESSAGE, b"x" * 200)
        return msgspec.structs.replace(change, owner=QUEUED, requests=(request,))

    def chunk(self, size: int = 100, number: int = 0) -> TaskChange:
        text = f"{number} ".ljust(size, "x")
        return self._change(ArtifactChanged(Artifact("a", (Part(text=text),)), append=bool(self.task.artifacts)))

    def end(self, state: TaskState = TaskState.COMPLETED) -> TaskChange:
        self._owner = None
        return self._change(StatusChanged(_status(state)), snapshot=True)

    def _change(self, event: TaskEvent, *, snapshot: bool = False) -> TaskChange:
        if self._generation:
            self.task = apply_events(self.task, (event,))
        self._generation += 1
        return TaskChange(
            task_id=self.id,
            expected_generation=self._generation - 1,
            events=(event,),
            scope=self._scope,
            context_id=self.context,
            state=self.task.status.state,
            status_timestamp=self.task.status.timestamp or "",
            owner=self._owner,
            snapshot=self.task if snapshot else None,
        )


def _status(state: TaskState) -> TaskStatus:
    now = time.time()
    return TaskStatus(state, timestamp=time.strftime(f"%Y-%m-%dT%H:%M:%S.{int(now % 1 * 1000):03}Z", time.gmtime(now)))


async def commit(store: TaskStore, *changes: TaskChange) -> None:
    for refusal in await store.commit(changes):
        assert refusal is None, refusal


# -- rows ------------------------------------------------------------------------------------------------------


async def kept(store: TaskStore) -> tuple[str, str]:
    """The ids of a task that has ended, and of one that waits for input."""
    found = []
    for state in (TaskState.COMPLETED, TaskState.INPUT_REQUIRED):
        work = Work(store.owner_id)
        await commit(store, work.create())
        await commit(store, work.chunk())
        await commit(store, work.end(state))
        found.append(work.id)
    return found[0], found[1]


async def begun(store: TaskStore) -> tuple[str, str]:
    """The ids of a task that is queued, and of one that this store's daemon works on."""
    queued, busy = Work(store.owner_id), Work(store.owner_id)
    await commit(store, queued.queue(), busy.create())
    return queued.id, busy.id


NEW = {
    "tasks": {
        "key": "made.key",
        "id": "made.id",
        "sequence": "made.key",
        "context_id": "CASE WHEN n <= 100 THEN '{shared}' ELSE gen_random_uuid()::text END",
        "scope": "CASE WHEN {callers} = 1 THEN scope ELSE 'caller-' || n % {callers} END",
        "status_timestamp": """to_char(now() AT TIME ZONE 'UTC' - ({rows} - n) * interval '0.1 s',
            'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')""",
        "ended_ms": "CASE WHEN ended_ms IS NULL THEN NULL ELSE ended_ms - ({rows} - n) * 100 END",
    },
    "snapshots": {"task_key": "made.key"},
    "events": {"task_key": "made.key"},
    "owner_requests": {"task_key": "made.key"},
}


def fill(connection: Any, ended: str, waiting: str, rows: int, callers: int = 1) -> None:
    """As many tasks as make `rows` in all, of so many callers; one caller is the one who sent those that are copied."""
    there = connection.execute("SELECT count(*) FROM discreet.tasks").fetchone()[0]
    template = f"CASE WHEN n % {WAITING_EVERY} = 0 THEN '{waiting}' ELSE '{ended}' END"
    _copy(connection, template, first=there + 1, last=rows, callers=callers)


def copy(connection: Any, task_id: str, count: int) -> None:
    """So many copies of one task."""
    _copy(connection, f"'{task_id}'", first=101, last=100 + count, callers=1)


def _copy(connection: Any, template: str, *, first: int, last: int, callers: int) -> None:
    connection.execute(
        "CREATE TEMPORARY TABLE made AS SELECT n, nextval('discreet.changes') AS key, gen_random_uuid()::text AS id,"
        f" {template} AS template FROM generate_series({first}, {last}) AS n"
    )
    connection.execute("SET synchronous_commit = off")
    for table, new in NEW.items():
        names = [
            row[0]
            for row in connection.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = 'discreet' AND table_name = %s AND is_identity = 'NO'",
                (table,),
            )
        ]
        joined = (
            "tasks" if table == "tasks" else f"tasks JOIN discreet.{table} AS copied ON copied.task_key = tasks.key"
        )
        source = "tasks" if table == "tasks" else "copied"
        taken = ", ".join(new.get(name, f"{source}.{name}") for name in names)
        taken = taken.format(rows=last, callers=callers, shared=SHARED)
        connection.execute(
            f"INSERT INTO discreet.{table} ({', '.join(names)}) SELECT {taken}"
            f" FROM made JOIN discreet.{joined} ON tasks.id = made.template"
        )
    connection.execute("DROP TABLE made")
    connection.execute("TRUNCATE discreet.task_counts")
    connection.execute(
        "INSERT INTO discreet.task_counts (scope, state, shard, tasks)"
        " SELECT coalesce(scope, %s), state, 0, count(*) FROM discreet.tasks GROUP BY GROUPING SETS ((scope, state), (state))",
        (ALL_SCOPES,),
    )
    connection.execute("VACUUM (ANALYZE)")
    connection.execute("CHECKPOINT")
