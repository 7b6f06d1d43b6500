"""The changes of one transaction: their tasks are loaded and locked at once, changed in memory, and written at once.

Statements are sent without waiting for their results, but for the first ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, final

from ....a2a.types import STATE_NUMBERS
from ..checks import find_conflict
from ..interface import QUEUED, CommitRefusal, TaskChange
from ..serialization import EncodedChange
from .notices import Notice
from .rows import COLUMNS, EventRow, RequestRow, TaskRow, columns, event_rows, from_text, request_row, to_text
from .schema import ALL_SCOPES, COUNT_SHARDS, COVERED_EVENTS_KEPT, TERMINAL_NUMBERS, AnyConnection
from .session import OwnerNames

_BEGIN: Final = """
    SELECT pg_backend_pid(), ARRAY(SELECT nextval('discreet.changes') FROM generate_series(1, %s) ORDER BY 1),
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
_LOCK_TASKS: Final = f"SELECT {COLUMNS} FROM discreet.tasks WHERE id = ANY(%s::text[]) ORDER BY id FOR NO KEY UPDATE"
_INSERT_TASKS: Final = f"""
    INSERT INTO discreet.tasks ({COLUMNS}) SELECT * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[],
        %s::smallint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[])
"""
_UPDATE_TASKS: Final = """
    UPDATE discreet.tasks SET state = new.state, status_timestamp = new.status_timestamp, sequence = new.sequence,
        generation = new.generation, snapshot_generation = new.snapshot_generation, owner = new.owner,
        ended_ms = new.ended_ms
    FROM unnest(%s::bigint[], %s::smallint[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[])
        AS new (key, state, status_timestamp, sequence, generation, snapshot_generation, owner, ended_ms)
    WHERE tasks.key = new.key
"""
_PUT_SNAPSHOTS: Final = """
    INSERT INTO discreet.snapshots (task_key, body) SELECT * FROM unnest(%s::bigint[], %b::bytea[])
    ON CONFLICT (task_key) DO UPDATE SET body = excluded.body
"""
_INSERT_EVENTS: Final = """
    INSERT INTO discreet.events (task_key, last_generation, first_generation, bodies)
    SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %b::bytea[])
"""
_DELETE_COVERED: Final = """
    DELETE FROM discreet.events USING unnest(%s::bigint[], %s::bigint[]) AS covered (key, generation)
    WHERE task_key = covered.key AND last_generation <= covered.generation
"""
_CLAIM: Final = f"""
    WITH next AS MATERIALIZED (
        SELECT key FROM discreet.tasks WHERE owner = '{QUEUED}' ORDER BY sequence LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
    ) UPDATE discreet.tasks SET owner = %s FROM next WHERE tasks.key = next.key RETURNING sequence, id
"""
_INSERT_REQUESTS: Final = """
    INSERT INTO discreet.owner_requests (task_key, kind, digest, body)
    SELECT * FROM unnest(%s::bigint[], %s::text[], %b::bytea[], %b::bytea[]) ON CONFLICT DO NOTHING
"""
_DELETE_REQUESTS: Final = "DELETE FROM discreet.owner_requests WHERE task_key = ANY(%s::bigint[])"
_ADD_COUNTS: Final = """
    INSERT INTO discreet.task_counts (scope, state, shard, tasks)
    SELECT scope, state, %s, tasks FROM unnest(%s::text[], %s::smallint[], %s::bigint[]) AS new (scope, state, tasks)
    ORDER BY scope, state
    ON CONFLICT (scope, state, shard) DO UPDATE SET tasks = task_counts.tasks + excluded.tasks
"""


