"""What a task costs that several daemons on one store pass on to each other, and how many they do.

throughput.py [PART…] [--store postgresql|redis] [--rounds N] [--json FILE] [--statements]

Parts: daemons, roles, idle, followed. bench/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agents_requests import Requests, task_of
from daemons import Daemon, daemon
from load import Load, post, send
from replicas import Figures, Follower, follow, table
from servers import SLOW_LOG, Postgres, Server, postgres, redis

WARM = 100
SENDS = {1: 300, 32: 2000}
"""By how many are under way at a time."""

DAEMONS = (1, 2, 4)
CONNECTIONS = 1
"""To each of several daemons, so that each has one commit at a time."""

DAEMONS_SECONDS = 5.0

IDLE_SECONDS = 10.0
IDLE_FOLLOWERS = (0, 500)

FOLLOWED = 2000
EVENTS_A_SECOND = 100
FOLLOWED_SECONDS = 10
SETTLE_SECONDS = 60.0
"""After so long all streams are open, and the events begin."""


# -- what is counted -------------------------------------------------------------------------------------------


class Counters:
    """What the server has done for all daemons: transactions, statements, writes to the disk; and the CPU of each process."""

    def __init__(self, server: Server, url: str, daemons: dict[str, list[Daemon]]) -> None:
        self._server, self._url, self._daemons = server, url, daemons
        if isinstance(server, Postgres) and server.has_statements:
            with server.connect() as connection:
                connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def read(self) -> Figures:
        found = {f"CPU ms, {name}": sum(each.cpu() for each in group) * 1e3 for name, group in self._daemons.items()}
        found["CPU ms, the store's server"] = self._server.cpu() * 1e3
        return found | self._of_server()

    def _of_server(self) -> Figures:
        if not isinstance(self._server, Postgres):
            return self._of_redis()
        if not self._server.has_statements:
            return {}
        with self._server.connect() as connection:
            rows = connection.execute(_STATEMENTS, (self._url.rpartition("/")[2],)).fetchall()
            calls = {query: int(count) for query, count in rows}
            syncs = connection.execute("SELECT wal_sync FROM pg_stat_wal").fetchone()
        return {
            "statements": sum(calls.values()) - calls.get("BEGIN", 0) - calls.get("COMMIT", 0),
            "commits that write": sum(count for query, count in calls.items() if "discreet.writers (base" in query),
            "notifications": sum(count for query, count in calls.items() if "pg_notify" in query),
            "writes to the disk": int(syncs[0]),
        }

    def _of_redis(self) -> Figures:
        import redis as client

        with client.Redis.from_url(self._url) as connection:
            stats = connection.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): int(each["calls"]) for name, each in stats.items()}
        return {"scripts": calls.get("evalsha", 0), "reads of the wake-up stream": calls.get("xread", 0)}

    def statements(self) -> dict[str, int]:
        """How often each statement was run."""
        if not isinstance(self._server, Postgres):
            return {}
        with self._server.connect() as connection:
            rows = connection.execute(_STATEMENTS, (self._url.rpartition("/")[2],)).fetchall()
        return {" ".join(query.split()): int(count) for query, count in rows}


_STATEMENTS = """
    SELECT query, sum(calls) FROM pg_stat_statements JOIN pg_database ON dbid = pg_database.oid
    WHERE datname = %s GROUP BY query
