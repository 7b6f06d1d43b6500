"""Writes everything. All queued writes of a daemon go into one transaction, with one notification of the others.

Runs in the writer's thread. A transaction that fails changes nothing and fails for all its writes. If the outcome of one is
unknown, it is looked up by the mark that it leaves before anything is written again. (The server's own numbers of transactions
do not tell: after a crash it gives a number again whose transaction left no trace.)
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from itertools import starmap
from typing import Any, Final, LiteralString, TypeAlias, final

import msgspec
import psycopg

from ....a2a.types import TaskEvent
from ..checks import COVERED_EVENTS_KEPT, EXPIRED_BATCH, MAX_READ_BYTES, RetainedTasks, Retention
from ..failures import DamagedRecordError
from ..interface import (
    QUEUED,
    ClaimedTask,
    CommitRefusal,
    LoggedEvent,
    OwnerRequest,
    StoredTask,
    StoreUnavailableError,
    TaskChange,
)
from ..serialization import EncodedChange, decode_push_target, decode_stored, encode
from ..server_store import ChangeFeed, ServerLink
from ..sql import IS_QUEUED, Batch, TaskRow, event_rows
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
from .reader import LATER, expired_tasks, parts
from .schema import ALL_SCOPES, COLUMNS, COUNT_SHARDS, OWNED, AnyConnection, from_text, to_text
from .session import RETRIED, OwnerNames, Session, ends_session, former_names_held, shares_sessions, take_name

Link: TypeAlias = ServerLink[Session]
Begin: TypeAlias = Callable[[StoredTask], TaskEvent | None]

MAX_TRIES: Final = 5
"""How often a transaction that met another daemon's is begun."""

CHANNEL: Final = "discreet"
"""The channel on which daemons tell each other of commits; see `Notice`."""

WRITER_SECONDS: Final = 7 * 24 * 3600.0
"""How long the mark of a daemon's last transaction is kept: a daemon asks for it after the outage in which it lost the answer."""


