"""SQL that reads the store's file. Runs in the reader's thread. Writes nothing.

A function with several statements runs them in one transaction, and so sees the file at one moment.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ...model.types import STATE_NUMBERS, Task
from ..checks import MAX_READ_BYTES, up_to_max_page_bytes
from ..interface import LoggedEvent, LogTruncatedError, PushTarget, StoredTask, TaskPage, TaskQuery
from ..serialization import decode_current_task, decode_events, decode_push_target, decode_task
from .schema import TERMINAL_NUMBERS

_decode_bodies: Final = msgspec.msgpack.Decoder(list[bytes]).decode


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Reads inside see the file at one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def load_task(connection: sqlite3.Connection, task_id: str) -> StoredTask | None:
    with read_transaction(connection):
        row = connection.execute(
            "SELECT key, snapshot_generation, generation, scope, owner, body"
            " FROM tasks JOIN snapshots ON task_key = key WHERE id = ?",
            (task_id,),
        ).fetchone()
        if row is None:
            return None
        key, snapshot_generation, generation, scope, owner, body = row
        later_events = _later_events(connection, key, snapshot_generation, generation)
    return StoredTask(
        decode_task(body),
        snapshot_generation,
        decode_events(later_events, first_generation=snapshot_generation + 1),
        scope,
        owner,
    )


def read_events(connection: sqlite3.Connection, task_id: str, after: int, limit: int) -> Sequence[LoggedEvent]:
    with read_transaction(connection):
        row = connection.execute("SELECT key, generation FROM tasks WHERE id = ?", (task_id,)).fetchone()
        if row is None or after >= row[1]:
            return ()
        key, generation = row
        found: list[bytes] = []
        size = 0
        for first, bodies in _event_rows(connection, key, after):
            if not found and first > after + 1:
                break
            wanted = bodies[after + 1 - first :] if not found else bodies
            found += wanted
            size += sum(map(len, wanted))
            if len(found) >= limit or size >= MAX_READ_BYTES:
                break
    if not found:
        raise LogTruncatedError(task_id, generation)
    return decode_events(found[:limit], first_generation=after + 1)


def _event_rows(connection: sqlite3.Connection, key: int, after: int) -> Iterator[tuple[int, list[bytes]]]:
    """The rows that hold events after generation `after`: each with the number of its first event and all its events."""
    rows = connection.execute(
        "SELECT first_generation, bodies FROM events WHERE task_key = ? AND last_generation > ? ORDER BY last_generation",
        (key, after),
    )
    return ((first, _decode_bodies(bodies)) for first, bodies in rows)


def _later_events(connection: sqlite3.Connection, key: int, snapshot_generation: int, generation: int) -> list[bytes]:
    """The events after a snapshot. A snapshot covers whole commits, and no row holds events of two commits."""
    if snapshot_generation == generation:
        return []
    return [body for _, bodies in _event_rows(connection, key, snapshot_generation) for body in bodies]


def list_tasks(connection: sqlite3.Connection, query: TaskQuery, bound: int) -> TaskPage:
    """One page, of tasks whose sequence number is below `bound`."""
    conditions, values = _conditions(query)
    with read_transaction(connection):
        total, min_sequence = _count_tasks(connection, query, conditions, values)
        rows = connection.execute(
            f"SELECT key, sequence, generation, snapshot_generation, body FROM tasks JOIN snapshots ON task_key = key"
            f" WHERE {conditions} AND sequence >= ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
            (*values, min_sequence, bound, query.page_size + 1),
        )
        sequences: list[int] = []

        def found() -> Iterator[Task]:  # one row at a time: all bodies of a page may be very large
            for key, sequence, generation, snapshot_generation, body in rows:
                sequences.append(sequence)
                if len(sequences) > query.page_size:
                    return
                later_events = _later_events(connection, key, snapshot_generation, generation)
                yield decode_current_task(body, later_events, include_artifacts=query.include_artifacts)

        tasks = up_to_max_page_bytes(found())
        rows.close()
    return TaskPage(tuple(tasks), str(sequences[len(tasks) - 1]) if len(sequences) > len(tasks) else "", total)


def _conditions(query: TaskQuery) -> tuple[str, list[Any]]:  # Any: values that SQLite accepts
    state = None if query.state is None else STATE_NUMBERS[query.state]
    filters: list[tuple[str, Any]] = [
        ("scope = ?", query.scope),
        ("context_id = ?", query.context_id),
        ("state = ?", state),
        ("status_timestamp >= ?", query.status_timestamp_after),
    ]
    filters = [(condition, value) for condition, value in filters if value is not None]
    return " AND ".join(condition for condition, _ in filters), [value for _, value in filters]


def _count_tasks(
    connection: sqlite3.Connection, query: TaskQuery, conditions: str, values: list[Any]
) -> tuple[int, int]:
    """How many tasks match, and a sequence number that none of them is below."""
    if query.status_timestamp_after is not None:
        row = connection.execute(f"SELECT count(*), min(sequence) FROM tasks WHERE {conditions}", values).fetchone()
        return row[0], row[1] or 0
    table = "task_counts" if query.context_id is None else "context_task_counts"
    (total,) = connection.execute(f"SELECT total(tasks) FROM {table} WHERE {conditions}", values).fetchone()
    return int(total), 0


def load_push_targets(connection: sqlite3.Connection, task_id: str) -> Sequence[PushTarget]:
    rows = connection.execute(
        "SELECT body FROM push_targets JOIN tasks ON key = task_key WHERE tasks.id = ? ORDER BY row", (task_id,)
    ).fetchall()
    return [decode_push_target(body) for (body,) in rows]


def list_owners(connection: sqlite3.Connection) -> tuple[set[str], set[str]]:
    """The daemons that have a row, and the owners of tasks that have not ended."""
    daemons = connection.execute("SELECT owner_id FROM daemons WHERE owner_id <> ''").fetchall()
    owners = connection.execute(
        "SELECT DISTINCT owner FROM tasks WHERE owner IS NOT NULL AND ended_ms IS NULL"
    ).fetchall()
    return {owner for (owner,) in daemons}, {owner for (owner,) in owners}


def list_owned_tasks(connection: sqlite3.Connection, owner_id: str) -> list[str]:
    """The ids of one owner's tasks that have not ended, least recently changed first."""
    rows = connection.execute(
        "SELECT id FROM tasks WHERE owner = ? AND ended_ms IS NULL ORDER BY sequence", (owner_id,)
    )
    return [task_id for (task_id,) in rows.fetchall()]