"""


def less(after: Figures, before: Figures, by: float) -> Figures:
    return {name: (value - before[name]) / by for name, value in after.items()}


@contextmanager
def started(
    server: Server, *options: str, **groups: tuple[int, str]
) -> Iterator[tuple[dict[str, list[Daemon]], Counters]]:
    """Groups of daemons on a store of their own: of each so many with a role."""
    url = server.new_database()
    with ExitStack() as stack:
        daemons = {
            name: [stack.enter_context(daemon(url, "--role", role, *options)) for _ in range(count)]
            for name, (count, role) in groups.items()
        }
        yield daemons, Counters(server, url, daemons)


def requests() -> Requests:
    made = Requests("1.0")
    made.number = time.monotonic_ns()  # ids of messages, which no daemon has seen yet
    return made


async def sent(port: int, count: int, connections: int, text: str = "do", *, wait: bool = True) -> Load:
    made = requests()
    expected = b"TASK_STATE_COMPLETED" if wait and text == "do" else b'"result":'
    bodies = [post(port, "1.0", made.send(text, wait=wait)) for _ in range(count)]
    return await send(port, bodies, connections=connections, expected=expected)


# -- one daemon, or a front and a worker ----------------------------------------------------------------------


def roles(server: Server, show: bool) -> dict[str, Figures]:
    """What a task of a millisecond costs, by who does it and how many there are at a time."""
    found: dict[str, Figures] = {}
    for connections, count in SENDS.items():
        totals: list[float] = []
        for title, groups in (
            ("both", {"first": (1, "both")}),
            ("front and worker", {"first": (1, "front"), "worker": (1, "worker")}),
        ):
            with started(server, **groups) as (daemons, counters):
                port = daemons["first"][0].port
                asyncio.run(sent(port, WARM, connections))
                time.sleep(0.5)
                before, ran = counters.read(), counters.statements()
                load = asyncio.run(sent(port, count, connections))
                time.sleep(0.1)
                figures = less(counters.read(), before, count)
                if show:
                    after = counters.statements()
                    print(f"\n{title}, {connections} at a time: calls for each task")
                    for query, calls in sorted(after.items(), key=lambda each: ran.get(each[0], 0) - each[1]):
                        if (each := (calls - ran.get(query, 0)) / count) > 0.004:
                            print(f"  {each:6.3f} {query[:150]}")
                total = sum(value for name, value in figures.items() if name.startswith("CPU"))
                totals.append(total)
                figures |= {"CPU ms, all": total, "times the CPU of both": total / totals[0]}
                figures |= {"tasks a second": count / load.seconds, "p50 ms": statistics.median(load.latencies) * 1e3}
                found[f"{title}, {connections} at a time"] = figures
    return found


# -- several daemons -------------------------------------------------------------------------------------------


async def _keep_sending(port: int, end: float) -> int:
    count = 0
    while time.monotonic() < end:
        load = await sent(port, 20 * CONNECTIONS, CONNECTIONS)
        count += len(load.latencies)
    return count


async def _all_send(daemons: list[Daemon], seconds: float) -> int:
    end = time.monotonic() + seconds
    return sum(await asyncio.gather(*(_keep_sending(each.port, end) for each in daemons)))


def daemons(server: Server, show: bool) -> dict[str, Figures]:
    """Tasks a second by several daemons, each with clients of its own; and what the server does with the statements alone."""
    found: dict[str, Figures] = {}
    for count in DAEMONS:
        with started(server, daemons=(count, "both")) as (running, counters):
            asyncio.run(_all_send(running["daemons"], 0.5))
            before, began = counters.read(), time.monotonic()
            done = asyncio.run(_all_send(running["daemons"], DAEMONS_SECONDS))
            seconds = time.monotonic() - began
            figures = {"tasks a second": done / seconds} | less(counters.read(), before, done)
            if isinstance(server, Postgres):
                figures["the statements alone, tasks a second"] = statements_alone(server, count)
            found[f"{count} daemons"] = figures
    return found


SCRIPT = r"""
\set n random(1, 2000000000)
BEGIN;
SELECT pg_backend_pid(), ARRAY(SELECT nextval('discreet.changes') FROM generate_series(1, 1) ORDER BY 1), 1::bigint;
SELECT id FROM discreet.tasks WHERE id = ANY(ARRAY['t:client_id-:n']) ORDER BY id FOR NO KEY UPDATE;
INSERT INTO discreet.tasks SELECT currval('discreet.changes'), 't:client_id-:n', '', 'c:client_id-:n', 1,
    '2026-01-01T00:00:00Z', currval('discreet.changes'), 1, 1, 'owner:client_id', NULL;
INSERT INTO discreet.snapshots SELECT currval('discreet.changes'), decode(repeat('ab', 300), 'hex');
INSERT INTO discreet.task_counts SELECT scope, 1, :client_id, 1 FROM unnest(ARRAY['', '*']) AS new (scope)
    ON CONFLICT (scope, state, shard) DO UPDATE SET tasks = task_counts.tasks + excluded.tasks;