@final
class PostgresWriter:
    """The only writer of one daemon. `owner_id` is its present name, and `pid` the server's process of its session.

    `clock` is in seconds since 1970; None is that of the server, which is the same for all daemons.
    """

    def __init__(
        self, label: str, retention: Retention, retained: RetainedTasks, clock: Callable[[], float] | None
    ) -> None:
        self._label = label
        self._retention = retention
        self._retained = retained
        self._clock = clock
        self.names: Final = OwnerNames()
        self.owner_id = ""
        self._pid = 0
        self._transactions = 0
        self._in_doubt: int | None = None
        self._former_names: list[str] = []
        self._abandoned: set[str] = set()
        self._unseen_claims: set[str] = set()
        self._unseen_begun: dict[str, ClaimedTask] = {}
        self._given_again: list[ClaimedTask] = []
        self._deferred: set[str] = set()
        self._unseen_requests: list[tuple[int, list[OwnerRequest]]] = []

    @property
    def has_claims(self) -> bool:
        """Whether there are tasks that were claimed for a caller who did not get them. Any thread may ask."""
        return bool(self._given_again)

    def process(self, link: Link, jobs: WriteJobs) -> None:
        """Run the jobs in order, all in one transaction. Raises `StoreError` and `psycopg.Error`."""
        tries = 0
        while True:
            tries += 1
            try:
                return link.run(lambda session: session.run(lambda connection: self._attempt(connection, jobs)))
            except RETRIED:
                if tries == MAX_TRIES:
                    raise
            except StoreUnavailableError:
                self._abandon(jobs)
                raise

    def _abandon(self, jobs: WriteJobs) -> None:
        """Their callers are told that it failed. So the tasks of commits keep the name of a daemon that is dead, and somebody
        takes them over as they are in the store. What was claimed or taken, if it was, is given back."""
        in_doubt, self._in_doubt = self._in_doubt, None
        for job in jobs:
            match job.request:
                case CommitRequest(changes):
                    self._abandoned.update(change.task_id for change, _ in changes)
                case ClaimRequest(begin=None) if in_doubt is not None:
                    self._unseen_claims.update(job.result)
                case ClaimRequest() if in_doubt is not None:
                    self._unseen_begun.update((each.task_id, each) for each in job.result)
                case TakeRequest() if in_doubt is not None:
                    self._unseen_requests.append((in_doubt, job.result))
                case _:
                    pass

    def _attempt(self, connection: AnyConnection, jobs: WriteJobs) -> None:
        if self._in_doubt is not None and last_transaction(connection, self.names.base) == self._in_doubt:
            self._in_doubt = None
            return
        self._in_doubt = None
        try:
            self._write(connection, jobs)
        except BaseException as exc:
            with suppress(psycopg.Error):  # a lost one is rolled back by the server
                connection.rollback()
            if not (connection.closed or ends_session(exc)):
                self._in_doubt = None
            raise
        self._in_doubt = None

    def _write(self, connection: AnyConnection, jobs: WriteJobs) -> None:
        batch = _Batch(connection, self.names, self.owner_id, self._clock)
        commits = [job.request for job in jobs if isinstance(job.request, CommitRequest)]
        committed: psycopg.Cursor[Any] | None = None  # Any: it has no rows
        try:
            with connection.pipeline():
                connection.execute("BEGIN")
                pid = batch.begin([change for commit in commits for change, _ in commit.changes])
                if pid != self._pid:
                    raise shares_sessions(self._label)
                for job in jobs:
                    job.result = self._run(batch, job.request)
                if all(isinstance(job.request, ClaimRequest | TakeRequest) and not job.result for job in jobs):
                    connection.execute("COMMIT")  # which writes nothing, not even the mark
                    return
                batch.flush()
                self._transactions += 1
                batch.count_and_mark(self.names.base, self._transactions)
                self._in_doubt = self._transactions
                committed = connection.execute("COMMIT")
                self._deferred |= batch.deferred
                self._notify(connection, batch.notice)
            if any(isinstance(job.request, ClaimRequest) and job.request.begin is not None for job in jobs):
                self._given_again.clear()
        except psycopg.Error:
            if committed is None or committed.statusmessage != "COMMIT":
                raise
            connection.close()  # others miss its name, and look at every task

    def _run(self, batch: _Batch, request: WriteRequest | Callable[[_Batch], object]) -> object:
        if isinstance(request, CommitRequest):
            return [batch.apply(change, encoded) for change, encoded in request.changes]
        batch.flush()
        match request:
            case ClaimRequest(_, begin) if begin is not None and self._given_again:
                return [*self._given_again]
            case ClaimRequest(limit, begin):
                return batch.claim(limit, begin)
            case TakeRequest():
                return take_owner_requests(batch.connection, self.owner_id)
            case PutPushTarget(task_id, config_id, body):
                return batch.change_row_of(task_id, _PUT_PUSH_TARGET, (to_text(config_id), body, to_text(task_id)))
            case DeletePushTarget(task_id, config_id):
                return batch.change_row_of(task_id, _DELETE_PUSH_TARGET, (to_text(config_id), to_text(task_id)))
            case SendRequest(owner_request):
                return batch.send(owner_request)
            case Announce(names):
                batch.notice.task_ids.update(names)
                return None
            case DeleteExpired():
                return batch.delete_expired(self._retention, self._retained)
            case Probe():
                return None
            case write:
                return write(batch)

    def delete_expired(self, connection: AnyConnection) -> bool:
        """Do `DeleteExpired` in a transaction of its own, which may be repeated: it leaves no mark."""
        batch = _Batch(connection, self.names, self.owner_id, self._clock)
        with connection.transaction():
            batch.begin(())
            more = batch.delete_expired(self._retention, self._retained)
        self._notify(connection, batch.notice)
        return more

    def _notify(self, connection: AnyConnection, notice: Notice) -> None:
        """Tell the others what was committed. In the transaction, the server would have the commits of all daemons take turns,
        each with its write to the disk: it holds one lock from the notification to the end of the commit."""
        self._deferred -= notice.task_ids
        payload = notice.payload(self.names.base)
        if payload is not None:
            connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    def tell_deferred(self, connection: AnyConnection) -> None:
        """Tell the others what waited for a later commit. They seldom need it: a short task has ended by then."""
        if self._deferred:
            notice = Notice()
            notice.task_ids, self._deferred = self._deferred, set()
            self._notify(connection, notice)

    # -- a new session -----------------------------------------------------------------------------------------

    def take_first_name(self, connection: AnyConnection, pid: int) -> None:
        """Be alive. Raises `psycopg.Error`."""
        self.owner_id, self._pid = self.names.new(), pid
        take_name(connection, self.owner_id)

    def take_new_name(self, connection: AnyConnection, pid: int) -> None:
        """Give the tasks of this daemon that were not taken over a new owner, after a session was lost.

        Nothing is written before. Raises `psycopg.Error`.
        """
        if self.owner_id not in self._former_names:
            self._former_names.append(self.owner_id)
        name = self.names.new()
        take_name(connection, name)
        former = tuple(self._former_names)
        with former_names_held(connection, former):
            self._former_names.append(name)  # it may be in the store from here on
            self._give_back(connection, former, name)
        self._former_names.clear()
        self._abandoned.clear()
        self._unseen_claims.clear()
        self._unseen_begun.clear()
        self.owner_id, self._pid = name, pid

    def _give_back(self, connection: AnyConnection, former: Sequence[str], name: str) -> None:
        notice = Notice()
        with connection.transaction():
            last = last_transaction(connection, self.names.base)
            for number, requests in self._unseen_requests:
                if number == last:
                    give_back_requests(connection, requests)
            queued = give_back_claims(connection, former, self._unseen_claims)
            renamed = rename_owner(connection, former, name, self._abandoned)
            own = frozenset(map(from_text, renamed))
            self._given_again = [each for task_id, each in self._unseen_begun.items() if task_id in own]
            notice.task_ids.update(queued, renamed)
            notice.queued = bool(queued)
            notice.requests = bool(self._unseen_requests)
        self._notify(connection, notice)
        self._unseen_requests.clear()


