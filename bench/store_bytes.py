"""How many bytes a task takes in PostgreSQL: by table and index, and of write-ahead log; or in Redis. Prints a table of Markdown.

    python bench/store_bytes.py                                      on a server of its own, in a temporary folder
    python bench/store_bytes.py --store postgresql://HOST/EMPTY      on yours; the role must be a superuser
    python bench/store_bytes.py --queued                             a front takes the messages, and a worker does the work
    python bench/store_bytes.py --redis                              in a Redis server of its own

The texts are pieces of this project's documentation, which PostgreSQL compresses as it does other prose. A small task is a
question and an answer. A medium and a large one stream their answer piece by piece.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psycopg

from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.client import Peer
from discreet.testing import spawned

ROOT = Path(__file__).resolve().parents[1]
TABLES = "store", "tasks", "snapshots", "events", "owner_requests", "push_targets", "task_counts", "writers"
SIZES = {"small": (100, 1, 200), "medium": (500, 20, 200), "large": (2_000, 100, 1_000)}
"""Characters of the question, pieces of the answer, characters of each."""

ROUNDS = 10
"""Between two of them the tables are vacuumed, as autovacuum does on a server in use."""

SENDERS = 32

WRITTEN = "write-ahead log"
DELETED = "write-ahead log of its deletion, some time later"


class Writer:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        pieces, length, *_ = map(int, context.text.split()[:2])
        artifact = None
        if pieces > 1:
            await events.working()
        for number in range(1, pieces + 1):
            artifact = await events.artifact(
                prose(length), artifact_id=artifact, append=number > 1, last_chunk=number == pieces
            )
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Nothing to let go of."""


agent = Agent(Writer(), name="Writer", description="Writes as much as it is told.", version="1")

TEXT = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))


def prose(length: int) -> str:
    start = random.randrange(len(TEXT) - length)
    return TEXT[start : start + length]


async def send(peer: Peer, size: tuple[int, int, int]) -> None:
    asked, pieces, length = size
    text = f"{pieces} {length} {prose(asked)}"
    message = {"messageId": str(random.getrandbits(64)), "role": "ROLE_USER", "parts": [{"text": text}]}
    await peer.call("SendMessage", {"message": message, "configuration": {"historyLength": 0}})


