"""Writes everything to the store's file. What is queued goes into one transaction, and so to the disk at once.

Runs in the writer's thread. A transaction that fails changes nothing and fails for all its writes. It uses few statements,
each of which handles many rows: after every step of a statement this thread needs the interpreter lock again, which takes
milliseconds while the event loop is busy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from typing import Final, final

import msgspec

from ..checks import EXPIRED_BATCH
from ..failures import DamagedRecordError, damaged_task_error, log_failure
from ..interface import CommitRefusal, DamagedTask, OwnerRequest, TaskChange
from ..serialization import EncodedChange
from ..sql import Batch, EventRow
from ..threaded_store import (
    Announce,
    ClaimRequest,
    CommitRequest,
    DeleteExpired,
    DeletePushTarget,
    Probe,
    PutPushTarget,
    SendRequest,
    TakeRequest,
    WriteJobs,
    WriteRequest,
)
from .reader import queued_rows
from .schema import COLUMN_COUNT, COLUMNS, BusyWait, CheckedRow, row_checksum, transaction, verify

ROWS_PER_STATEMENT: Final = 64
"""64 rows of `tasks` are 768 values; every SQLite accepts 999."""


MAX_ANNOUNCEMENTS: Final = 4096
"""Names that the store keeps for daemons that have not read them yet."""


@final
class SqliteWriter:
    """The only writer of one daemon. `clock` is in seconds since 1970. `find_expired()` gives the keys of tasks to delete, and
    `label` names the store."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        owner_id: str,
        clock: Callable[[], float],
        busy: BusyWait,
        find_expired: Callable[[], Sequence[int]],
        label: str,
    ) -> None:
        self.connection = connection
        self._busy = busy
        self._owner_id = owner_id
        self._clock = clock
        self._find_expired = find_expired
        self._label = label
        self._last_sequence = 0

    def process(self, jobs: WriteJobs) -> None:
        """Run the jobs in order, all in one transaction."""
        with self._transaction():
            batch = _Batch(self.connection, self._owner_id, int(self._clock() * 1000))
            commits = [job.request for job in jobs if isinstance(job.request, CommitRequest)]
            batch.load([change.task_id for commit in commits for change, _ in commit.changes])
            for job in jobs:
                job.result = self._run(batch, job.request)
            batch.flush()
            self._last_sequence = max(self._last_sequence, batch.last_sequence)

    def _run(self, batch: _Batch, request: WriteRequest | Callable[[sqlite3.Connection], object]) -> object:
        if isinstance(request, CommitRequest):
            return [batch.apply(change, encoded) for change, encoded in request.changes]
        batch.flush()
        connection = self.connection
        match request:
            case ClaimRequest(limit):
                return batch.claim(limit)
            case TakeRequest():
                return self._take_requests()
            case PutPushTarget(task_id, config_id, body):
                values = {"id": config_id, "body": body, "task": task_id}
                return connection.execute(_PUT_PUSH_TARGET, values).rowcount > 0
            case DeletePushTarget(task_id, config_id):
                return connection.execute(_DELETE_PUSH_TARGET, (config_id, task_id)).rowcount > 0
            case SendRequest(owner_request):
                return _insert_owner_request(connection, owner_request)
            case Announce(names):
                announce(connection, self._owner_id, names)
                return None
            case DeleteExpired():
                return batch.delete(self._find_expired())
            case Probe():
                return None
            case write:
                return write(connection)

    def delete_expired(self) -> bool:
        """Do `DeleteExpired` in a transaction of its own if there are tasks to delete."""
        if not self._find_expired():
            return False
        with self._transaction():
            return _Batch(self.connection, self._owner_id, 0).delete(self._find_expired())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commits what is written inside, and counts it in `daemons.writes`, by which other daemons notice it."""
        with ExitStack() as stack:
            self._busy.run(lambda: stack.enter_context(transaction(self.connection)))
            yield
            self.connection.execute(
                "INSERT INTO daemons VALUES (?, 1, ?)"  # the row is gone if someone removed this daemon's lock file
                " ON CONFLICT DO UPDATE SET writes = writes + 1, last_sequence = max(last_sequence, excluded.last_sequence)",
                (self._owner_id, self._last_sequence),
            )

    def _take_requests(self) -> list[OwnerRequest]:
        """Those that were changed by something else are told in the log. None of them stays."""
        rows = self.connection.execute(
            "SELECT row, key, id, kind, body, owner_requests.checksum FROM owner_requests JOIN tasks ON key = task_key"
            " WHERE owner = ? ORDER BY row",
            (self._owner_id,),
        ).fetchall()
        self.connection.executemany("DELETE FROM owner_requests WHERE row = ?", [row[:1] for row in rows])
        taken: list[OwnerRequest] = []
        for _, key, task_id, kind, body, checksum in rows:
            try:
                verify("a request", task_id, checksum, body, key, kind)
                taken.append(OwnerRequest(task_id, kind, body))
            except DamagedRecordError as exc:  # it must not keep the others waiting
                log_failure(damaged_task_error(self._label, exc))
        return taken


# -- statements ------------------------------------------------------------------------------------------------

_SELECT_LAST_SEQUENCE: Final = "SELECT max(last_sequence) FROM daemons"
_SEARCH_LAST_SEQUENCE: Final = "SELECT coalesce(max(max(key), max(sequence)), 0) FROM tasks"
_SELECT_TASKS: Final = (
    f"SELECT json_group_array(json_array({COLUMNS})) FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
)
_SELECT_EACH_TASK: Final = f"SELECT {COLUMNS} FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
_DELETE_TASK: Final = "DELETE FROM tasks WHERE key = ?"
_DELETE_REQUESTS: Final = "DELETE FROM owner_requests WHERE task_key IN (SELECT value FROM json_each(?))"
_PUT_PUSH_TARGET: Final = """
    INSERT INTO push_targets (task_key, id, body, checksum)
    SELECT key, :id, :body, row_checksum(:body, key, :id) FROM tasks WHERE id = :task
    ON CONFLICT (task_key, id) DO UPDATE SET body = excluded.body, checksum = excluded.checksum
