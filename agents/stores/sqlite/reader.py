"""SQL that reads the store's file. Runs in the reader's thread. Writes nothing.

A function with several statements runs them in one transaction, and so sees the file at one moment.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, Final

from ....a2a.types import STATES, TaskQuery, TaskState
from ..checks import EXPIRED_BATCH, Listed, ReadPage, RetainedTasks, by_state, read_page
from ..failures import DamagedRecordError
from ..interface import QUEUED, LoggedEvent, LogTruncatedError, PushTarget, StoredTask
from ..serialization import decode_push_target, decode_stored
from ..sql import (
    IS_QUEUED,
    TERMINAL_NUMBERS,
    conditions_of,
    count_of,
    counts_rows,
    decode_bodies,
    log_after,
    select_expired,
)
from .schema import COLUMN_COUNT, COLUMNS, CheckedRow, transaction, verify


def load_task(connection: sqlite3.Connection, task_id: str) -> StoredTask | None:
    with transaction(connection, "DEFERRED"):
        found = connection.execute(f"{_SELECT_TASKS_AND_SNAPSHOTS} WHERE id = ?", (task_id,)).fetchone()
        if found is None:
            return None
        row = CheckedRow(*found[:COLUMN_COUNT])
        snapshot = _verified_snapshot(row, found)
        later_events = _later_events(connection, row)
    return decode_stored(task_id, snapshot, row.snapshot_generation, later_events, row.scope, row.owner)


_SELECT_TASKS_AND_SNAPSHOTS: Final = (
    f"SELECT {', '.join(f'tasks.{column}' for column in COLUMNS.split(', '))}, body, snapshots.checksum"
    " FROM tasks LEFT JOIN snapshots ON task_key = key"
)


def _verified_snapshot(row: CheckedRow, found: Sequence[Any]) -> bytes:  # Any: what SQLite returns
    """Return a task's snapshot. Raises `DamagedRecordError` if it or its row was changed, or the snapshot deleted."""
    row.verify()
    snapshot: bytes
    snapshot, checksum = found[COLUMN_COUNT:]
    verify("the snapshot", row.id, checksum, snapshot, row.key, row.snapshot_generation)
    return snapshot


def read_events(connection: sqlite3.Connection, task_id: str, after: int, limit: int) -> Sequence[LoggedEvent]:
    with transaction(connection, "DEFERRED"):
        selected = connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (task_id,)).fetchone()
        if selected is None:
            raise LogTruncatedError(task_id, 0)
        row = CheckedRow(*selected)
        row.verify()
        if after >= row.generation:
            return ()
        with closing(_event_rows(connection, row, after)) as rows:
            return log_after(rows, task_id, after=after, limit=limit, generation=row.generation)


_SELECT_EVENTS: Final = (
    "SELECT last_generation, first_generation, bodies, checksum FROM events"
    " WHERE task_key = ? AND last_generation > ? ORDER BY last_generation"
)


def _event_rows(
    connection: sqlite3.Connection, row: CheckedRow, after: int
) -> Generator[tuple[int, bytes], None, None]:
    """The rows that hold events after generation `after`: each with the number of its first event and its bodies."""
    with closing(connection.execute(_SELECT_EVENTS, (row.key, after))) as rows:
        for last, first, bodies, checksum in rows:
            verify("an event", row.id, checksum, bodies, row.key, last, first)
            yield first, bodies


def _later_events(connection: sqlite3.Connection, row: CheckedRow) -> list[bytes]:
    """The events after the snapshot. A snapshot covers whole commits, and no row holds events of two commits.

    Raises `DamagedRecordError` if some are missing.
    """
    if row.snapshot_generation == row.generation:
        return []
    events: list[bytes] = []
    rows = connection.execute(_SELECT_EVENTS, (row.key, row.snapshot_generation)).fetchall()  # all of them are kept
    for last, first, bodies, checksum in rows:
        verify("an event", row.id, checksum, bodies, row.key, last, first)
        if first != row.snapshot_generation + 1 + len(events):
            break
        events += decode_bodies(bodies, row.id)
    if row.snapshot_generation + len(events) != row.generation:
        raise DamagedRecordError("the log", row.id)
    return events


