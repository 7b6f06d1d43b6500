"""SQL that reads the store's file. Runs in the reader's thread. Writes nothing.

A function with several statements runs them in one transaction, and so sees the file at one moment.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import msgspec

from ....a2a.types import STATE_NUMBERS, STATES, Task, TaskQuery, TaskState
from ..checks import MAX_READ_BYTES, Listed, ReadPage, RetainedTasks, read_page
from ..failures import DamagedRecordError
from ..interface import QUEUED, LoggedEvent, LogTruncatedError, PushTarget, StoredTask
from ..serialization import decode_current_task, decode_events, decode_push_target, decode_stored
from .rows import COLUMN_COUNT, COLUMNS, TaskRow, verify
from .schema import IS_QUEUED, TERMINAL_NUMBERS

_decode_bodies: Final = msgspec.msgpack.Decoder(list[bytes]).decode


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Reads inside see the file at one moment.

    They close their cursors, also those that a traceback would hold: while one is open, later reads see that moment, too.
    """
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # some errors end it
            connection.execute("ROLLBACK")


def load_task(connection: sqlite3.Connection, task_id: str) -> StoredTask | None:
    with read_transaction(connection):
        found = connection.execute(f"{_SELECT_TASKS_AND_SNAPSHOTS} WHERE id = ?", (task_id,)).fetchone()
        if found is None:
            return None
        row, snapshot = _verified(found)
        later_events = _later_events(connection, row)
    return decode_stored(task_id, snapshot, row.snapshot_generation, later_events, row.scope, row.owner)


_SELECT_TASKS_AND_SNAPSHOTS: Final = (
    f"SELECT {', '.join(f'tasks.{column}' for column in COLUMNS.split(', '))}, body, snapshots.checksum"
    " FROM tasks LEFT JOIN snapshots ON task_key = key"
)


def _verified(found: Sequence[Any]) -> tuple[TaskRow, bytes]:  # Any: what SQLite returns
    """A task's row and its snapshot. Raises `DamagedRecordError` if one of them was changed, or the snapshot deleted."""
    row = TaskRow(*found[:COLUMN_COUNT])
    row.verify()
    snapshot, checksum = found[COLUMN_COUNT:]
    verify("the snapshot", row.id, checksum, snapshot, row.key, row.snapshot_generation)
    return row, snapshot


def read_events(connection: sqlite3.Connection, task_id: str, after: int, limit: int) -> Sequence[LoggedEvent]:
    with read_transaction(connection):
        selected = connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,)).fetchone()
        if selected is None:
            raise LogTruncatedError(task_id, 0)
        row = TaskRow(*selected)
        row.verify()
        if after >= row.generation:
            return ()
        found: list[bytes] = []
        size = 0
        with closing(_event_rows(connection, row, after)) as rows:
            for first, bodies in rows:
                if not found and first > after + 1:
                    break
                if first > after + 1 + len(found):
                    raise DamagedRecordError("the log", task_id)
                wanted = bodies[after + 1 - first :] if not found else bodies
                found += wanted
                size += sum(map(len, wanted))
                if len(found) >= limit or size >= MAX_READ_BYTES:
                    break
    if not found:
        raise LogTruncatedError(task_id, row.generation)
    return decode_events(found[:limit], task_id, first_generation=after + 1)


def _event_rows(
    connection: sqlite3.Connection, row: TaskRow, after: int
) -> Generator[tuple[int, list[bytes]], None, None]:
    """The rows that hold events after generation `after`: each with the number of its first event and all its events."""
    selected = connection.execute(
        "SELECT last_generation, first_generation, bodies, checksum FROM events"
        " WHERE task_key = ? AND last_generation > ? ORDER BY last_generation",
        (row.key, after),
    )
    with closing(selected) as rows:
        for last, first, bodies, checksum in rows:
            verify("an event", row.id, checksum, bodies, row.key, last, first)
            yield first, _decode_bodies(bodies)


def _later_events(connection: sqlite3.Connection, row: TaskRow) -> list[bytes]:
    """The events after the snapshot. A snapshot covers whole commits, and no row holds events of two commits.

    Raises `DamagedRecordError` if some are missing.
    """
    if row.snapshot_generation == row.generation:
        return []
    events: list[bytes] = []
    with closing(_event_rows(connection, row, row.snapshot_generation)) as rows:
        for first, bodies in rows:
            if first != row.snapshot_generation + 1 + len(events):
                break
            events += bodies
    if row.snapshot_generation + len(events) != row.generation:
        raise DamagedRecordError("the log", row.id)
    return events


def list_tasks(connection: sqlite3.Connection, query: TaskQuery, bound: int) -> ReadPage:
    """One page, of tasks whose sequence number is below `bound`."""
    conditions, values = _conditions(query)
    with read_transaction(connection):
        total, min_sequence = _count_tasks(connection, query, conditions, values)
        selected = connection.execute(
            f"{_SELECT_TASKS_AND_SNAPSHOTS}"
            f" WHERE {conditions} AND sequence >= ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
            (*values, min_sequence, bound, query.page_size + 1),
        )
        with closing(selected) as rows:  # one row at a time: all bodies of a page may be very large
            listed = (_listed(connection, found, include_artifacts=query.include_artifacts) for found in rows)
            return read_page(listed, query.page_size, total)