# -- the changes of a transaction -----------------------------------------------------------------------------

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
    SELECT {COLUMNS} FROM discreet.tasks WHERE {IS_QUEUED} ORDER BY sequence LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""
# After they are locked: what a snapshot covers is as the row says then. Those behind so many bytes are left out.
_LOAD_CLAIMED: Final = f"""
    SELECT key, CASE WHEN sum(octet_length(snapshots.body)) OVER (ORDER BY sequence) <= %s THEN snapshots.body END,
        {LATER}, ARRAY(SELECT push_targets.body FROM discreet.push_targets WHERE task_key = key ORDER BY row),
        EXISTS (SELECT FROM discreet.owner_requests WHERE task_key = key), nextval('discreet.changes')
    FROM discreet.tasks LEFT JOIN discreet.snapshots ON task_key = key WHERE key = ANY(%s::bigint[])
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
_MARK: Final = """
    INSERT INTO discreet.writers (base, transaction, written_ms) VALUES (%s, %s, %s)
    ON CONFLICT (base) DO UPDATE SET transaction = excluded.transaction, written_ms = excluded.written_ms
"""
_PUT_PUSH_TARGET: Final = """
    INSERT INTO discreet.push_targets (task_key, id, body)
    SELECT key, %s, %b FROM discreet.tasks WHERE id = %s FOR KEY SHARE -- so that it is not deleted meanwhile
    ON CONFLICT (task_key, id) DO UPDATE SET body = excluded.body RETURNING true
"""
_DELETE_PUSH_TARGET: Final = """
    DELETE FROM discreet.push_targets
    WHERE id = %s AND task_key = (SELECT key FROM discreet.tasks WHERE id = %s) RETURNING true