async def send_all(peer: Peer, size: tuple[int, int, int], tasks: int) -> None:
    async def sender() -> None:
        for _ in range(tasks // SENDERS):
            await send(peer, size)

    async with anyio.create_task_group() as senders:
        for _ in range(SENDERS):
            senders.start_soon(sender)


def value(connection: Any, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]


def sizes_on_disk(connection: Any) -> dict[str, int]:
    """Bytes of each table with what it has outside its rows (TOAST), and of each index."""
    found = {
        f"table `{name}`": value(connection, f"SELECT pg_table_size('discreet.{name}')")
        for name in TABLES
        if value(connection, f"SELECT to_regclass('discreet.{name}') IS NOT NULL")
    }
    indexes = connection.execute(
        "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index"
        " WHERE indrelid::regclass::text LIKE 'discreet.%' ORDER BY 1"
    )
    return found | {f"index `{name.removeprefix('discreet.')}`": size for name, size in indexes}


def vacuum(connection: Any) -> None:
    for name in TABLES:
        if value(connection, f"SELECT to_regclass('discreet.{name}') IS NOT NULL"):
            connection.execute(f"VACUUM ANALYZE discreet.{name}")


@asynccontextmanager
async def daemons(store: str, *, queued: bool) -> AsyncIterator[Peer]:
    async with AsyncExitStack() as running:
        if queued:
            await running.enter_async_context(daemon(store, "--role", "worker"))
        yield await running.enter_async_context(daemon(store, *(("--role", "front") if queued else ())))


def daemon(store: str, *options: str) -> AbstractAsyncContextManager[Peer]:
    return spawned(f"{ROOT}/bench/store_bytes.py:agent", "--store", store, "--request-timeout", "none", *options)


def wal_since(connection: Any, position: str) -> int:
    return int(value(connection, f"SELECT pg_current_wal_lsn() - '{position}'::pg_lsn"))


async def measure(store: str, name: str, tasks: int, *, queued: bool) -> dict[str, float]:
    """Bytes for each task of this size, in an empty store."""
    with psycopg.connect(store, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS discreet CASCADE")
        async with daemons(store, queued=queued) as peer:
            await send_all(peer, SIZES[name], 10 * SENDERS)
            vacuum(connection)
            connection.execute("CHECKPOINT")
            before = sizes_on_disk(connection)
            done = written = 0
            for _ in range(ROUNDS):
                position = value(connection, "SELECT pg_current_wal_lsn()")
                each = max(1, tasks // ROUNDS // SENDERS) * SENDERS
                await send_all(peer, SIZES[name], each)
                done += each
                written += wal_since(connection, position)
                vacuum(connection)
        after = sizes_on_disk(connection)
        found = {what: (after[what] - before[what]) / done for what in after}
        return found | {WRITTEN: written / done, DELETED: await wal_of_deletion(connection, store) / done}


async def wal_of_deletion(connection: Any, store: str) -> int:
    connection.execute("CHECKPOINT")
    position = value(connection, "SELECT pg_current_wal_lsn()")
    async with daemon(store, "--max-ended-tasks", "0"):
        while value(connection, "SELECT EXISTS (SELECT FROM discreet.tasks)"):
            await anyio.sleep(0.1)
    return wal_since(connection, position)


async def measure_redis(store: str, name: str, tasks: int, *, queued: bool) -> dict[str, float]:
    """The same of Redis: bytes of memory, and of its append-only file."""
    import redis

    with redis.Redis.from_url(store) as connection:
        connection.flushall()
        async with daemons(store, queued=queued) as peer:
            await send_all(peer, SIZES[name], 10 * SENDERS)
            before: dict[str, Any] = connection.info()
            each = max(1, tasks // SENDERS) * SENDERS
            await send_all(peer, SIZES[name], each)
            after: dict[str, Any] = connection.info()
    names = {"used_memory_dataset": "memory", "aof_current_size": "append-only file"}
    return {shown: (after[what] - before[what]) / each for what, shown in names.items()}


@contextmanager
def redis_of_its_own() -> Iterator[str]:
    from support.redis import running_server

    with running_server("--auto-aof-rewrite-percentage", "0") as server:
        yield f"redis://127.0.0.1:{server.port}/0"


@contextmanager
def server_of_its_own() -> Iterator[str]:
    from support.postgres import running_server

    with running_server() as server:
        with server.connect() as connection:
            connection.execute("CREATE DATABASE measured")
        yield server.url("measured")


def show(measured: dict[str, dict[str, float]]) -> None:
    print("| bytes for each task |", " | ".join(measured), "|")
    print("| --- |", " | ".join("---" for _ in measured), "|")
    (first, *_) = measured.values()
    for what in first:
        if any(column[what] >= 0.5 for column in measured.values()):
            print(f"| {what} |", " | ".join(f"{column[what]:,.0f}" for column in measured.values()), "|")
    if WRITTEN in first:
        kept = {size: sum(column.values()) - column[WRITTEN] - column[DELETED] for size, column in measured.items()}
        print("| **kept in all** |", " | ".join(f"{each:,.0f}" for each in kept.values()), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="the address of an empty database")
    parser.add_argument("--tasks", type=int, default=6_400, help="of each size; a tenth of the large ones")
    parser.add_argument("--queued", action="store_true", help="with a front and a worker")
    parser.add_argument("--redis", action="store_true", help="in a Redis server of its own")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "lib"))
    own = redis_of_its_own if given.redis else server_of_its_own
    measured = measure_redis if given.redis else measure
    with own() if not given.store else given_store(given.store) as store:
        tasks = {name: given.tasks // (10 if name == "large" else 1) for name in SIZES}
        show({name: anyio.run(partial(measured, store, name, tasks[name], queued=given.queued)) for name in SIZES})


@contextmanager
def given_store(store: str) -> Iterator[str]:
    yield store


if __name__ == "__main__":
    main()