def count_writes_of_others(connection: sqlite3.Connection, owner_id: str) -> int:
    (writes,) = connection.execute("SELECT sum(writes) FROM daemons WHERE owner_id <> ?", (owner_id,)).fetchone()
    return int(writes)


def has_owner_requests(connection: sqlite3.Connection, owner_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM owner_requests JOIN tasks ON key = task_key WHERE owner = ? LIMIT 1", (owner_id,)
    ).fetchone()
    return row is not None


def expired_tasks(
    connection: sqlite3.Connection, *, ended_before_ms: int, max_tasks: int, limit: int
) -> list[tuple[int]]:
    """The keys of ended tasks that are too old (milliseconds since 1970) or too many, oldest first, at most `limit`."""
    (count,) = connection.execute(
        f"SELECT total(tasks) FROM task_counts WHERE state IN ({', '.join('?' * len(TERMINAL_NUMBERS))})",
        TERMINAL_NUMBERS,
    ).fetchone()
    rows = connection.execute(
        "SELECT key, ended_ms FROM tasks WHERE ended_ms IS NOT NULL ORDER BY ended_ms, key LIMIT ?", (limit,)
    ).fetchall()
    surplus = int(count) - max_tasks
    return [(key,) for position, (key, ended_ms) in enumerate(rows) if position < surplus or ended_ms < ended_before_ms]