@final
class Batch:
    """One transaction of one daemon, whose present name is `owner_id`. `notice` is what to tell the others of it. `clock` is in
    seconds since 1970; None is that of the server, which is the same for all daemons."""

    def __init__(
        self, connection: AnyConnection, names: OwnerNames, owner_id: str, clock: Callable[[], float] | None
    ) -> None:
        self.connection = connection
        self.owner_id = owner_id
        self.notice = Notice()
        self._names = names
        self._clock = clock
        self.now_ms = 0
        self._sequences: list[int] = []
        self._rows: dict[str, TaskRow] = {}
        self._created: dict[int, TaskRow] = {}
        self._updated: dict[int, TaskRow] = {}
        self._snapshots: dict[int, bytes] = {}
        self._events: list[EventRow] = []
        self._covered: dict[int, int] = {}
        self._released: set[int] = set()
        self._requests: list[RequestRow] = []
        self._counts: Counter[tuple[str, int]] = Counter()

    def begin(self, changes: Sequence[TaskChange]) -> int:
        """Call it first in the transaction: load the tasks of the changes, and read the clock. Returns the server's process."""
        connection = self.connection
        begun = connection.execute(_BEGIN, (len(changes),))
        ids = [to_text(change.task_id) for change in changes]
        locked = connection.execute(_LOCK_TASKS, (ids,)) if ids else None
        row = begun.fetchone()
        assert row is not None, "a SELECT without FROM has a row"
        pid, self._sequences, server_ms = row
        self.now_ms = int(server_ms) if self._clock is None else int(self._clock() * 1000)
        self._sequences.reverse()
        if locked is not None:
            self._rows = {row.id: row for row in (TaskRow(*values) for values in locked.fetchall())}
        return int(pid)

    def apply(self, change: TaskChange, encoded: EncodedChange) -> CommitRefusal | None:
        """Make a change in memory, unless it conflicts."""
        row = self._rows.get(to_text(change.task_id))
        conflict = find_conflict(change, row, self.owner_id)
        if conflict is not None:
            return conflict
        if row is None:
            row = self._create(change)
        else:
            self._update(row, change, has_snapshot=encoded.snapshot is not None)
        if encoded.snapshot is not None:
            self._snapshots[row.key] = encoded.snapshot
        self._events += event_rows(row.key, row.generation - len(encoded.events) + 1, encoded.events)
        self.notice.task_ids.add(row.id)
        if row.owner is not None:
            self._requests += [request_row(row.key, request) for request in change.requests]
            self.tell_owner(row.owner, requests=bool(change.requests))
        return None

    def tell_owner(self, owner: str, *, requests: bool) -> None:
        """Say whom the change of a task of this owner concerns. One that waits may have been skipped by who claims."""
        self.notice.queued = self.notice.queued or owner == QUEUED
        self.notice.requests = self.notice.requests or (requests and owner not in (QUEUED, self.owner_id))

    def _create(self, change: TaskChange) -> TaskRow:
        key = self._sequences.pop()
        state = STATE_NUMBERS[change.state]
        row = TaskRow(
            key,
            to_text(change.task_id),
            to_text(change.scope),
            to_text(change.context_id),
            state,
            to_text(change.status_timestamp),
            key,
            change.generation,
            1 if change.snapshot is None else change.generation,
            self._owner_of(change),
            self.now_ms if state in TERMINAL_NUMBERS else None,
        )
        self._rows[row.id] = self._created[key] = row
        self._counts[row.scope, state] += 1
        return row

    def _update(self, row: TaskRow, change: TaskChange, *, has_snapshot: bool) -> None:
        owner = self._owner_of(change)
        if row.owner is not None and owner is None:
            self._released.add(row.key)
            self._requests = [request for request in self._requests if request.task_key != row.key]
        row.owner = owner
        row.generation = change.generation
        if has_snapshot and change.generation != row.snapshot_generation:
            # Another daemon may be about to read what the new snapshot covers, and the last events before it.
            covered = min(row.snapshot_generation, change.generation - COVERED_EVENTS_KEPT)
            if covered > 1:
                self._covered[row.key] = covered
            row.snapshot_generation = change.generation
        if change.events:
            row.sequence = self._sequences.pop()
            self._count(row, STATE_NUMBERS[change.state])
            row.status_timestamp = to_text(change.status_timestamp)
            row.ended_ms = self.now_ms if row.state in TERMINAL_NUMBERS else None
        if row.key not in self._created:
            self._updated[row.key] = row

    def _count(self, row: TaskRow, state: int) -> None:
        if state != row.state:
            self._counts[row.scope, row.state] -= 1
            self._counts[row.scope, state] += 1
            row.state = state

    def _owner_of(self, change: TaskChange) -> str | None:
        """A task that was taken into memory under a former name of this daemon is its own as before."""
        return self.owner_id if self._names.is_own(change.owner) else change.owner

    def flush(self) -> None:
        """Write the changes made so far."""
        run = self.connection.execute
        if self._created:
            run(_INSERT_TASKS, columns([*self._created.values()]))
        if self._updated:
            keys, _, _, _, *changed = columns([*self._updated.values()])
            run(_UPDATE_TASKS, (keys, *changed))
        if self._snapshots:
            run(_PUT_SNAPSHOTS, ([*self._snapshots], [*self._snapshots.values()]))
        if self._events:
            run(_INSERT_EVENTS, columns(self._events))
        if self._covered:
            run(_DELETE_COVERED, ([*self._covered], [*self._covered.values()]))
        if self._released:
            run(_DELETE_REQUESTS, ([*self._released],))
        if self._requests:
            run(_INSERT_REQUESTS, columns(self._requests))
        for changed_since in (self._created, self._updated, self._snapshots, self._covered):
            changed_since.clear()
        self._events.clear()
        self._released.clear()
        self._requests.clear()

    def claim(self, limit: int) -> list[str]:
        """Become the owner of queued tasks, of which this returns the ids. What was changed before is written."""
        found = sorted(self.connection.execute(_CLAIM, (limit, self.owner_id)).fetchall())
        for _, text in found:
            if text in self._rows:  # a later change of this transaction
                self._rows[text].owner = self.owner_id
        return [from_text(text) for _, text in found]

    def count(self) -> None:
        """Last, as other daemons may wait for these rows."""
        add_counts(self.connection, self.owner_id, self._counts)


def add_counts(connection: AnyConnection, owner_id: str, counts: Counter[tuple[str, int]]) -> None:
    """Add to the numbers of tasks of each scope and state, and to those of all scopes."""
    totals: Counter[tuple[str, int]] = Counter()
    for (_, state), count in counts.items():
        totals[ALL_SCOPES, state] += count
    changed = sorted((scope, state, count) for (scope, state), count in (*counts.items(), *totals.items()) if count)
    if changed:
        shard = sum(owner_id.encode()) % COUNT_SHARDS
        connection.execute(_ADD_COUNTS, (shard, *map(list, zip(*changed, strict=True))))
