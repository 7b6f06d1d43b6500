"""SQL that writes everything but tasks and events: push targets, owner requests, daemons.

Each function runs inside the writer's transaction unless it says otherwise.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..interface import OwnerRequest, PushTarget


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


def insert_owner_request(connection: sqlite3.Connection, task_id: str, kind: str) -> bool:
    row = connection.execute("SELECT key FROM tasks WHERE id = ? AND owner IS NOT NULL", (task_id,)).fetchone()
    if row is None:
        return False
    connection.execute("INSERT INTO owner_requests (task_key, kind) VALUES (?, ?) ON CONFLICT DO NOTHING", (*row, kind))
    return True


def take_owner_requests(connection: sqlite3.Connection, owner_id: str) -> list[OwnerRequest]:
    rows = connection.execute(
        "SELECT row, id, kind FROM owner_requests JOIN tasks ON key = task_key WHERE owner = ? ORDER BY row",
        (owner_id,),
    ).fetchall()
    connection.executemany("DELETE FROM owner_requests WHERE row = ?", [row[:1] for row in rows])
    return [OwnerRequest(task_id, kind) for _, task_id, kind in rows]


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