INSERT INTO discreet.writers VALUES ('b:client_id', 1, 1)
    ON CONFLICT (base) DO UPDATE SET transaction = writers.transaction + 1;
COMMIT;
SELECT pg_notify('bench', 'one');
SELECT currval('discreet.changes') AS key \gset
BEGIN;
SELECT pg_backend_pid(), ARRAY(SELECT nextval('discreet.changes') FROM generate_series(1, 1) ORDER BY 1), 1::bigint;
SELECT id FROM discreet.tasks WHERE id = ANY(ARRAY['t:client_id-:n']) ORDER BY id FOR NO KEY UPDATE;
UPDATE discreet.tasks SET state = 3, sequence = currval('discreet.changes'), generation = 3, snapshot_generation = 3,
    owner = NULL, ended_ms = 1 WHERE key = :key;
INSERT INTO discreet.snapshots SELECT :key, decode(repeat('ab', 400), 'hex')
    ON CONFLICT (task_key) DO UPDATE SET body = excluded.body;
INSERT INTO discreet.events SELECT :key, 3, 2, decode(repeat('ab', 200), 'hex');
DELETE FROM discreet.owner_requests WHERE task_key = :key;
INSERT INTO discreet.task_counts SELECT scope, state, :client_id, 1
    FROM unnest(ARRAY['', '', '*', '*'], ARRAY[1, 3, 1, 3]) AS new (scope, state)
    ON CONFLICT (scope, state, shard) DO UPDATE SET tasks = task_counts.tasks + excluded.tasks;
INSERT INTO discreet.writers VALUES ('b:client_id', 1, 1)
    ON CONFLICT (base) DO UPDATE SET transaction = writers.transaction + 1;