"""
_DELETE_PUSH_TARGET: Final = "DELETE FROM push_targets WHERE id = ? AND task_key = (SELECT key FROM tasks WHERE id = ?)"
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
# Those that are there already are not inserted again; nor may two of the rows be equal.
_INSERT_REQUESTS: Final = (
    "INSERT INTO owner_requests (task_key, kind, body, checksum) SELECT * FROM (VALUES",
    "(?, ?, ?, ?)",
    ") WHERE NOT EXISTS (SELECT 1 FROM owner_requests WHERE task_key = column1 AND kind = column2 AND body = column3)",
)


def _event_values(row: EventRow) -> tuple[object, ...]:
    *columns, bodies = msgspec.structs.astuple(row)
    return (*columns, bodies, row_checksum(bodies, *columns))


def _request_row(key: int, request: OwnerRequest) -> tuple[int, str, bytes, int]:
    return key, request.kind, request.body, row_checksum(request.body, key, request.kind)


def _insert_owner_request(connection: sqlite3.Connection, request: OwnerRequest) -> bool:
    """Leave a request for the owner of a task. Returns False if the task has none."""
    row = connection.execute("SELECT key FROM tasks WHERE id = ? AND owner IS NOT NULL", (request.task_id,)).fetchone()
    if row is not None:
        connection.execute(" ".join(_INSERT_REQUESTS), _request_row(row[0], request))
    return row is not None


def announce(connection: sqlite3.Connection, owner_id: str, names: Iterable[str]) -> None:
    """Add names for other daemons, and delete the oldest. The table is no part of a store that nothing was announced in."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS announcements (number INTEGER PRIMARY KEY AUTOINCREMENT, owner_id TEXT, name TEXT)"
    )
    connection.executemany(
        "INSERT INTO announcements (owner_id, name) VALUES (?, ?)", [(owner_id, each) for each in names]
    )
    connection.execute(
        "DELETE FROM announcements WHERE number <= (SELECT max(number) FROM announcements) - ?", (MAX_ANNOUNCEMENTS,)
    )


def insert_daemon(connection: sqlite3.Connection, owner_id: str) -> None:
    """Make a daemon known to the others. Runs outside of a transaction."""
    connection.execute("INSERT INTO daemons VALUES (?, 0, 0)", (owner_id,))


