"""Reads the SQLite store's file. Each function sees it as of one moment, in the reader's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ...model.types import STATE_NUMBERS
from ..checks import READ_BYTES
from ..interface import Listed, Logged, LogMovedError, PushTarget, Query, Stored
from ..serialization import numbered, target_from, task_after, task_from
from .schema import TERMINAL_NUMBERS

_bodies_from: Final = msgspec.msgpack.Decoder(list[bytes]).decode


@contextmanager
def moment(connection: sqlite3.Connection) -> Iterator[None]:
    """What is read meanwhile stays as it is."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def load(connection: sqlite3.Connection, task_id: str) -> Stored | None:
    with moment(connection):
        row = connection.execute(
            "SELECT key, reflects, generation, scope, owner, body FROM tasks JOIN snapshots ON task = key WHERE id = ?",
            (task_id,),
        ).fetchone()
        if row is None:
            return None
        key, reflects, generation, scope, owner, body = row
        later = _behind(connection, key, reflects, generation)
    return Stored(task_from(body), reflects, numbered(reflects + 1, later), scope, owner)


def read(connection: sqlite3.Connection, task_id: str, after: int, limit: int) -> Sequence[Logged]:
    with moment(connection):
        row = connection.execute("SELECT key, generation FROM tasks WHERE id = ?", (task_id,)).fetchone()
        if row is None or after >= row[1]:
            return ()
        key, generation = row
        found: list[bytes] = []
        size = 0
        for first, bodies in _rows(connection, key, after):
            if not found and first > after + 1:
                break
            some = bodies[after + 1 - first :] if not found else bodies
            found += some
            size += sum(map(len, some))
            if len(found) >= limit or size >= READ_BYTES:
                break
    if not found:
        raise LogMovedError(task_id, generation)
    return numbered(after + 1, found[:limit])


def _rows(connection: sqlite3.Connection, key: int, after: int) -> Iterator[tuple[int, list[bytes]]]:
    """The rows of a task's log that hold anything behind `after`: the first one's number, and all of them."""
    rows = connection.execute(
        "SELECT first, bodies FROM events WHERE task = ? AND last > ? ORDER BY last", (key, after)
    )
    return ((first, _bodies_from(bodies)) for first, bodies in rows)


def _behind(connection: sqlite3.Connection, key: int, reflects: int, generation: int) -> list[bytes]:
    """The events behind a snapshot. It reflects the end of a commit, and no row reaches over that."""
    if reflects == generation:
        return []
    return [body for _, bodies in _rows(connection, key, reflects) for body in bodies]


def list_tasks(connection: sqlite3.Connection, query: Query, below: int) -> Listed:
    conditions, values = _conditions(query)
    with moment(connection):
        total, least = _count(connection, query, conditions, values)
        rows = connection.execute(
            f"SELECT key, number, generation, reflects, body FROM tasks JOIN snapshots ON task = key"
            f" WHERE {conditions} AND number >= ? AND number < ? ORDER BY number DESC LIMIT ?",
            (*values, least, below, query.size + 1),
        ).fetchall()
        page = rows[: query.size]
        tasks = [
            task_after(body, _behind(connection, key, reflects, generation), artifacts=query.artifacts)
            for key, _, generation, reflects, body in page
        ]
    return Listed(tuple(tasks), str(page[-1][1]) if len(rows) > len(page) else "", total)


def _conditions(query: Query) -> tuple[str, list[Any]]:  # Any: what SQLite takes
    state = None if query.state is None else STATE_NUMBERS[query.state]
    wanted: list[tuple[str, Any]] = [
        ("scope = ?", query.scope),
        ("context_id = ?", query.context_id),
        ("state = ?", state),
        ("updated >= ?", query.after),
    ]
    wanted = [(condition, value) for condition, value in wanted if value is not None]
    return " AND ".join(condition for condition, _ in wanted), [value for _, value in wanted]


def _count(connection: sqlite3.Connection, query: Query, conditions: str, values: list[Any]) -> tuple[int, int]:
    """How many match, and a number of change that none of them is below."""
    if query.after is not None:
        row = connection.execute(f"SELECT count(*), min(number) FROM tasks WHERE {conditions}", values).fetchone()
        return row[0], row[1] or 0
    table = "counts" if query.context_id is None else "context_counts"
    (total,) = connection.execute(f"SELECT total(tasks) FROM {table} WHERE {conditions}", values).fetchone()
    return int(total), 0


def targets(connection: sqlite3.Connection, task_id: str) -> Sequence[PushTarget]:
    rows = connection.execute(
        "SELECT body FROM targets JOIN tasks ON key = task WHERE tasks.id = ? ORDER BY row", (task_id,)
    ).fetchall()
    return [target_from(body) for (body,) in rows]


def owners(connection: sqlite3.Connection) -> tuple[set[str], set[str]]:
    """Who is said to be there, and who owns tasks that have not ended."""
    there = connection.execute("SELECT owner FROM daemons WHERE owner <> ''").fetchall()
    working = connection.execute(
        "SELECT DISTINCT owner FROM tasks WHERE owner IS NOT NULL AND ended IS NULL"
    ).fetchall()
    return {owner for (owner,) in there}, {owner for (owner,) in working}


def owned(connection: sqlite3.Connection, owner: str) -> list[str]:
    """The tasks that have not ended of one owner, the longest untouched first."""
    rows = connection.execute("SELECT id FROM tasks WHERE owner = ? AND ended IS NULL ORDER BY number", (owner,))
    return [task_id for (task_id,) in rows.fetchall()]


def writes_of_others(connection: sqlite3.Connection, owner: str) -> int:
    (writes,) = connection.execute("SELECT sum(writes) FROM daemons WHERE owner <> ?", (owner,)).fetchone()
    return int(writes)


def is_asked(connection: sqlite3.Connection, owner: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM asked JOIN tasks ON key = task WHERE owner = ? LIMIT 1", (owner,)
    ).fetchone()
    return row is not None


def expired(connection: sqlite3.Connection, *, before: int, keep: int, most: int) -> list[tuple[int]]:
    """The keys of tasks that ended before a time, or are too many, the oldest first."""
    (count,) = connection.execute(
        f"SELECT total(tasks) FROM counts WHERE state IN ({', '.join('?' * len(TERMINAL_NUMBERS))})", TERMINAL_NUMBERS
    ).fetchone()
    rows = connection.execute(
        "SELECT key, ended FROM tasks WHERE ended IS NOT NULL ORDER BY ended, key LIMIT ?", (most,)
    ).fetchall()
    surplus = int(count) - keep
    return [(key,) for place, (key, ended) in enumerate(rows) if place < surplus or ended < before]
