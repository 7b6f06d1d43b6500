"""What a store's calls cost with more and more tasks in PostgreSQL: time, the server's time, pages, and bytes of WAL.

rows.py [--sizes 10000,100000,1000000] [--callers N] [--json FILE]

Tasks are made by copying rows of tasks that the store wrote. bench/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from discreet.daemon.agents.model.draft import apply_events
from discreet.daemon.agents.model.ids import new_id
from discreet.daemon.agents.model.types import (
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
)
from discreet.daemon.agents.stores.checks import Retention
from discreet.daemon.agents.stores.interface import CANCEL, OwnerRequest, TaskChange, TaskQuery
from discreet.daemon.agents.stores.postgres.schema import ALL_SCOPES
from discreet.daemon.agents.stores.postgres.store import PostgresStore
from servers import Postgres, postgres

CALLS = 60
SHARED = "shared"
"""A context of 100 tasks. Every other task has one of its own."""

WAITING_EVERY = 100
"""One task in so many waits for input; the others have ended."""

KEPT_FOR_EVER = Retention(max_tasks=2**40, max_seconds=None)
FIGURES = ("ms", "server_ms", "pages", "wal", "full_pages")


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


async def commit(store: PostgresStore, *changes: TaskChange) -> None:
    for refusal in await store.commit(changes):
        assert refusal is None, refusal


# -- rows ------------------------------------------------------------------------------------------------------


async def templates(store: PostgresStore) -> tuple[str, str]:
    """The ids of a task that has ended, and of one that waits for input."""
    found = []
    for state in (TaskState.COMPLETED, TaskState.INPUT_REQUIRED):
        work = Work(store.owner_id)
        await commit(store, work.create())
        await commit(store, work.chunk())
        await commit(store, work.end(state))
        found.append(work.id)
    return found[0], found[1]


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
}


def fill(connection: Any, ended: str, waiting: str, rows: int, callers: int) -> None:
    """As many tasks as make `rows` in all, of so many callers; one caller is the one who sent the templates."""
    there = connection.execute("SELECT count(*) FROM discreet.tasks").fetchone()[0]
    connection.execute(
        "CREATE TEMPORARY TABLE made AS SELECT n, nextval('discreet.changes') AS key, gen_random_uuid()::text AS id,"
        f" CASE WHEN n % {WAITING_EVERY} = 0 THEN '{waiting}' ELSE '{ended}' END AS template"
        f" FROM generate_series({there + 1}, {rows}) AS n"
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
        joined = "tasks" if table == "tasks" else f"tasks JOIN discreet.{table} AS copied ON copied.task_key = tasks.key"
        source = "tasks" if table == "tasks" else "copied"
        taken = ", ".join(new.get(name, f"{source}.{name}") for name in names)
        taken = taken.format(rows=rows, callers=callers, shared=SHARED)
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


_SPREAD = """
    SELECT id FROM discreet.tasks WHERE key % (SELECT 1 + count(*) / 200 FROM discreet.tasks) = 0 LIMIT 200
"""


# -- calls -----------------------------------------------------------------------------------------------------


class Cost(NamedTuple):
    """Of one call: its median time, and what the server did for it."""

    ms: float
    server_ms: float
    pages: float
    wal: float
    full_pages: float


class Meter:
    """Measures calls one after the other."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    async def cost(self, calls: Iterator[Callable[[], Awaitable[Any]]]) -> Cost:
        for call in [next(calls) for _ in range(10)]:  # the first few are prepared by the server
            await call()
        todo = [next(calls) for _ in range(CALLS)]
        self._connection.execute("SELECT pg_stat_statements_reset()")
        times = []
        for call in todo:
            began = time.perf_counter()
            await call()
            times.append(time.perf_counter() - began)
        row = self._connection.execute(
            "SELECT sum(total_exec_time), sum(shared_blks_hit + shared_blks_read), sum(wal_bytes), sum(wal_fpi)"
            " FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"
        ).fetchone()
        return Cost(statistics.median(times) * 1e3, *(float(value or 0) / CALLS for value in row))


