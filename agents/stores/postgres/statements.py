"""SQL that writes everything but tasks and events: push targets, owner requests, owners, and the end of expired tasks.

Each function runs inside the writer's transaction. What takes a batch notes in it what others are to be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, LiteralString

from ..checks import RetainedTasks, Retention
from ..interface import QUEUED, OwnerRequest, PushTarget
from .batch import Batch, add_counts
from .reader import expired_tasks
from .rows import from_text, request_row, to_text
from .schema import OWNED, AnyConnection

EXPIRED_BATCH: Final = 200
"""Tasks deleted in one transaction. Commits may run between two of them."""

WRITER_SECONDS: Final = 7 * 24 * 3600.0
"""How long the mark of a daemon's last transaction is kept: a daemon asks for it after the outage in which it lost the answer."""


def put_push_target(batch: Batch, task_id: str, target: PushTarget, body: bytes) -> bool:
    return _changes_row_of(
        batch,
        task_id,
        "INSERT INTO discreet.push_targets (task_key, id, body)"
        " SELECT key, %s, %b FROM discreet.tasks WHERE id = %s FOR KEY SHARE"  # so that it is not deleted meanwhile
        " ON CONFLICT (task_key, id) DO UPDATE SET body = excluded.body RETURNING true",
        (to_text(target.config.id or ""), body, to_text(task_id)),
    )


def delete_push_target(batch: Batch, task_id: str, config_id: str) -> bool:
    return _changes_row_of(
        batch,
        task_id,
        "DELETE FROM discreet.push_targets"
        " WHERE id = %s AND task_key = (SELECT key FROM discreet.tasks WHERE id = %s) RETURNING true",
        (to_text(config_id), to_text(task_id)),
    )


def _changes_row_of(batch: Batch, task_id: str, statement: LiteralString, values: tuple[Any, ...]) -> bool:
    changed = batch.connection.execute(statement, values).fetchone() is not None
    if changed:
        batch.notice.task_ids.add(to_text(task_id))
    return changed


# -- owner requests --------------------------------------------------------------------------------------------


def insert_owner_request(batch: Batch, request: OwnerRequest) -> bool:
    owner = _insert_owner_request(batch.connection, request)
    if owner is None:
        return False
    batch.tell_owner(owner, requests=True)
    return True


def _insert_owner_request(connection: AnyConnection, request: OwnerRequest) -> str | None:
    """The owner of the task."""
    found = connection.execute(
        "SELECT key, owner FROM discreet.tasks WHERE id = %s AND owner IS NOT NULL FOR SHARE",
        (to_text(request.task_id),),
    ).fetchone()
    if found is None:
        return None
    row = request_row(found[0], request)
    connection.execute(
        "INSERT INTO discreet.owner_requests (task_key, kind, digest, body) VALUES (%s, %s, %b, %b) ON CONFLICT DO NOTHING",
        (row.task_key, row.kind, row.digest, row.body),
    )
    return str(found[1])


# From the tasks to the requests, as in `reader.HAS_REQUESTS`.
TAKE_REQUESTS: Final = f"""
    WITH own AS MATERIALIZED (SELECT key, id FROM discreet.tasks WHERE {OWNED} AND owner = %s)
    DELETE FROM discreet.owner_requests USING own WHERE task_key = own.key RETURNING row, id, kind, body
"""


def take_owner_requests(connection: AnyConnection, owner_id: str) -> list[OwnerRequest]:
    rows = connection.execute(TAKE_REQUESTS, (owner_id,), binary=True).fetchall()
    return [OwnerRequest(from_text(task_id), from_text(kind), body) for _, task_id, kind, body in sorted(rows)]


def give_back_requests(connection: AnyConnection, requests: Iterable[OwnerRequest]) -> None:
    """Those that were taken for a caller who did not get them."""
    for request in requests:
        _insert_owner_request(connection, request)


# -- owners ----------------------------------------------------------------------------------------------------


def rename_owner(connection: AnyConnection, former: Sequence[str], name: str, without: Collection[str]) -> list[str]:
    """Give the tasks of these owners to `name`, but for those with the ids `without`. Returns the ids as in the database."""
    return _set_owner(connection, name, former, "id <> ALL(%s::text[])", without)


def give_back_claims(connection: AnyConnection, former: Sequence[str], task_ids: Collection[str]) -> list[str]:
    """Queue these tasks again, as far as they have one of these owners. Returns the ids as in the database."""
    return _set_owner(connection, QUEUED, former, "id = ANY(%s::text[])", task_ids)


def _set_owner(
    connection: AnyConnection, owner: str, former: Sequence[str], condition: LiteralString, task_ids: Collection[str]
) -> list[str]:
    rows = connection.execute(
        f"UPDATE discreet.tasks SET owner = %s WHERE {OWNED} AND owner = ANY(%s::text[]) AND {condition} RETURNING id",
        (owner, [*former], [to_text(task_id) for task_id in task_ids]),
    ).fetchall()
    return [text for (text,) in rows]


# -- marks of transactions -------------------------------------------------------------------------------------


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


# -- expired tasks ---------------------------------------------------------------------------------------------

_DELETE_WRITERS: Final = "DELETE FROM discreet.writers WHERE written_ms < %s"
_DELETE_TASKS: Final = """
    DELETE FROM discreet.tasks WHERE key IN (
        SELECT key FROM discreet.tasks WHERE key = ANY(%s::bigint[]) AND ended_ms IS NOT NULL FOR UPDATE SKIP LOCKED
    ) RETURNING key, id, scope, state
"""

# Every row of a count that is zero, unless a daemon changes one of them now: then it is left for the next time.
_DELETE_COUNTS: Final = """
    WITH locked AS MATERIALIZED (
        SELECT scope, state, tasks FROM discreet.task_counts WHERE scope = ANY(%s::text[])
        FOR NO KEY UPDATE SKIP LOCKED
    ), zero AS MATERIALIZED (
        SELECT scope, state FROM locked GROUP BY scope, state HAVING sum(tasks) = 0 AND count(*) = (
            SELECT count(*) FROM discreet.task_counts AS every WHERE every.scope = locked.scope AND every.state = locked.state
        )
    ) DELETE FROM discreet.task_counts USING zero WHERE task_counts.scope = zero.scope AND task_counts.state = zero.state
"""


def delete_expired(batch: Batch, retention: Retention, retained: RetainedTasks) -> bool:
    """Delete some of the tasks that ended long ago, but for `retained` ones. Returns whether there may be more to delete."""
    connection = batch.connection
    now = batch.now_ms / 1000
    connection.execute(_DELETE_WRITERS, (int((now - WRITER_SECONDS) * 1000),))
    keys = expired_tasks(
        connection,
        retained,
        ended_before_ms=int(max(retention.ended_before(now), 0.0) * 1000),
        max_tasks=retention.max_tasks,
        limit=EXPIRED_BATCH,
    )
    if not keys:
        return False
    rows = connection.execute(_DELETE_TASKS, (keys,)).fetchall()
    deleted = [key for key, _, _, _ in rows]
    for table in ("snapshots", "events", "push_targets", "owner_requests"):
        connection.execute(f"DELETE FROM discreet.{table} WHERE task_key = ANY(%s::bigint[])", (deleted,))
    counts: Counter[tuple[str, int]] = Counter()
    for _, text, scope, state in rows:
        counts[scope, state] -= 1
        batch.notice.task_ids.add(text)
    add_counts(connection, batch.owner_id, counts)
    connection.execute(_DELETE_COUNTS, ([*{scope for scope, _ in counts}],))
    return len(keys) == EXPIRED_BATCH and bool(rows)