def delete_daemons(connection: sqlite3.Connection, owner_ids: Iterable[str]) -> None:
    """Add the counters of daemons that have ended to the row with the empty id, and delete their rows."""
    for owner_id in owner_ids:
        row = connection.execute("SELECT writes, last_sequence FROM daemons WHERE owner_id = ?", (owner_id,)).fetchone()
        if row is not None:
            connection.execute(
                "UPDATE daemons SET writes = writes + ?, last_sequence = max(last_sequence, ?) WHERE owner_id = ''", row
            )
            connection.execute("DELETE FROM daemons WHERE owner_id = ?", (owner_id,))


_decode_rows: Final = msgspec.json.Decoder(list[CheckedRow]).decode


@final
class _Batch(Batch[CheckedRow]):
    """`last_sequence` is the largest sequence number given so far, by any daemon."""

    row_type = CheckedRow

    def __init__(self, connection: sqlite3.Connection, owner_id: str, now_ms: int) -> None:
        super().__init__(owner_id)
        self._connection = connection
        self.now_ms = now_ms
        self.last_sequence = 0

    def load(self, task_ids: Sequence[str]) -> None:
        """Read the rows of these tasks."""
        if task_ids:
            wanted = (_json(task_ids),)
            try:
                rows = _decode_rows(self._connection.execute(_SELECT_TASKS, wanted).fetchone()[0])
            except (sqlite3.OperationalError, msgspec.DecodeError):  # a row that was changed, and is no JSON
                rows = [
                    CheckedRow(*values) for values in self._connection.execute(_SELECT_EACH_TASK, wanted).fetchall()
                ]
            (last_sequence,) = self._connection.execute(_SELECT_LAST_SEQUENCE).fetchone()
            if last_sequence is None:  # no daemon's row is left: a number that was given before would overwrite a task
                (last_sequence,) = self._connection.execute(_SEARCH_LAST_SEQUENCE).fetchone()
            self.last_sequence = max(self.last_sequence, last_sequence)
            self.rows = {row.id: row for row in rows}

    def next_sequence(self) -> int:
        self.last_sequence += 1
        return self.last_sequence

    def apply(self, change: TaskChange, encoded: EncodedChange) -> CommitRefusal | None:
        row = self.rows.get(change.task_id)
        if row is not None and row.key not in self.created and row.key not in self.updated and not row.is_intact:
            return DamagedTask(str(DamagedRecordError("the row", row.id)))
        return super().apply(change, encoded)

    def write(self) -> None:
        rows = self.created | self.updated
        self._write(_UPSERT_TASKS, [row.values() for row in rows.values()])
        self._write(
            _UPSERT_SNAPSHOTS,
            [
                (key, body, row_checksum(body, key, rows[key].snapshot_generation))
                for key, body in self.snapshots.items()
            ],
        )
        self._write(_INSERT_EVENTS, [_event_values(row) for row in self.events])
        if self.released:
            self._connection.execute(_DELETE_REQUESTS, (_json([*self.released]),))
        self._write(_INSERT_REQUESTS, [_request_row(*request) for request in self.requests])

    def _write(self, statement: tuple[str, str, str], rows: Sequence[tuple[object, ...]]) -> None:
        start, values_of_row, end = statement
        for position in range(0, len(rows), ROWS_PER_STATEMENT):
            chunk = rows[position : position + ROWS_PER_STATEMENT]
            values = [value for row in chunk for value in row]
            self._connection.execute(f"{start} {', '.join([values_of_row] * len(chunk))} {end}", values)

    # What was changed before is written when these are called.

    def claim(self, limit: int) -> list[str]:
        """Become the owner of so many queued tasks. Returns their ids."""
        with closing(queued_rows(self._connection)) as queued:
            rows = [*islice(queued, limit)]
        for row in rows:
            row.owner = self.owner_id
            values = (self.owner_id, row.values()[-1], row.key)
            self._connection.execute("UPDATE tasks SET owner = ?, checksum = ? WHERE key = ?", values)
            if row.id in self.rows:
                self.rows[row.id] = row  # a later change of this transaction
        return [row.id for row in rows]

    def delete(self, keys: Sequence[int]) -> bool:
        """Delete these tasks. Returns whether there may be more."""
        self._connection.executemany(_DELETE_TASK, [(key,) for key in keys])
        self.rows = {task_id: row for task_id, row in self.rows.items() if row.key not in keys}
        return len(keys) == EXPIRED_BATCH


def _json(values: Sequence[object]) -> str:
    return msgspec.json.encode(values).decode()
