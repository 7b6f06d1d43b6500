"""SQL that reads the store. Runs in the reader's thread. Writes nothing.

What belongs together is read by one statement, or in one transaction, and so as it is at one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import msgspec

from ....a2a.types import STATES, TaskQuery, TaskState
from ..checks import EXPIRED_BATCH, MAX_PAGE_BYTES, MAX_READ_BYTES, Listed, ReadPage, RetainedTasks, by_state, read_page
from ..failures import DamagedRecordError
from ..interface import LoggedEvent, LogTruncatedError, News, PushTarget, StoredTask
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
from .schema import ALL_SCOPES, OWNED, AnyConnection, from_text, to_text
from .session import end_silent_sessions, held_keys, lock_key

MAX_NEWS_ROWS: Final = 16
"""Rows of one task that are read with those of others: one for each commit."""

LATER: Final = """
    ARRAY(SELECT bodies FROM discreet.events WHERE task_key = key AND last_generation > snapshot_generation
        ORDER BY last_generation)
"""
_LOAD_TASK: Final = f"""
    SELECT body, snapshot_generation, generation, scope, owner, {LATER}
    FROM discreet.tasks LEFT JOIN discreet.snapshots ON task_key = key WHERE id = %s
"""
# The rows up to that with which the size is reached, and the task's generation with each; one row without events, if none.
_READ_EVENTS: Final = """
    SELECT generation, first_generation, bodies FROM discreet.tasks LEFT JOIN LATERAL (
        SELECT first_generation, last_generation, bodies,
            sum(octet_length(bodies)) OVER (ORDER BY last_generation) - octet_length(bodies) AS before
        FROM (SELECT * FROM discreet.events WHERE task_key = key AND last_generation > %(after)s
            ORDER BY last_generation LIMIT %(limit)s) AS next
    ) AS read ON before < %(size)s WHERE id = %(id)s ORDER BY last_generation
"""


def load_task(connection: AnyConnection, task_id: str) -> StoredTask | None:
    found = connection.execute(_LOAD_TASK, (to_text(task_id),), binary=True).fetchone()
    if found is None:
        return None
    body, snapshot_generation, generation, scope, owner, rows = found
    snapshot, events = parts(task_id, body, rows, generation - snapshot_generation)
    return decode_stored(task_id, snapshot, snapshot_generation, events, from_text(scope), owner)


def parts(task_id: str, snapshot: bytes | None, rows: Iterable[bytes], count: int) -> tuple[bytes, list[bytes]]:
    """The snapshot, and the events after it. It covers whole commits; no row holds events of two commits.

    Raises `DamagedRecordError` where something is missing.
    """
    if snapshot is None:
        raise DamagedRecordError("the snapshot", task_id)
    events = [event for row in rows for event in decode_bodies(row, task_id)]
    if len(events) != count:
        raise DamagedRecordError("the log", task_id)
    return snapshot, events


def read_events(connection: AnyConnection, task_id: str, after: int, limit: int) -> Sequence[LoggedEvent]:
    values = {"id": to_text(task_id), "after": after, "limit": limit, "size": MAX_READ_BYTES}
    rows = connection.execute(_READ_EVENTS, values, binary=True).fetchall()
    if not rows:
        raise LogTruncatedError(task_id, 0)
    generation = rows[0][0]
    if after >= generation:
        return ()
    found = ((first, encoded) for _, first, encoded in rows if first is not None)
    return log_after(found, task_id, after=after, limit=limit, generation=generation)


# Those behind so many bytes in all are left out.
_READ_NEWS: Final = """
    SELECT id, after, generation, owner, first_generation,
        CASE WHEN sum(octet_length(bodies)) OVER (ROWS UNBOUNDED PRECEDING) <= %s THEN bodies END
    FROM (
        SELECT id, after, generation, owner, first_generation, bodies
        FROM unnest(%s::text[], %s::bigint[]) AS wanted (id, after) JOIN discreet.tasks USING (id) LEFT JOIN LATERAL (
            SELECT * FROM discreet.events WHERE task_key = key AND last_generation > after ORDER BY last_generation LIMIT %s
        ) AS next ON true ORDER BY id, last_generation
    ) AS read
