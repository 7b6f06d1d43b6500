"""Writes tasks and events to the store's file. All queued writes go into one transaction, and so to the disk at once.

Runs in the writer's thread. A transaction that fails changes nothing and fails for all its writes. It uses few statements,
each of which handles many rows: after every step of a statement this thread needs the interpreter lock again, which takes
milliseconds while the event loop is busy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Final, TypeAlias, final

import msgspec

from ....a2a.types import STATE_NUMBERS
from ..checks import find_conflict
from ..failures import DamagedRecordError
from ..interface import CommitRefusal, DamagedTask, OwnerRequest, TaskChange
from ..serialization import EncodedChange
from ..threaded_store import CommitRequest
from ..worker_thread import Job
from .busy import BusyWait
from .rows import COLUMN_COUNT, COLUMNS, TaskRow, row_checksum
from .schema import TERMINAL_NUMBERS
from .statements import INSERT_REQUESTS, delete_owner_requests, request_row

ROWS_PER_STATEMENT: Final = 64
"""64 rows of `tasks` are 768 values; every SQLite accepts 999."""

EVENTS_PER_ROW: Final = 64
"""Reading one event reads its whole row."""

BYTES_PER_ROW: Final = 1024 * 1024

_encode_bodies: Final = msgspec.msgpack.Encoder().encode


WriteRequest: TypeAlias = CommitRequest | Callable[[sqlite3.Connection], object]


@final
class SqliteWriter:
    """The only writer of one daemon. `clock` is in seconds since 1970."""

    def __init__(
        self, connection: sqlite3.Connection, owner_id: str, clock: Callable[[], float], busy: BusyWait
    ) -> None:
        self.connection = connection
        self._busy = busy
        self._owner_id = owner_id
        self._clock = clock
        self._last_sequence = 0

    def process(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        """Run the jobs in order, all in one transaction."""
        with self.transaction():
            batch = _Batch(self.connection, self._owner_id, int(self._clock() * 1000))
            for _, group in groupby(jobs, key=lambda job: isinstance(job.request, CommitRequest)):
                self._run(batch, [*group])
            self._last_sequence = max(self._last_sequence, batch.last_sequence)

    def _run(self, batch: _Batch, jobs: Sequence[Job[WriteRequest]]) -> None:
        """Jobs that are all commits, or none is. The tasks are loaded again where something else has written in between."""
        commits = [job.request for job in jobs if isinstance(job.request, CommitRequest)]
        batch.load([change.task_id for commit in commits for change, _ in commit.changes])
        for job in jobs:
            if isinstance(job.request, CommitRequest):
                job.result = [batch.apply(change, encoded) for change, encoded in job.request.changes]
            else:
                job.result = job.request(self.connection)
        batch.flush()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits what is written inside, and counts it in `daemons.writes`, by which other daemons notice it."""
        self._busy.run(lambda: self.connection.execute("BEGIN IMMEDIATE"))
        try:
            yield
            self.connection.execute(
                "INSERT INTO daemons VALUES (?, 1, ?)"  # the row is gone if someone removed this daemon's lock file
                " ON CONFLICT DO UPDATE SET writes = writes + 1, last_sequence = max(last_sequence, excluded.last_sequence)",
                (self._owner_id, self._last_sequence),
            )
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise


_decode_rows: Final = msgspec.json.Decoder(list[TaskRow]).decode
_SELECT_LAST_SEQUENCE: Final = "SELECT max(last_sequence) FROM daemons"
_SEARCH_LAST_SEQUENCE: Final = "SELECT coalesce(max(max(key), max(sequence)), 0) FROM tasks"
_SELECT_TASKS: Final = (
    f"SELECT json_group_array(json_array({COLUMNS})) FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
)
_SELECT_EACH_TASK: Final = f"SELECT {COLUMNS} FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
# Statements over many rows: their beginning, the values of one row, their end.
_UPSERT_TASKS: Final = (
    f"INSERT INTO tasks ({COLUMNS}) VALUES",
    f"({', '.join('?' * COLUMN_COUNT)})",
    """ON CONFLICT (key) DO UPDATE SET state = excluded.state, status_timestamp = excluded.status_timestamp,
    sequence = excluded.sequence, generation = excluded.generation, snapshot_generation = excluded.snapshot_generation,
    owner = excluded.owner, ended_ms = excluded.ended_ms, checksum = excluded.checksum""",
)
_UPSERT_SNAPSHOTS: Final = ("INSERT OR REPLACE INTO snapshots (task_key, body, checksum) VALUES", "(?, ?, ?)", "")
_INSERT_EVENTS: Final = (
    "INSERT INTO events (task_key, last_generation, first_generation, bodies, checksum) VALUES",
    "(?, ?, ?, ?, ?)",
    "",
)


