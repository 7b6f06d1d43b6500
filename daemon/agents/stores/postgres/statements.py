"""SQL that writes everything but tasks and events: push targets, owner requests, owners.

Each function runs inside the writer's transaction. What is returned is false where nothing has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, LiteralString

from ..interface import OwnerRequest, PushTarget
from .rows import from_text, to_text
from .schema import AnyConnection


def put_push_target(connection: AnyConnection, task_id: str, target: PushTarget, body: bytes) -> bool:
    return _changes_rows(
        connection,
        "INSERT INTO discreet.push_targets (task_key, id, body)"
        " SELECT key, %s, %b FROM discreet.tasks WHERE id = %s FOR KEY SHARE"  # so that it is not deleted meanwhile
        " ON CONFLICT (task_key, id) DO UPDATE SET body = excluded.body RETURNING true",
        (to_text(target.config.id or ""), body, to_text(task_id)),
    )


def delete_push_target(connection: AnyConnection, task_id: str, config_id: str) -> bool:
    return _changes_rows(
        connection,
        "DELETE FROM discreet.push_targets"
        " WHERE id = %s AND task_key = (SELECT key FROM discreet.tasks WHERE id = %s) RETURNING true",
        (to_text(config_id), to_text(task_id)),
    )


def insert_owner_request(connection: AnyConnection, task_id: str, kind: str) -> bool:
    row = connection.execute(
        "SELECT key FROM discreet.tasks WHERE id = %s AND owner IS NOT NULL FOR SHARE", (to_text(task_id),)
    ).fetchone()
    if row is None:
        return False
    connection.execute(
        "INSERT INTO discreet.owner_requests (task_key, kind) VALUES (%s, %s) ON CONFLICT DO NOTHING",
        (row[0], to_text(kind)),
    )
    return True


def take_owner_requests(connection: AnyConnection, owner_id: str) -> list[OwnerRequest]:
    rows = connection.execute(
        "DELETE FROM discreet.owner_requests USING discreet.tasks WHERE key = task_key AND owner = %s"
        " RETURNING row, id, kind",
        (owner_id,),
    ).fetchall()
    return [OwnerRequest(from_text(task_id), from_text(kind)) for _, task_id, kind in sorted(rows)]


def rename_owner(connection: AnyConnection, former: Sequence[str], name: str, without: Collection[str]) -> None:
    """Give the tasks of these owners to `name`, but for those with the ids `without`. In a transaction of its own."""
    connection.execute(
        "UPDATE discreet.tasks SET owner = %s WHERE owner = ANY(%s::text[]) AND id <> ALL(%s::text[])",
        (name, [*former], [to_text(task_id) for task_id in without]),
    )


def mark_transaction(connection: AnyConnection, base: str, number: int, now_ms: int) -> None:
    """Note that this daemon has made its transaction of this number."""
    connection.execute(
        "INSERT INTO discreet.writers (base, transaction, written_ms) VALUES (%s, %s, %s)"
        " ON CONFLICT (base) DO UPDATE SET transaction = excluded.transaction, written_ms = excluded.written_ms",
        (base, number, now_ms),
    )


def last_transaction(connection: AnyConnection, base: str) -> int | None:
    """The last one that this daemon has made."""
    row = connection.execute("SELECT transaction FROM discreet.writers WHERE base = %s", (base,)).fetchone()
    return None if row is None else int(row[0])


def _changes_rows(connection: AnyConnection, statement: LiteralString, values: tuple[Any, ...]) -> bool:
    return connection.execute(statement, values).fetchone() is not None
