"""SQL that writes everything but what a commit does: push targets, owner requests, owners, daemons.

Each function runs inside the writer's transaction unless it says otherwise.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from typing import Final

import msgspec

from ..failures import DamagedRecordError
from ..interface import OwnerRequest, PushTarget
from .reader import queued_rows
from .rows import row_checksum, verify


def put_push_target(connection: sqlite3.Connection, task_id: str, target: PushTarget, body: bytes) -> bool:
    return _changes_rows(
        connection,
        "INSERT INTO push_targets (task_key, id, body, checksum)"
        " SELECT key, :id, :body, row_checksum(:body, key, :id) FROM tasks WHERE id = :task"
        " ON CONFLICT (task_key, id) DO UPDATE SET body = excluded.body, checksum = excluded.checksum",
        {"id": target.config.id or "", "body": body, "task": task_id},
    )


def delete_push_target(connection: sqlite3.Connection, task_id: str, config_id: str) -> bool:
    return _changes_rows(
        connection,
        "DELETE FROM push_targets WHERE id = ? AND task_key = (SELECT key FROM tasks WHERE id = ?)",
        (config_id, task_id),
    )


# A statement over many requests: its beginning, the values of one, its end. Those that are there already are not inserted
# again; nor may two of the rows be equal.
INSERT_REQUESTS: Final = (
    "INSERT INTO owner_requests (task_key, kind, body, checksum) SELECT * FROM (VALUES",
    "(?, ?, ?, ?)",
    ") WHERE NOT EXISTS (SELECT 1 FROM owner_requests WHERE task_key = column1 AND kind = column2 AND body = column3)",
)


def request_row(key: int, request: OwnerRequest) -> tuple[int, str, bytes, int]:
    """The values of `INSERT_REQUESTS` for a request to the owner of the task with this key."""
    return key, request.kind, request.body, row_checksum(request.body, key, request.kind)


def insert_owner_request(connection: sqlite3.Connection, request: OwnerRequest) -> bool:
    """False if nobody owns the task."""
    row = connection.execute("SELECT key FROM tasks WHERE id = ? AND owner IS NOT NULL", (request.task_id,)).fetchone()
    if row is not None:
        connection.execute(" ".join(INSERT_REQUESTS), request_row(row[0], request))
    return row is not None


def delete_owner_requests(connection: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Those to the owners of the tasks with these keys."""
    statement = "DELETE FROM owner_requests WHERE task_key IN (SELECT value FROM json_each(?))"
    connection.execute(statement, (msgspec.json.encode([*keys]).decode(),))


def take_owner_requests(
    connection: sqlite3.Connection, owner_id: str
) -> tuple[list[OwnerRequest], list[DamagedRecordError]]:
    """The requests, and what is wrong with those that were changed by something else. None of them stays."""
    rows = connection.execute(
        "SELECT row, key, id, kind, body, owner_requests.checksum FROM owner_requests JOIN tasks ON key = task_key"
        " WHERE owner = ? ORDER BY row",
        (owner_id,),
    ).fetchall()
    connection.executemany("DELETE FROM owner_requests WHERE row = ?", [row[:1] for row in rows])
    taken: list[OwnerRequest] = []
    damaged: list[DamagedRecordError] = []
    for _, key, task_id, kind, body, checksum in rows:
        try:
            verify("a request", task_id, checksum, body, key, kind)
            taken.append(OwnerRequest(task_id, kind, body))
        except DamagedRecordError as exc:  # it must not keep the others waiting
            damaged.append(exc)
    return taken, damaged


def claim(connection: sqlite3.Connection, owner_id: str, limit: int) -> list[str]:
    """Give so many queued tasks to this owner. Returns their ids."""
    with closing(queued_rows(connection)) as queued:
        rows = [*islice(queued, limit)]
    for row in rows:
        row.owner = owner_id
        connection.execute(
            "UPDATE tasks SET owner = ?, checksum = ? WHERE key = ?", (owner_id, row.values()[-1], row.key)
        )
    return [row.id for row in rows]


def insert_daemon(connection: sqlite3.Connection, owner_id: str) -> None:
    """Make a daemon known to the others. Runs outside of a transaction."""
    connection.execute("INSERT INTO daemons VALUES (?, 0, 0)", (owner_id,))


def delete_own_daemon(connection: sqlite3.Connection, owner_id: str) -> None:
    """The same as `delete_daemons`, in a transaction of its own."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        delete_daemons(connection, [owner_id])
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def delete_daemons(connection: sqlite3.Connection, owner_ids: Iterable[str]) -> None:
    """Add the counters of daemons that have ended to the row with the empty id, and delete their rows."""
    for owner_id in owner_ids:
        row = connection.execute("SELECT writes, last_sequence FROM daemons WHERE owner_id = ?", (owner_id,)).fetchone()
        if row is not None:
            connection.execute(
                "UPDATE daemons SET writes = writes + ?, last_sequence = max(last_sequence, ?) WHERE owner_id = ''", row
            )
            connection.execute("DELETE FROM daemons WHERE owner_id = ?", (owner_id,))


def _changes_rows(
    connection: sqlite3.Connection, statement: str, values: tuple[str, ...] | dict[str, str | bytes]
) -> bool:
    return connection.execute(statement, values).rowcount > 0