def _listed(
    connection: sqlite3.Connection,
    found: Sequence[Any],  # Any: as above
    *,
    include_artifacts: bool,
) -> Listed:
    row = TaskRow(*found[:COLUMN_COUNT])

    def read() -> Task:
        row, snapshot = _verified(found)
        return decode_current_task(
            snapshot, _later_events(connection, row), row.id, include_artifacts=include_artifacts
        )

    state = STATES.get(row.state) if isinstance(row.id, str) and isinstance(row.context_id, str) else None
    return Listed(row.id, row.context_id, state, row.sequence, read)


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


def count_states(connection: sqlite3.Connection) -> dict[TaskState, int]:
    """How many tasks are in each state."""
    counts = dict(connection.execute("SELECT state, total(tasks) FROM task_counts GROUP BY state").fetchall())
    return {state: int(counts[number]) for state, number in STATE_NUMBERS.items() if number in counts}


def load_push_targets(connection: sqlite3.Connection, task_id: str) -> Sequence[PushTarget]:
    rows = connection.execute(
        "SELECT push_targets.checksum, body, key, push_targets.id FROM push_targets JOIN tasks ON key = task_key"
        " WHERE tasks.id = ? ORDER BY row",
        (task_id,),
    ).fetchall()
    for checksum, body, key, config_id in rows:
        verify("a push config", task_id, checksum, body, key, config_id)
    return [decode_push_target(body, task_id) for _, body, *_ in rows]


def list_owners(connection: sqlite3.Connection) -> tuple[set[str], set[str]]:
    """The daemons that have a row, and the owners of tasks that have not ended."""
    daemons = connection.execute("SELECT owner_id FROM daemons WHERE owner_id <> ''").fetchall()
    owners = connection.execute(
        "SELECT DISTINCT owner FROM tasks WHERE owner IS NOT NULL AND owner <> ? AND ended_ms IS NULL", (QUEUED,)
    ).fetchall()
    return {owner for (owner,) in daemons}, {owner for (owner,) in owners}


def list_owned_tasks(connection: sqlite3.Connection, owner_id: str) -> list[str]:
    """The ids of one owner's tasks that have not ended, least recently changed first."""
    rows = connection.execute(
        "SELECT id FROM tasks WHERE owner = ? AND ended_ms IS NULL ORDER BY sequence", (owner_id,)
    )
    return [task_id for (task_id,) in rows.fetchall()]


def count_writes_of_others(connection: sqlite3.Connection, owner_id: str) -> int:
    (writes,) = connection.execute("SELECT total(writes) FROM daemons WHERE owner_id <> ?", (owner_id,)).fetchone()
    return int(writes)


def has_owner_requests(connection: sqlite3.Connection, owner_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM owner_requests JOIN tasks ON key = task_key WHERE owner = ? LIMIT 1", (owner_id,)
    ).fetchone()
    return row is not None


def queued_rows(connection: sqlite3.Connection) -> Generator[TaskRow, None, None]:
    """Least recently changed first. Without damaged ones, which can't be claimed: a caller that reads such a task is told."""
    with closing(connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE {IS_QUEUED} ORDER BY sequence")) as rows:
        for values in rows:
            row = TaskRow(*values)
            if row.is_intact:
                yield row


def has_queued(connection: sqlite3.Connection) -> bool:
    with closing(queued_rows(connection)) as rows:
        return any(True for _ in rows)


def count_queued(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM tasks WHERE {IS_QUEUED}").fetchone()
    return int(count)


def last_end_ms(connection: sqlite3.Connection) -> int | None:
    """Find the time at which the last task ended; None where none has."""
    (last,) = connection.execute("SELECT max(ended_ms) FROM tasks WHERE typeof(ended_ms) = 'integer'").fetchone()
    return None if last is None else int(last)


def expired_tasks(
    connection: sqlite3.Connection, retained: RetainedTasks, *, ended_before_ms: float, max_tasks: int, limit: int
) -> list[tuple[int]]:
    """The keys of ended tasks that are too old (milliseconds since 1970) or too many, oldest first, at most `limit`.

    Without the `retained` ones.
    """
    (count,) = connection.execute(
        f"SELECT total(tasks) FROM task_counts WHERE state IN ({', '.join('?' * len(TERMINAL_NUMBERS))})",
        TERMINAL_NUMBERS,
    ).fetchone()
    rows = connection.execute(
        "SELECT key, id, ended_ms < ? FROM tasks WHERE ended_ms IS NOT NULL ORDER BY ended_ms, key LIMIT ?",
        (ended_before_ms, limit + len(retained)),
    ).fetchall()
    surplus = int(count) - max_tasks
    expired = [
        (key,)
        for position, (key, task_id, is_old) in enumerate(rows)
        if (position < surplus or is_old) and task_id not in retained
    ]
    return expired[:limit]