@final
class _Batch:
    """The changes of one transaction: tasks are loaded at once, changed in memory, written at once.

    `last_sequence` is the largest sequence number given so far, by any daemon.
    """

    def __init__(self, connection: sqlite3.Connection, owner_id: str, now_ms: int) -> None:
        self._connection = connection
        self._owner_id = owner_id
        self._now_ms = now_ms
        self.last_sequence = 0
        self._rows: dict[str, TaskRow] = {}
        self._changed_rows: dict[int, TaskRow] = {}
        self._snapshots: dict[int, bytes] = {}
        self._events: list[tuple[int, int, int, bytes, int]] = []
        self._released: set[int] = set()
        self._requests: dict[tuple[int, OwnerRequest], None] = {}

    def load(self, task_ids: Sequence[str]) -> None:
        """Read the rows of these tasks."""
        if task_ids:
            wanted = (msgspec.json.encode(task_ids).decode(),)
            try:
                rows = _decode_rows(self._connection.execute(_SELECT_TASKS, wanted).fetchone()[0])
            except (sqlite3.OperationalError, msgspec.DecodeError):  # a row that was changed, and is no JSON
                rows = [TaskRow(*values) for values in self._connection.execute(_SELECT_EACH_TASK, wanted).fetchall()]
            (last_sequence,) = self._connection.execute(_SELECT_LAST_SEQUENCE).fetchone()
            if last_sequence is None:  # no daemon's row is left: a number that was given before would overwrite a task
                (last_sequence,) = self._connection.execute(_SEARCH_LAST_SEQUENCE).fetchone()
            self.last_sequence = max(self.last_sequence, last_sequence)
            self._rows = {row.id: row for row in rows}

    def apply(self, change: TaskChange, encoded: EncodedChange) -> CommitRefusal | None:
        """Make a change in memory, unless it conflicts."""
        row = self._rows.get(change.task_id)
        if row is not None and row.key not in self._changed_rows and not row.is_intact:
            return DamagedTask(str(DamagedRecordError("the row", row.id)))
        conflict = find_conflict(change, row, self._owner_id)
        if conflict is not None:
            return conflict
        if row is None:
            row = self._create(change, encoded)
        else:
            self._update(row, change, encoded)
        self._changed_rows[row.key] = row
        if encoded.snapshot is not None:
            self._snapshots[row.key] = encoded.snapshot
        self._append(row, encoded.events)
        self._requests |= dict.fromkeys((row.key, request) for request in change.requests)
        return None

    def _create(self, change: TaskChange, encoded: EncodedChange) -> TaskRow:
        self.last_sequence += 1
        state = STATE_NUMBERS[change.state]
        row = self._rows[change.task_id] = TaskRow(
            self.last_sequence,
            change.task_id,
            change.scope,
            change.context_id,
            state,
            change.status_timestamp,
            self.last_sequence,
            change.generation,
            1 if change.snapshot is None else change.generation,
            change.owner,
            self._now_ms if state in TERMINAL_NUMBERS else None,
        )
        return row

    def _update(self, row: TaskRow, change: TaskChange, encoded: EncodedChange) -> None:
        if row.owner is not None and change.owner is None:
            self._released.add(row.key)
            self._requests = {request: None for request in self._requests if request[0] != row.key}
        row.owner = change.owner
        row.generation = change.generation
        if encoded.snapshot is not None:
            row.snapshot_generation = change.generation
        if change.events:
            self.last_sequence += 1
            row.sequence = self.last_sequence
            row.state, row.status_timestamp = STATE_NUMBERS[change.state], change.status_timestamp
            row.ended_ms = self._now_ms if row.state in TERMINAL_NUMBERS else None

    def _append(self, row: TaskRow, events: Sequence[bytes]) -> None:
        first = row.generation - len(events) + 1
        for bodies in _split_into_rows(events):
            last, encoded = first + len(bodies) - 1, _encode_bodies(bodies)
            self._events.append((row.key, last, first, encoded, row_checksum(encoded, row.key, last, first)))
            first += len(bodies)

    def flush(self) -> None:
        """Write the changes made so far."""
        rows = self._changed_rows
        self._write(_UPSERT_TASKS, [row.values() for row in rows.values()])
        self._write(
            _UPSERT_SNAPSHOTS,
            [
                (key, body, row_checksum(body, key, rows[key].snapshot_generation))
                for key, body in self._snapshots.items()
            ],
        )
        self._write(_INSERT_EVENTS, self._events)
        if self._released:
            delete_owner_requests(self._connection, self._released)
        self._write(INSERT_REQUESTS, [request_row(*request) for request in self._requests])
        self._changed_rows, self._snapshots, self._events = {}, {}, []
        self._released, self._requests = set(), {}

    def _write(self, statement: tuple[str, str, str], rows: Sequence[tuple[object, ...]]) -> None:
        start, values_of_row, end = statement
        for position in range(0, len(rows), ROWS_PER_STATEMENT):
            chunk = rows[position : position + ROWS_PER_STATEMENT]
            values = [value for row in chunk for value in row]
            self._connection.execute(f"{start} {', '.join([values_of_row] * len(chunk))} {end}", values)


def _split_into_rows(events: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Events grouped as rows of `events` hold them."""
    group: list[bytes] = []
    size = 0
    for event in events:
        group.append(event)
        size += len(event)
        if len(group) == EVENTS_PER_ROW or size >= BYTES_PER_ROW:
            yield group
            group, size = [], 0
    if group:
        yield group