async def measure(url: str, connection: Any, scope: str) -> dict[str, Cost]:
    began = time.perf_counter()
    store = PostgresStore(url, KEPT_FOR_EVER)
    await store.open()
    opened = Cost((time.perf_counter() - began) * 1e3, 0, 0, 0, 0)
    meter = Meter(connection)
    ids = [row[0] for row in connection.execute(_SPREAD)]
    middle = connection.execute("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY sequence) FROM discreet.tasks")
    token = str(middle.fetchone()[0])
    works = [Work(store.owner_id, scope=scope) for _ in range(2 * CALLS)]
    new, old, ended = iter(works), iter([work for work in works for _ in range(2)]), iter(works)

    def listed(**options: Any) -> Iterator[Callable[[], Awaitable[Any]]]:
        query = TaskQuery(scope=scope, include_artifacts=False, **options)
        return _repeated(lambda: store.list(query))

    task_ids = (ids[number % len(ids)] for number in count())
    plans: dict[str, Iterator[Callable[[], Awaitable[Any]]]] = {
        "commit of a new task": (lambda change=work.create(): commit(store, change) for work in new),
        "commit of an event": (lambda change=work.chunk(): commit(store, change) for work in old),
        "commit of the end": (lambda change=work.end(): commit(store, change) for work in ended),
        "load": (lambda task_id=task_id: store.load(task_id) for task_id in task_ids),
        "list, first page": listed(),
        "list, a page in the middle": listed(page_token=token),
        "list, tasks that wait": listed(state=TaskState.INPUT_REQUIRED),
        "list, a context": listed(context_id=SHARED),
        "count by state": _repeated(store.count),
        "list_orphans": _repeated(store.list_orphans),
        "claim, nothing queued": _repeated(lambda: store.claim(8)),
        "count_queued": _repeated(store.count_queued),
        "send_owner_request": (
            lambda task_id=task_id: store.send_owner_request(OwnerRequest(task_id, CANCEL)) for task_id in task_ids
        ),
        "take_owner_requests": _repeated(store.take_owner_requests),
        "look for expired tasks": _repeated(store.delete_expired_tasks),
    }
    try:
        found = {"open": opened}
        for name, calls in plans.items():
            found[name] = await meter.cost(calls)
        return found
    finally:
        await store.close()


def _repeated(call: Callable[[], Awaitable[Any]]) -> Iterator[Callable[[], Awaitable[Any]]]:
    while True:
        yield call


async def growth(server: Postgres, sizes: list[int], callers: int) -> dict[int, dict[str, Cost]]:
    url, found = server.new_database(), {}
    store = PostgresStore(url, KEPT_FOR_EVER)
    await store.open()
    ended, waiting = await templates(store)
    await store.close()
    with server.connect(url) as connection:
        for rows in sizes:
            began = time.monotonic()
            fill(connection, ended, waiting, rows, callers)
            filled = time.monotonic() - began
            found[rows] = await measure(url, connection, "" if callers == 1 else "caller-1")
            _say(f"{rows:,} tasks of {callers:,} callers: filled in {filled:.0f} s")
    return found


def table(found: dict[int, dict[str, Cost]]) -> list[str]:
    """Times, then pages and WAL by size; the last columns are the last size over the first."""
    sizes = [*found]
    lines = []
    for title, figure in (
        ("ms", "ms"),
        ("ms of the server", "server_ms"),
        ("pages", "pages"),
        ("bytes of WAL", "wal"),
        ("of them whole pages after a checkpoint", "full_pages"),
    ):
        lines += [f"| {title} | {' | '.join(f'{rows:,} tasks' for rows in sizes)} | times |", "| --- " * (len(sizes) + 2) + "|"]
        for name in found[sizes[0]]:
            values = [getattr(found[rows][name], figure) for rows in sizes]
            if any(values):
                times = f"{values[-1] / values[0]:.2f}" if values[0] else "–"
                lines.append(f"| {name} | {' | '.join(map(_number, values))} | {times} |")
        lines.append("")
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    with postgres() as server:
        found = asyncio.run(growth(server, [int(size) for size in args.sizes.split(",")], args.callers))
    if args.json:
        figures = {rows: {name: cost._asdict() for name, cost in by.items()} for rows, by in found.items()}
        Path(args.json).write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