COMMIT;
SELECT pg_notify('bench', 'one');
"""
"""The two transactions of a task that one daemon does, one row in each statement."""


def statements_alone(server: Postgres, clients: int) -> float:
    """Tasks a second by pgbench, as many at a time as there are connections to daemons."""
    import psycopg

    from discreet.agents.stores.postgres.schema import create

    url = server.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        create(connection, "bench")
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        command = [
            str(server.programs / "pgbench"),
            "-n",
            "-M",
            "simple",
            "-T",
            str(int(DAEMONS_SECONDS)),
            "-f",
            script.name,
        ]
        command += ["-c", str(clients), "-j", str(min(clients, os.cpu_count() or 1)), url]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"pgbench: {ran.stderr[-600:]}")
    (line,) = (line for line in ran.stdout.splitlines() if line.startswith("tps"))
    return float(line.split()[2])


# -- followers -------------------------------------------------------------------------------------------------


async def begun(port: int, texts: list[str]) -> list[str]:
    """The ids of tasks, at once."""
    made = requests()
    ids: list[str] = []
    for text in texts:
        load = await send(port, [post(port, "1.0", made.send(text, wait=False))], connections=1)
        ids.append(str(task_of(load.bodies[0].partition(b"\r\n\r\n")[2])["id"]))
    return ids


async def _idle(daemons: dict[str, list[Daemon]], counters: Counters, followers: int) -> Figures:
    port = daemons["front"][0].port
    tasks = await begun(daemons["worker"][0].port, ["tick 1 1 60"] * followers)
    there = [await follow(port, task) for task in tasks]
    await asyncio.sleep(3.0)
    before = counters.read()
    await asyncio.sleep(IDLE_SECONDS)
    quiet = less(counters.read(), before, IDLE_SECONDS)
    figures = {f"{name}, a second": value for name, value in quiet.items()}
    before = counters.read()
    await sent(daemons["other"][0].port, 500, 1)
    busy = less(counters.read(), before, 500)
    figures["CPU ms of the front for a task of others"] = busy["CPU ms, front"]
    for each in there:
        each.transport.abort()
    return figures


def idle(server: Server, show: bool) -> dict[str, Figures]:
    """What a front costs a second that follows tasks in which nothing happens; and for tasks that others do meanwhile."""
    found: dict[str, Figures] = {}
    for followers in IDLE_FOLLOWERS:
        with started(
            server, "--http-keep-alive", "600", front=(1, "front"), worker=(1, "worker"), other=(1, "both")
        ) as (running, counters):
            found[f"{followers} followers"] = asyncio.run(_idle(running, counters, followers))
    return found


async def _followed(daemons: dict[str, list[Daemon]], counters: Counters) -> Figures:
    fronts, worker = daemons["front"], daemons["worker"][0]
    every_ms = FOLLOWED * 1000 // EVENTS_A_SECOND
    ticks = max(1, FOLLOWED_SECONDS * 1000 // every_ms)
    began, made, queue = time.monotonic(), requests(), iter(range(FOLLOWED))
    there: list[Follower] = []

    async def begin_some() -> None:
        for number in queue:  # each has its events at a time of its own
            wait = SETTLE_SECONDS - (time.monotonic() - began) + number * every_ms / FOLLOWED / 1000
            text = made.send(f"tick {ticks} {every_ms} {wait:.3f}", wait=False)
            load = await send(worker.port, [post(worker.port, "1.0", text)], connections=1)
            port = fronts[number % len(fronts)].port
            there.append(await follow(port, str(task_of(load.bodies[0].partition(b"\r\n\r\n")[2])["id"])))

    await asyncio.gather(*(begin_some() for _ in range(16)))
    if time.monotonic() - began > SETTLE_SECONDS:
        raise SystemExit("this machine is too slow to have all streams open before the events begin")
    await asyncio.sleep(SETTLE_SECONDS - (time.monotonic() - began))
    before = counters.read()
    await asyncio.wait_for(asyncio.gather(*(each.ended for each in there)), 120)
    delays = [delay for each in there for delay in each.delays]
    assert len(delays) == FOLLOWED * ticks, f"{len(delays)} of {FOLLOWED * ticks} events"
    cuts = statistics.quantiles(delays, n=100)
    figures = {"median ms": cuts[49] * 1e3, "p99 ms": cuts[98] * 1e3, "events": float(len(delays))}
    for each in there:
        each.transport.abort()
    return figures | {f"{name}, an event": value for name, value in less(counters.read(), before, len(delays)).items()}


def followed(server: Server, show: bool) -> dict[str, Figures]:
    """How late an event of one of many followed tasks is at a client of another daemon."""
    options = {"front": (2, "front"), "worker": (2, "worker")}
    with started(
        server,
        "--http-max-connections",
        "5000",
        "--http-max-requests",
        "5000",
        "--max-runs",
        "1024",
        "--max-concurrency",
        "5000",
        **options,
    ) as (running, counters):
        return {f"{FOLLOWED} followed tasks": asyncio.run(_followed(running, counters))}


# -- all of it -------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Server, bool], dict[str, Figures]]] = {
    "roles": roles,
    "daemons": daemons,
    "idle": idle,
    "followed": followed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="of daemons, roles, idle, followed")
    parser.add_argument("--store", default="postgresql", choices=("postgresql", "redis"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument(
        "--slow-log", action="store_true", help="a server whose log takes 10 ms; BENCH_DISK must be memory"
    )
    parser.add_argument("--statements", action="store_true", help="print how often each statement is run for a task")
    args = parser.parse_args()
    found: dict[str, dict[str, list[Figures]]] = defaultdict(lambda: defaultdict(list))
    slow_log = SLOW_LOG if args.slow_log else ""
    with postgres(slow_log) if args.store == "postgresql" else redis() as server:
        for _ in range(args.rounds):
            for part in args.parts or PARTS:
                for column, figures in PARTS[part](server, args.statements).items():
                    found[part][column].append(figures)
    medians = {
        part: {
            column: {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
            for column, rounds in columns.items()
        }
        for part, columns in found.items()
    }
    if args.json:
        Path(args.json).write_text(json.dumps(medians, indent=1), encoding="utf-8")
    for part, columns in medians.items():
        print("\n".join(table(part, columns)))


if __name__ == "__main__":
    main()