def list_tasks(connection: sqlite3.Connection, query: TaskQuery, bound: int) -> ReadPage:
    """One page, of tasks whose sequence number is below `bound`."""
    conditions, values = conditions_of(query)
    conditions = conditions.replace("%s", "?")
    with transaction(connection, "DEFERRED"):
        counted = count_of(query, bounded=bool(query.page_token))
        total, min_sequence = connection.execute(f"{counted} WHERE {conditions}", values).fetchone()
        most = query.page_size + 1
        if counts_rows(query) and not query.page_token:  # where all are found, no older task is looked at
            most = min(most, total)
        where = f"{conditions} AND sequence >= ? AND sequence < ? ORDER BY sequence DESC LIMIT ?"
        if (
            query.scope is None
        ):  # no index has the tasks of all callers in order: one that covers the condition is sorted
            where = f"key IN (SELECT key FROM tasks WHERE {where}) ORDER BY sequence DESC"
        selected = connection.execute(
            f"{_SELECT_TASKS_AND_SNAPSHOTS} WHERE {where}", (*values, min_sequence, bound, most)
        )
        with closing(selected) as rows:  # one row at a time: all bodies of a page may be very large
            return read_page((_listed(connection, found) for found in rows), query, total)


def _listed(connection: sqlite3.Connection, found: Sequence[Any]) -> Listed:  # Any: as above
    row = CheckedRow(*found[:COLUMN_COUNT])

    def read() -> tuple[bytes, list[bytes]]:
        return _verified_snapshot(row, found), _later_events(connection, row)

    state = STATES.get(row.state) if isinstance(row.id, str) and isinstance(row.context_id, str) else None
    return Listed(row.id, row.context_id, state, row.sequence, row.scope, row.owner, read)


def count_states(connection: sqlite3.Connection) -> dict[TaskState, int]:
    return by_state(dict(connection.execute("SELECT state, total(tasks) FROM task_counts GROUP BY state").fetchall()))


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


def announced_by_others(connection: sqlite3.Connection, owner_id: str, after: int) -> tuple[int, set[str] | None]:
    """The number of the last announcement, and the names that other daemons have announced after that number. None for the names
    where some of them were deleted."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'announcements'").fetchone() is None:
        return 0, set()
    rows = connection.execute(
        "SELECT number, owner_id, name FROM announcements WHERE number > ? ORDER BY number", (after,)
    ).fetchall()
    if not rows:
        return after, set()
    names = {name for _, owner, name in rows if owner != owner_id}
    return int(rows[-1][0]), names if rows[0][0] == after + 1 else None


def has_owner_requests(connection: sqlite3.Connection, owner_id: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM owner_requests JOIN tasks ON key = task_key WHERE owner = ? LIMIT 1", (owner_id,)
    ).fetchone()
    return row is not None


def queued_rows(connection: sqlite3.Connection) -> Generator[CheckedRow, None, None]:
    """Least recently changed first. Without damaged ones, which can't be claimed: a caller that reads such a task is told."""
    with closing(connection.execute(f"SELECT {COLUMNS} FROM tasks WHERE {IS_QUEUED} ORDER BY sequence")) as rows:
        for values in rows:
            row = CheckedRow(*values)
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
    connection: sqlite3.Connection, retained: RetainedTasks, *, ended_before_ms: float, max_tasks: int
) -> list[int]:
    """The keys of ended tasks that are too old (milliseconds since 1970) or too many, oldest first: one batch.

    Without the `retained` ones.
    """
    (count,) = connection.execute(
        f"SELECT total(tasks) FROM task_counts WHERE state IN ({', '.join('?' * len(TERMINAL_NUMBERS))})",
        TERMINAL_NUMBERS,
    ).fetchone()
    rows = connection.execute(
        "SELECT key, id, ended_ms < ? FROM tasks WHERE ended_ms IS NOT NULL ORDER BY ended_ms, key LIMIT ?",
        (ended_before_ms, EXPIRED_BATCH + len(retained)),
    ).fetchall()
    return select_expired(rows, int(count) - max_tasks, retained)