"""
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


@final
class _Batch(Batch[TaskRow]):
    """`notice` is what to tell the others of the transaction. Statements are sent without waiting for their results, but for the
    first ones. `clock` is as that of the writer."""

    row_type = TaskRow

    def __init__(
        self, connection: AnyConnection, names: OwnerNames, owner_id: str, clock: Callable[[], float] | None
    ) -> None:
        super().__init__(owner_id)
        self.connection = connection
        self.notice = Notice()
        self.deferred: set[str] = set()
        self._names = names
        self._clock = clock
        self._sequences: list[int] = []
        self._covered: dict[int, int] = {}
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
            self.rows = {row.id: row for row in (TaskRow(*values) for values in locked.fetchall())}
        return int(pid)

    def next_sequence(self) -> int:
        return self._sequences.pop()

    def text(self, value: str) -> str:
        return to_text(value)

    def owner_of(self, change: TaskChange) -> str | None:
        """A task that was taken into memory under a former name of this daemon is its own as before."""
        return self.owner_id if self._names.is_own(change.owner) else change.owner

    def apply(self, change: TaskChange, encoded: EncodedChange) -> CommitRefusal | None:
        text = to_text(change.task_id)
        before = self.rows.get(text)
        state, snapshot_generation = (None, 0) if before is None else (before.state, before.snapshot_generation)
        refusal = super().apply(change, encoded)
        if refusal is not None:
            return refusal
        row = self.rows[text]
        if row.state != state:
            self._counts[row.scope, row.state] += 1
            if state is not None:
                self._counts[row.scope, state] -= 1
        if row.snapshot_generation != snapshot_generation:
            # Another daemon may be about to read what the new snapshot covers, and the last events before it.
            covered = min(snapshot_generation, row.snapshot_generation - COVERED_EVENTS_KEPT)
            if covered > 1:
                self._covered[row.key] = covered
        self.notice.task_ids.add(text)
        if row.owner is not None:
            self._tell_owner(row.owner, requests=bool(change.requests))
        return None

    def _tell_owner(self, owner: str, *, requests: bool) -> None:
        """Say whom the change of a task of this owner concerns. One that waits may have been skipped by who claims."""
        self.notice.queued = self.notice.queued or owner == QUEUED
        self.notice.requests = self.notice.requests or (requests and owner not in (QUEUED, self.owner_id))

    def write(self) -> None:
        """All but requests by one statement: no part of it touches the rows of another."""
        parts: list[tuple[LiteralString, Sequence[Any]]] = []  # Any: values
        if self.created:
            parts.append((_INSERT_TASKS, _columns([*self.created.values()])))
        if self.updated:
            keys, _, _, _, *changed = _columns([*self.updated.values()])
            parts.append((_UPDATE_TASKS, (keys, *changed)))
        if self.snapshots:
            parts.append((_PUT_SNAPSHOTS, ([*self.snapshots], [*self.snapshots.values()])))
        if self.events:
            parts.append((_INSERT_EVENTS, _columns(self.events)))
        if self._covered:
            parts.append((_DELETE_COVERED, ([*self._covered], [*self._covered.values()])))
        if self.released:
            parts.append((_DELETE_REQUESTS, ([*self.released],)))
        _run_together(self.connection, parts)
        if self.requests:  # also of a task whose former ones were deleted
            columns = [*map(list, zip(*starmap(_request_row, self.requests), strict=True))]
            self.connection.execute(_INSERT_REQUESTS, columns)
        self._covered.clear()

    def count_and_mark(self, base: str, number: int) -> None:
        """Add to the counts, and note that the daemon has made its transaction of this number. Last, as other daemons may wait
        for the rows of the counts."""
        counted = _counts_of(self.owner_id, self._counts)
        _run_together(self.connection, [*counted, (_MARK, (base, number, self.now_ms))])

    # What was changed before is written when these are called.

    def claim(self, limit: int, begin: Begin | None) -> list[str] | list[ClaimedTask]:
        """Become the owner of queued tasks, of which this returns the ids; with `begin`, what `ClaimRequest` says."""
        locked = [TaskRow(*values) for values in self.connection.execute(_CLAIM, (limit,)).fetchall()]
        found = [self.rows.setdefault(row.id, row) for row in locked]  # there may be a later change of this transaction
        for row in found:
            row.owner = self.owner_id
            self.updated[row.key] = row
        if begin is None or not found:
            return [from_text(row.id) for row in found]
        keys = [row.key for row in found]
        loaded = self.connection.execute(_LOAD_CLAIMED, (MAX_READ_BYTES, keys), binary=True).fetchall()
        by_key = {key: values for key, *values in loaded}
        return [self._begin(row, begin, *by_key[row.key]) for row in found]

    def _begin(
        self,
        row: TaskRow,
        begin: Begin,
        body: bytes | None,
        later: Sequence[bytes],
        targets: Sequence[bytes],
        asked: bool,
        sequence: int,
    ) -> ClaimedTask:
        """Append the event by which the execution of a claimed task begins. One that can't be read is claimed as it is."""
        task_id, generation = from_text(row.id), row.snapshot_generation
        try:
            snapshot, events = parts(task_id, body, later, row.generation - generation)
            stored = decode_stored(task_id, snapshot, generation, events, from_text(row.scope), row.owner)
            push_targets = [decode_push_target(target, task_id) for target in targets]
        except DamagedRecordError:
            return ClaimedTask(task_id)
        event = begin(stored)
        if event is None:
            return ClaimedTask(task_id, stored, push_targets, asked=asked)
        row.generation += 1
        row.sequence = sequence
        self.events += event_rows(row.key, row.generation, [encode(event)])
        later_events = (*stored.later_events, LoggedEvent(row.generation, event))
        stored = msgspec.structs.replace(stored, later_events=later_events)
        self.deferred.add(row.id)
        return ClaimedTask(task_id, stored, push_targets, row.generation, asked)

    def change_row_of(self, task_id: str, statement: LiteralString, values: tuple[Any, ...]) -> bool:
        """Run a statement that returns a row if it has changed one. Returns whether it did."""
        changed = self.connection.execute(statement, values).fetchone() is not None
        if changed:
            self.notice.task_ids.add(to_text(task_id))
        return changed

    def send(self, request: OwnerRequest) -> bool:
        owner = _insert_owner_request(self.connection, request)
        if owner is None:
            return False
        self._tell_owner(owner, requests=True)
        return True

    def delete_expired(self, retention: Retention, retained: RetainedTasks) -> bool:
        """Delete some of the tasks that ended long ago, but for `retained` ones. Returns whether there may be more to delete."""
        connection = self.connection
        now = self.now_ms / 1000
        connection.execute(_DELETE_WRITERS, (int((now - WRITER_SECONDS) * 1000),))
        keys = expired_tasks(
            connection,
            retained,
            ended_before_ms=int(max(retention.ended_before(now), 0.0) * 1000),
            max_tasks=retention.max_tasks,
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
            self.notice.task_ids.add(text)
            self.rows.pop(text, None)
        _run_together(connection, _counts_of(self.owner_id, counts))
        connection.execute(_DELETE_COUNTS, ([*{scope for scope, _ in counts}],))
        return len(keys) == EXPIRED_BATCH and bool(rows)


def _request_row(key: int, request: OwnerRequest) -> tuple[int, str, bytes, bytes]:
    """A row of `owner_requests`. An equal request has an equal digest."""
    return key, to_text(request.kind), blake2b(request.body, digest_size=32).digest(), request.body


def _columns(rows: Sequence[msgspec.Struct]) -> tuple[list[Any], ...]:  # Any: what the columns hold
    """One list for each column. There is at least one row."""
    return tuple([*column] for column in zip(*map(msgspec.structs.astuple, rows), strict=True))


def _run_together(
    connection: AnyConnection, parts: Sequence[tuple[LiteralString, Sequence[Any]]]
) -> None:  # Any: values
    """Run statements that change rows of their own as one, which takes the server and psycopg half as long."""
    *others, (last, _) = parts or [("", ())]
    named = [f"part{number} AS ({sql})" for number, (sql, _) in enumerate(others)]
    if parts:
        sql = f"WITH {', '.join(named)} {last}" if named else last
        connection.execute(sql.encode(), [value for _, values in parts for value in values])


def _counts_of(
    owner_id: str, counts: Counter[tuple[str, int]]
) -> list[tuple[LiteralString, Sequence[Any]]]:  # Any: values
    """The statement that adds to the numbers of tasks of each scope and state, and to those of all scopes; none where none
    has changed."""
    totals: Counter[tuple[str, int]] = Counter()
    for (_, state), count in counts.items():
        totals[ALL_SCOPES, state] += count
    changed = sorted((scope, state, count) for (scope, state), count in (*counts.items(), *totals.items()) if count)
    if not changed:
        return []
    shard = sum(owner_id.encode()) % COUNT_SHARDS
    return [(_ADD_COUNTS, (shard, *map(list, zip(*changed, strict=True))))]


# -- requests to owners ---------------------------------------------------------------------------------------


def _insert_owner_request(connection: AnyConnection, request: OwnerRequest) -> str | None:
    """The owner of the task."""
    found = connection.execute(
        "SELECT key, owner FROM discreet.tasks WHERE id = %s AND owner IS NOT NULL FOR SHARE",
        (to_text(request.task_id),),
    ).fetchone()
    if found is None:
        return None
    connection.execute(
        "INSERT INTO discreet.owner_requests (task_key, kind, digest, body) VALUES (%s, %s, %b, %b) ON CONFLICT DO NOTHING",
        _request_row(found[0], request),
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
    """Give back requests that were taken for a caller who did not get them."""
    for request in requests:
        _insert_owner_request(connection, request)


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


def last_transaction(connection: AnyConnection, base: str) -> int | None:
    """The last one that this daemon has made."""
    row = connection.execute("SELECT transaction FROM discreet.writers WHERE base = %s", (base,)).fetchone()
    return None if row is None else int(row[0])


# -- notifications: they name tasks by short hashes, as they hold few bytes. Two tasks with one hash count as changed ---

MAX_PAYLOAD: Final = 7999
"""Bytes of a notification that PostgreSQL takes."""

_HASH_BYTES: Final = 6
_HASH_LENGTH: Final = 8  # in base64
_SEPARATOR: Final = ":"
_EVERY_TASK: Final = "*"
_REQUESTS: Final = "r"
_QUEUED: Final = "q"


@lru_cache(maxsize=16_384)  # it is asked for each task that is followed here, with each notification
def name_of(task_id: str) -> str:
    """How a notification names a task."""
    return _hash_of(to_text(task_id))


def _hash_of(text: str) -> str:
    return b64encode(blake2b(text.encode(), digest_size=_HASH_BYTES).digest()).decode()


@final
class Notice:
    """The changes of one transaction. `task_ids` are texts as in the database."""

    def __init__(self) -> None:
        self.task_ids: set[str] = set()
        self.requests = False
        self.queued = False

    @property
    def is_empty(self) -> bool:
        return not (self.task_ids or self.requests or self.queued)

    def payload(self, base: str) -> str | None:
        """The notification of the daemon whose names begin with `base`; None where nothing has changed."""
        if self.is_empty:
            return None
        flags = _REQUESTS * self.requests + _QUEUED * self.queued
        room = MAX_PAYLOAD - len(base) - len(flags) - 2 * len(_SEPARATOR)
        fits = len(self.task_ids) * _HASH_LENGTH <= room
        return _SEPARATOR.join((base, flags, "".join(map(_hash_of, self.task_ids)) if fits else _EVERY_TASK))


def add_notice(inbox: ChangeFeed, payload: str, base: str) -> None:
    """Add what a notification said, unless the daemon whose names begin with `base` has sent it. One that no daemon of this
    version has sent may mean anything."""
    sender, _, rest = payload.partition(_SEPARATOR)
    if sender == base:
        return
    flags, separator, hashes = rest.partition(_SEPARATOR)
    is_whole = bool(separator) and hashes != _EVERY_TASK and not len(hashes) % _HASH_LENGTH
    inbox.add(
        (hashes[at : at + _HASH_LENGTH] for at in range(0, len(hashes), _HASH_LENGTH)) if is_whole else None,
        requests=not separator or _REQUESTS in flags,
        queued=not separator or _QUEUED in flags,
    )