"""


def read_news(connection: AnyConnection, after: Mapping[str, int]) -> dict[str, News]:
    """What `TaskStore` says of it."""
    wanted = MAX_READ_BYTES, [to_text(task_id) for task_id in after], [*after.values()], MAX_NEWS_ROWS
    found: dict[str, News] = {}
    rows = connection.execute(_READ_NEWS, wanted, binary=True).fetchall()
    for text, grouped in groupby(rows, key=itemgetter(0)):
        task_id, ((_, before, generation, owner, *_), *_) = from_text(text), (events := [*grouped])
        bodies = [(first, body) for *_, first, body in events if body is not None]
        logged: Sequence[LoggedEvent] = ()
        with suppress(LogTruncatedError, DamagedRecordError):
            if generation > before:
                logged = log_after(bodies, task_id, after=before, limit=generation - before, generation=generation)
            if len(logged) == max(generation - before, 0):
                found[task_id] = News(logged, owner)
    return found


# The bodies of a page may be very large: they are read up to `MAX_PAGE_BYTES`.
_LIST_TASKS: Final = """
    SELECT before, id, context_id, state, sequence, scope, owner, CASE WHEN before <= {size} THEN body END,
        generation - snapshot_generation, CASE WHEN before <= {size} THEN {later} END
    FROM (
        SELECT tasks.*, body, (sum(octet_length(body)) OVER (ORDER BY sequence DESC) - octet_length(body))::bigint AS before
        FROM (
            SELECT * FROM discreet.tasks
            WHERE {conditions} AND sequence >= %s AND sequence < %s ORDER BY sequence DESC LIMIT %s
        ) AS tasks LEFT JOIN discreet.snapshots ON task_key = key
    ) AS page ORDER BY sequence DESC
"""


def list_tasks(connection: AnyConnection, query: TaskQuery, bound: int) -> ReadPage:
    """One page, of tasks whose sequence number is below `bound`."""
    conditions, values = conditions_of(query, to_text)
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        counting = (conditions, values)
        if query.scope is None and not counts_rows(query):
            counting = conditions_of(msgspec.structs.replace(query, scope=ALL_SCOPES), str)
        counted = connection.execute(count_of(query, "discreet.") + " WHERE " + counting[0], counting[1])
        ((total, min_sequence),) = counted.fetchall()
        rows = connection.execute(
            _LIST_TASKS.format(size=MAX_PAGE_BYTES, later=LATER, conditions=conditions).encode(),
            (*values, min_sequence, bound, query.page_size + 1),
            binary=True,
        ).fetchall()
    read = [row for before, *row in rows if before is None or before <= MAX_PAGE_BYTES]
    return read_page(map(_listed, read), query, int(total), is_cut=len(read) < len(rows))


def _listed(row: Sequence[Any]) -> Listed:  # Any: columns
    text, context_id, state, sequence, scope, owner, body, count, later = row
    task_id = from_text(text)
    return Listed(
        task_id,
        from_text(context_id),
        STATES.get(state),
        sequence,
        from_text(scope),
        owner,
        partial(parts, task_id, body, later, count),
    )


def count_states(connection: AnyConnection) -> dict[TaskState, int]:
    rows = connection.execute(
        "SELECT state, sum(tasks)::bigint FROM discreet.task_counts WHERE scope = %s GROUP BY state", (ALL_SCOPES,)
    ).fetchall()
    return by_state(dict(rows))


def load_push_targets(connection: AnyConnection, task_id: str) -> Sequence[PushTarget]:
    rows = connection.execute(
        "SELECT body FROM discreet.push_targets JOIN discreet.tasks ON key = task_key WHERE tasks.id = %s ORDER BY row",
        (to_text(task_id),),
        binary=True,
    ).fetchall()
    return [decode_push_target(body, task_id) for (body,) in rows]


# One look into the index by owner for each daemon: the tasks may be many.
_OWNERS: Final = f"""
    WITH RECURSIVE owners AS (
        (SELECT owner FROM discreet.tasks WHERE {OWNED} ORDER BY owner LIMIT 1) UNION ALL
        SELECT (SELECT owner FROM discreet.tasks WHERE {OWNED} AND owner > owners.owner ORDER BY owner LIMIT 1)
        FROM owners WHERE owner IS NOT NULL
    ) SELECT owner FROM owners WHERE owner IS NOT NULL
