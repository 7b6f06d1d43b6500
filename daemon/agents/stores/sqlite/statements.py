"""What else is written to the SQLite store's file: where news go, who is there, and what daemons ask of each other.

Each function runs inside the writer's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..interface import PushTarget


def put_target(connection: sqlite3.Connection, task_id: str, target: PushTarget, body: bytes) -> bool:
    return _changes_any(
        connection,
        "INSERT INTO targets (task, id, body) SELECT key, ?, ? FROM tasks WHERE id = ?"
        " ON CONFLICT (task, id) DO UPDATE SET body = excluded.body",
        (target.config.id or "", body, task_id),
    )


def drop_target(connection: sqlite3.Connection, task_id: str, config_id: str) -> bool:
    return _changes_any(
        connection,
        "DELETE FROM targets WHERE id = ? AND task = (SELECT key FROM tasks WHERE id = ?)",
        (config_id, task_id),
    )


def ask_owner(connection: sqlite3.Connection, task_id: str, what: str) -> bool:
    row = connection.execute("SELECT key FROM tasks WHERE id = ? AND owner IS NOT NULL", (task_id,)).fetchone()
    if row is None:
        return False
    connection.execute("INSERT INTO asked (task, what) VALUES (?, ?) ON CONFLICT DO NOTHING", (row[0], what))
    return True


def take_asked(connection: sqlite3.Connection, owner: str) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT row, id, what FROM asked JOIN tasks ON key = task WHERE owner = ? ORDER BY row", (owner,)
    ).fetchall()
    connection.executemany("DELETE FROM asked WHERE row = ?", [row[:1] for row in rows])
    return [(task_id, what) for _, task_id, what in rows]


def register_daemon(connection: sqlite3.Connection, owner: str) -> None:
    connection.execute("INSERT INTO daemons VALUES (?, 0, 0)", (owner,))


def leave(connection: sqlite3.Connection, owner: str) -> None:
    """By itself, not within a transaction."""
    connection.execute("BEGIN IMMEDIATE")
    forget_daemons(connection, [owner])
    connection.execute("COMMIT")


def forget_daemons(connection: sqlite3.Connection, owners: Iterable[str]) -> None:
    """They are not there any more; what they have written counts on, for those who watch the sum."""
    for owner in owners:
        row = connection.execute("SELECT writes, number FROM daemons WHERE owner = ?", (owner,)).fetchone()
        if row is not None:
            connection.execute("UPDATE daemons SET writes = writes + ?, number = max(number, ?) WHERE owner = ''", row)
            connection.execute("DELETE FROM daemons WHERE owner = ?", (owner,))


def _changes_any(connection: sqlite3.Connection, statement: str, values: tuple[str | bytes, ...]) -> bool:
    return connection.execute(statement, values).rowcount > 0
