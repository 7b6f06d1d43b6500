"""Shares code of the stores of SQLite and PostgreSQL: the rows of their tables, and the changes of one transaction. Runs no
SQL.

Statements are written with `%s` for a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Generic, LiteralString, TypeVar

import msgspec

from ...a2a.types import STATE_NUMBERS, TERMINAL, TaskQuery
from .checks import EXPIRED_BATCH, MAX_READ_BYTES, RetainedTasks
from .failures import DamagedRecordError
from .interface import QUEUED, CommitRefusal, LoggedEvent, LogTruncatedError, OwnerRequest, TaskChange
from .serialization import EncodedChange, decode_events, find_conflict

EVENTS_PER_ROW: Final = 64
"""Reading one event reads its whole row."""

BYTES_PER_ROW: Final = 1024 * 1024

TERMINAL_NUMBERS: Final = [number for state, number in STATE_NUMBERS.items() if state in TERMINAL]
"""The numbers in column `state` of tasks that have ended."""

IS_QUEUED: Final = f"owner = '{QUEUED}'"
"""A literal in SQL, as in the index of queued tasks, which is used for no other condition."""

_encode_bodies: Final = msgspec.msgpack.Encoder().encode
_decode_bodies: Final = msgspec.msgpack.Decoder(list[bytes]).decode


class TaskRow(msgspec.Struct):
    """A row of `tasks`, in the order of its columns. Its strings are as the database has them.

    `sequence` is the number of the task's last change among the changes of all tasks. `ended_ms` is when the task ended, in
    milliseconds since 1970.
    """

    key: int
    id: str
    scope: str
    context_id: str
    state: int
    status_timestamp: str
    sequence: int
    generation: int
    snapshot_generation: int
    owner: str | None
    ended_ms: int | None


class EventRow(msgspec.Struct):
    """A row of `events`: up to `EVENTS_PER_ROW` consecutive events of one commit."""

    task_key: int
    last_generation: int
    first_generation: int
    bodies: bytes


def event_rows(key: int, first: int, events: Sequence[bytes]) -> Iterator[EventRow]:
    """Consecutive events of a task, the first of which has the number `first`."""
    group: list[bytes] = []
    size = 0
    last = first + len(events) - 1
    for number, event in enumerate(events, first):
        group.append(event)
        size += len(event)
        if len(group) == EVENTS_PER_ROW or size >= BYTES_PER_ROW or number == last:
            yield EventRow(key, number, number - len(group) + 1, _encode_bodies(group))
            group, size = [], 0


def decode_bodies(encoded: bytes, task_id: str) -> list[bytes]:
    """The events of a row of this task. Raises `DamagedRecordError`."""
    try:
        return _decode_bodies(encoded)
    except msgspec.DecodeError:
        raise DamagedRecordError("an event", task_id) from None


def log_after(
    rows: Iterable[tuple[int, bytes]], task_id: str, *, after: int, limit: int, generation: int
) -> Sequence[LoggedEvent]:
    """Return and raise as `EventLog.read` does. `rows` have the events after `after`: their first event, and their bodies."""
    found: list[bytes] = []
    size = 0
    for first, encoded in rows:
        if not found and first > after + 1:
            break
        if first > after + 1 + len(found):
            raise DamagedRecordError("the log", task_id)
        bodies = decode_bodies(encoded, task_id)
        wanted = bodies if found else bodies[after + 1 - first :]
        found += wanted
        size += sum(map(len, wanted))
        if len(found) >= limit or size >= MAX_READ_BYTES:
            break
    if not found:
        raise LogTruncatedError(task_id, generation)
    return decode_events(found[:limit], task_id, first_generation=after + 1)


def conditions_of(query: TaskQuery, text: Callable[[str], str] = str) -> tuple[LiteralString, list[Any]]:  # Any: values
    """The condition that tells the tasks of a query, and its values. `text(string)` is a string as the database has it."""
    filters: list[tuple[LiteralString, str | int | None]] = [
        ("scope = %s", query.scope),
        ("context_id = %s", query.context_id),
        ("state = %s", None if query.state is None else STATE_NUMBERS[query.state]),
        ("status_timestamp >= %s", query.status_timestamp_after),
    ]
    given: list[tuple[LiteralString, str | int]] = [(sql, value) for sql, value in filters if value is not None]
    conditions: list[LiteralString] = [sql for sql, _ in given]
    return " AND ".join(conditions) or "TRUE", [text(value) if isinstance(value, str) else value for _, value in given]


def counts_rows(query: TaskQuery) -> bool:
    """Whether the tasks of a query are counted one by one. Those of a context, and those that changed lately, are few."""
    return query.status_timestamp_after is not None or query.context_id is not None


def count_of(query: TaskQuery, schema: LiteralString = "", *, bounded: bool = True) -> LiteralString:
    """What counts the tasks of a query, but for its condition; and, where `bounded`, a sequence number that none of them is
    below, else 0. To find it costs more than to count."""
    if not counts_rows(query):
        return f"SELECT coalesce(sum(tasks), 0), 0 FROM {schema}task_counts"
    least: LiteralString = "coalesce(min(sequence), 0)" if bounded else "0"
    return f"SELECT count(*), {least} FROM {schema}tasks"


def select_expired(
    rows: Iterable[tuple[int, str, bool]], surplus: int, retained: RetainedTasks, text: Callable[[str], str] = str
) -> list[int]:
    """The keys of tasks that are to be deleted, at most `EXPIRED_BATCH`. `rows` are the first that ended: key, id, too old.

    So many as `surplus` are too many.
    """
    expired = [
        key
        for position, (key, task_id, is_old) in enumerate(rows)
        if (position < surplus or is_old) and text(task_id) not in retained
    ]
    return expired[:EXPIRED_BATCH]


RowT = TypeVar("RowT", bound=TaskRow)


class Batch(ABC, Generic[RowT]):
    """The changes of one transaction of the daemon `owner_id`: tasks are loaded at once, changed in memory, written at once."""

    row_type: type[RowT]

    def __init__(self, owner_id: str) -> None:
        self.owner_id = owner_id
        self.now_ms = 0
        self.rows: dict[str, RowT] = {}
        self.created: dict[int, RowT] = {}
        self.updated: dict[int, RowT] = {}
        self.snapshots: dict[int, bytes] = {}
        self.events: list[EventRow] = []
        self.released: set[int] = set()
        self.requests: dict[tuple[int, OwnerRequest], None] = {}

    @abstractmethod
    def next_sequence(self) -> int:
        """A number for a change, larger than those given before."""

    def text(self, value: str) -> str:
        """A string as the database has it."""
        return value

    def owner_of(self, change: TaskChange) -> str | None:
        return change.owner

    def apply(self, change: TaskChange, encoded: EncodedChange) -> CommitRefusal | None:
        """Make a change in memory, unless it conflicts."""
        row = self.rows.get(self.text(change.task_id))
        generation, owner = (0, None) if row is None else (row.generation, row.owner)
        conflict = find_conflict(change, generation, owner, owner_id=self.owner_id)
        if conflict is not None:
            return conflict
        if row is None:
            row = self._create(change)
        else:
            self._update(row, change, has_snapshot=encoded.snapshot is not None)
        if encoded.snapshot is not None:
            self.snapshots[row.key] = encoded.snapshot
        self.events += event_rows(row.key, row.generation - len(encoded.events) + 1, encoded.events)
        self.requests |= dict.fromkeys((row.key, request) for request in change.requests)
        return None

    def _create(self, change: TaskChange) -> RowT:
        key, state = self.next_sequence(), STATE_NUMBERS[change.state]
        row = self.row_type(
            key,
            self.text(change.task_id),
            self.text(change.scope),
            self.text(change.context_id),
            state,
            self.text(change.status_timestamp),
            key,
            change.generation,
            1 if change.snapshot is None else change.generation,
            self.owner_of(change),
            self.now_ms if state in TERMINAL_NUMBERS else None,
        )
        self.rows[row.id] = self.created[key] = row
        return row

    def _update(self, row: RowT, change: TaskChange, *, has_snapshot: bool) -> None:
        owner = self.owner_of(change)
        if row.owner is not None and owner is None:
            self.released.add(row.key)
            self.requests = {request: None for request in self.requests if request[0] != row.key}
        row.owner = owner
        row.generation = change.generation
        if has_snapshot:
            row.snapshot_generation = change.generation
        if change.events:
            row.sequence = self.next_sequence()
            row.state, row.status_timestamp = STATE_NUMBERS[change.state], self.text(change.status_timestamp)
            row.ended_ms = self.now_ms if row.state in TERMINAL_NUMBERS else None
        if row.key not in self.created:
            self.updated[row.key] = row

    @abstractmethod
    def write(self) -> None:
        """Write the changes made so far."""

    def flush(self) -> None:
        """Write the changes made so far, and go on without them."""
        self.write()
        for written in (self.created, self.updated, self.snapshots, self.events, self.released, self.requests):
            written.clear()