"""


def list_orphans(connection: AnyConnection, owner_id: str) -> Sequence[str]:
    """The ids of tasks that have not ended and whose owner is dead, least recently changed first. Queued ones wait for any
    daemon, and have no owner that could die.

    The owners are read before the locks: one that took its name in between has it locked. The sessions of daemons that were
    stopped are ended; their tasks are found the next time.
    """
    owners = [owner for (owner,) in connection.execute(_OWNERS).fetchall() if owner != owner_id]
    if not owners:
        return ()
    alive = held_keys(connection)
    end_silent_sessions(connection, [owner for owner in owners if lock_key(owner) in alive])
    dead = [owner for owner in owners if lock_key(owner) not in alive]
    rows = connection.execute(
        f"SELECT id FROM discreet.tasks WHERE {OWNED} AND owner = ANY(%s::text[]) AND ended_ms IS NULL ORDER BY sequence",
        (dead,),
    ).fetchall()
    return [from_text(task_id) for (task_id,) in rows]


def list_owned_tasks(connection: AnyConnection, owner_id: str) -> Sequence[str]:
    """The ids of tasks that have not ended and have this owner."""
    rows = connection.execute(
        f"SELECT id FROM discreet.tasks WHERE {OWNED} AND owner = %s AND ended_ms IS NULL ORDER BY sequence",
        (owner_id,),
    ).fetchall()
    return [from_text(task_id) for (task_id,) in rows]


# From the tasks to the requests: those of queued tasks may be many.
HAS_REQUESTS: Final = f"""
    WITH own AS MATERIALIZED (SELECT key FROM discreet.tasks WHERE {OWNED} AND owner = %s)
    SELECT 1 FROM own, LATERAL (SELECT FROM discreet.owner_requests WHERE task_key = own.key LIMIT 1) AS found LIMIT 1
"""


def has_owner_requests(connection: AnyConnection, owner_id: str) -> bool:
    return connection.execute(HAS_REQUESTS, (owner_id,)).fetchone() is not None


def has_queued(connection: AnyConnection) -> bool:
    return connection.execute(f"SELECT 1 FROM discreet.tasks WHERE {IS_QUEUED} LIMIT 1").fetchone() is not None


def count_queued(connection: AnyConnection) -> int:
    ((count,),) = connection.execute(f"SELECT count(*) FROM discreet.tasks WHERE {IS_QUEUED}").fetchall()
    return int(count)


def expired_tasks(
    connection: AnyConnection, retained: RetainedTasks, *, ended_before_ms: int, max_tasks: int
) -> list[int]:
    """The keys of ended tasks that are too old (milliseconds since 1970) or too many, oldest first: one batch.

    Without the `retained` ones.
    """
    ((ended,),) = connection.execute(
        "SELECT coalesce(sum(tasks), 0)::bigint FROM discreet.task_counts WHERE scope = %s AND state = ANY(%s::smallint[])",
        (ALL_SCOPES, TERMINAL_NUMBERS),
    ).fetchall()
    rows = connection.execute(
        "SELECT key, id, ended_ms < %s FROM discreet.tasks WHERE ended_ms IS NOT NULL ORDER BY ended_ms, key LIMIT %s",
        (ended_before_ms, EXPIRED_BATCH + len(retained)),
    ).fetchall()
    return select_expired(rows, int(ended) - max_tasks, retained, from_text)
