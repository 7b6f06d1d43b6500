"""What a store's calls cost with more and more tasks in PostgreSQL: time, the server's time, pages, and bytes of WAL.

rows.py [--sizes 10000,100000,1000000] [--callers N] [--depths 100,1000,10000] [--json FILE]

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
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from fill import SHARED, Work, begun, commit, copy, fill, kept
from servers import Postgres, postgres

from discreet.a2a.types import TaskQuery, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import CANCEL, OwnerRequest
from discreet.agents.stores.postgres.store import PostgresStore

CALLS = 60
KEPT_FOR_EVER = Retention(max_tasks=2**40, max_seconds=None)
TITLES = {
    "ms": "ms",
    "ms of the server": "server_ms",
    "pages": "pages",
    "bytes of WAL": "wal",
    "whole pages in it, right after a checkpoint": "full_pages",
}


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


Calls: TypeAlias = Iterator[Callable[[], Awaitable[Any]]]


def _repeated(call: Callable[[], Awaitable[Any]]) -> Calls:
    while True:
        yield call


async def _costs(connection: Any, plans: dict[str, Calls]) -> dict[str, Cost]:
    meter = Meter(connection)
    return {name: await meter.cost(calls) for name, calls in plans.items()}


# -- with more tasks kept --------------------------------------------------------------------------------------


async def with_kept(url: str, connection: Any, scope: str) -> dict[str, Cost]:
    began = time.perf_counter()
    store = PostgresStore(url, KEPT_FOR_EVER)
    await store.open()
    opened = Cost((time.perf_counter() - began) * 1e3, 0, 0, 0, 0)
    ids = [row[0] for row in connection.execute(_SPREAD)]
    middle = connection.execute("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY sequence) FROM discreet.tasks")
    token = str(middle.fetchone()[0])
    recent = connection.execute("SELECT status_timestamp FROM discreet.tasks ORDER BY sequence DESC OFFSET 100 LIMIT 1")
    since = recent.fetchone()[0]
    works = [Work(store.owner_id, scope=scope) for _ in range(2 * CALLS)]
    new, old, ended = iter(works), iter([work for work in works for _ in range(2)]), iter(works)
    task_ids = (ids[number % len(ids)] for number in count())

    def listed(**options: Any) -> Calls:
        query = TaskQuery(scope=scope, include_artifacts=False, **options)
        return _repeated(lambda: store.list(query))

    plans: dict[str, Calls] = {
        "commit of a new task": (partial(commit, store, work.create()) for work in new),
        "commit of an event": (partial(commit, store, work.chunk()) for work in old),
        "commit of the end": (partial(commit, store, work.end()) for work in ended),
        "load": (partial(store.load, task_id) for task_id in task_ids),
        "list, first page": listed(),
        "list, a page in the middle": listed(page_token=token),
        "list, tasks that wait": listed(state=TaskState.INPUT_REQUIRED),
        "list, a context": listed(context_id=SHARED),
        "list, changed lately": listed(status_timestamp_after=since),
        "count by state": _repeated(store.count),
        "list_orphans": _repeated(store.list_orphans),
        "claim, nothing queued": _repeated(lambda: store.claim(8)),
        "count_queued": _repeated(store.count_queued),
        "send_owner_request": (
            partial(store.send_owner_request, OwnerRequest(task_id, CANCEL)) for task_id in task_ids
        ),
        "take_owner_requests": _repeated(store.take_owner_requests),
        "look for expired tasks": _repeated(store.delete_expired_tasks),
    }
    try:
        return {"open": opened, **await _costs(connection, plans)}
    finally:
        await store.close()


async def growth(server: Postgres, sizes: list[int], callers: int) -> dict[int, dict[str, Cost]]:
    url, found = server.new_database(), {}
    store = PostgresStore(url, KEPT_FOR_EVER)
    await store.open()
    ended, waiting = await kept(store)
    await store.close()
    with server.connect(url) as connection:
        for rows in sizes:
            began = time.monotonic()
            fill(connection, ended, waiting, rows, callers)
            filled = time.monotonic() - began
            found[rows] = await with_kept(url, connection, "" if callers == 1 else "caller-1")
            _say(f"{rows:,} tasks of {callers:,} callers: filled in {filled:.0f} s")
    return found


# -- with more tasks queued, and at work elsewhere -------------------------------------------------------------


async def backlog(server: Postgres, depths: list[int]) -> dict[int, dict[str, Cost]]:
    """With so many tasks queued, and as many that another daemon works on."""
    url, found = server.new_database(), {}
    other, ours = PostgresStore(url, KEPT_FOR_EVER), PostgresStore(url, KEPT_FOR_EVER)
    await other.open()
    await ours.open()
    try:
        with server.connect(url) as connection:
            there = 0
            for depth in depths:
                queued, busy = await begun(other)
                copy(connection, queued, depth - there)
                copy(connection, busy, depth - there)
                there = depth
                found[depth] = await _costs(connection, _with_queued(ours))
                connection.execute("UPDATE discreet.tasks SET owner = NULL WHERE owner = %s", (ours.owner_id,))
    finally:
        await ours.close()
        await other.close()
    return found


def _with_queued(store: PostgresStore) -> dict[str, Calls]:
    new, works = (Work(None) for _ in count()), [Work(store.owner_id) for _ in range(2 * CALLS)]
    own, old = iter(works), iter(works)
    return {
        "commit of a queued task": (partial(commit, store, work.queue()) for work in new),
        "commit of a task of its own": (partial(commit, store, work.create()) for work in own),
        "commit of an event": (partial(commit, store, work.chunk()) for work in old),
        "take_owner_requests, none": _repeated(store.take_owner_requests),
        "claim of one": _repeated(lambda: store.claim(1)),
        "claim of one, and its request": _repeated(lambda: _claimed(store)),
        "list_owned": _repeated(store.list_owned),
        "list_orphans": _repeated(store.list_orphans),
        "count_queued": _repeated(store.count_queued),
        "look for expired tasks": _repeated(store.delete_expired_tasks),
    }


async def _claimed(store: PostgresStore) -> None:
    assert await store.claim(1)
    assert await store.take_owner_requests()


def table(what: str, found: dict[int, dict[str, Cost]]) -> list[str]:
    """By size; the last column is the last size over the first."""
    sizes = [*found]
    lines = []
    for title, figure in TITLES.items():
        lines += [
            f"| {title} | {' | '.join(f'{rows:,} {what}' for rows in sizes)} | times |",
            "| --- " * (len(sizes) + 2) + "|",
        ]
        for name in found[sizes[0]]:
            values = [getattr(found[rows][name], figure) for rows in sizes]
            if max(values) > 0.005:
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
    parser.add_argument("--sizes", default="10000,100000,1000000", help="tasks kept")
    parser.add_argument("--callers", type=int, default=1)
    parser.add_argument("--depths", default="100,1000,10000", help="tasks queued, and as many at work elsewhere")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    found = {}
    with postgres() as server:
        if args.sizes:
            found["kept"] = asyncio.run(growth(server, [int(size) for size in args.sizes.split(",")], args.callers))
        if args.depths:
            found["queued"] = asyncio.run(backlog(server, [int(depth) for depth in args.depths.split(",")]))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    for what, by_size in found.items():
        print("\n".join(table(what, by_size)))


if __name__ == "__main__":
    main()
