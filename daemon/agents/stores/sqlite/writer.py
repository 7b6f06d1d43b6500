"""Writes to the SQLite store's file. All that waits goes into one transaction, and so onto the disk at once.

Runs in the writer's thread. A transaction that fails leaves nothing behind, and fails for all who were in it. It is made of
few statements that handle many rows each: behind every step of a statement this thread has to get the interpreter back,
which takes milliseconds while the loop is busy.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, final

import msgspec

from ...model.types import STATE_NUMBERS
from ..checks import conflict
from ..interface import Change, Refusal
from ..serialization import Packed
from ..worker_thread import Job
from .schema import TERMINAL_NUMBERS

ROWS_AT_ONCE: Final = 64
"""What one statement writes: 704 values, and every SQLite takes 999."""

EVENTS_PER_ROW: Final = 64
"""Reading one event reads its row."""

BYTES_PER_ROW: Final = 1024 * 1024

_pack_bodies: Final = msgspec.msgpack.Encoder().encode


class Commit(msgspec.Struct, frozen=True):
    """Changes with what of them is stored."""

    changes: Sequence[tuple[Change, Packed]]


Write: TypeAlias = Commit | Callable[[sqlite3.Connection], object]


@final
class SqliteWriter:
    """`clock` is in seconds since 1970."""

    def __init__(self, connection: sqlite3.Connection, owner: str, clock: Callable[[], float]) -> None:
        self.connection = connection
        self._owner = owner
        self._clock = clock
        self._number = 0

    def work(self, jobs: Sequence[Job[Write]]) -> None:
        """Do them in order, all or none."""
        with self.transaction():
            batch = _Batch(self.connection, self._owner, int(self._clock() * 1000))
            commits = [job.request for job in jobs if isinstance(job.request, Commit)]
            batch.look_up([change.task_id for commit in commits for change, _ in commit.changes])
            for job in jobs:
                if isinstance(job.request, Commit):
                    job.result = [batch.take(change, packed) for change, packed in job.request.changes]
                else:
                    batch.flush()
                    job.result = job.request(self.connection)
            batch.flush()
            self._number = max(self._number, batch.number)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is written in it is there for all others at once, and they are told by `writes`."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute(
                "INSERT INTO daemons VALUES (?, 1, ?)"  # it may be gone, where somebody has removed this daemon's lock file
                " ON CONFLICT DO UPDATE SET writes = writes + 1, number = max(number, excluded.number)",
                (self._owner, self._number),
            )
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise


class _Head(msgspec.Struct, array_like=True):
    """A row of `tasks`, in the order of its columns."""

    key: int
    id: str
    scope: str
    context_id: str
    state: int
    updated: str
    number: int
    generation: int
    reflects: int
    owner: str | None
    ended: int | None


_COLUMNS: Final = ", ".join(_Head.__struct_fields__)
_heads_from: Final = msgspec.json.Decoder(list[_Head]).decode
_LOOK_UP: Final = f"""
    SELECT (SELECT max(number) FROM daemons),
        (SELECT json_group_array(json_array({_COLUMNS})) FROM tasks WHERE id IN (SELECT value FROM json_each(?)))
"""
_SAVE: Final = (
    f"INSERT INTO tasks ({_COLUMNS}) VALUES",
    f"({', '.join('?' * len(_Head.__struct_fields__))})",
    """ON CONFLICT (key) DO UPDATE SET state = excluded.state, updated = excluded.updated, number = excluded.number,
    generation = excluded.generation, reflects = excluded.reflects, owner = excluded.owner, ended = excluded.ended""",
)
_SAVE_SNAPSHOTS: Final = ("INSERT OR REPLACE INTO snapshots (task, body) VALUES", "(?, ?)", "")
_LOG: Final = ("INSERT INTO events (task, last, first, bodies) VALUES", "(?, ?, ?, ?)", "")


@final
class _Batch:
    """Changes that are made together: looked up at once, decided upon here, written at once.

    `number` is that of the last change of all.
    """

    def __init__(self, connection: sqlite3.Connection, owner: str, now: int) -> None:
        self._connection = connection
        self._owner = owner
        self._now = now
        self.number = 0
        self._heads: dict[str, _Head] = {}
        self._changed: dict[int, _Head] = {}
        self._snapshots: dict[int, bytes] = {}
        self._events: list[tuple[int, int, int, bytes]] = []

    def look_up(self, ids: Sequence[str]) -> None:
        """Find out where these tasks stand."""
        if ids:
            wanted = msgspec.json.encode(ids).decode()
            self.number, heads = self._connection.execute(_LOOK_UP, (wanted,)).fetchone()
            self._heads = {head.id: head for head in _heads_from(heads)}

    def take(self, change: Change, packed: Packed) -> Refusal | None:
        """Make a change, if it may be made."""
        head = self._heads.get(change.task_id)
        refusal = conflict(change, head, self._owner)
        if refusal is not None:
            return refusal
        if head is None:
            head = self._create(change, packed)
        else:
            self._change(head, change, packed)
        self._changed[head.key] = head
        if packed.snapshot is not None:
            self._snapshots[head.key] = packed.snapshot
        self._log(head, packed.events)
        return None

    def _create(self, change: Change, packed: Packed) -> _Head:
        self.number += 1
        state = STATE_NUMBERS[change.state]
        head = self._heads[change.task_id] = _Head(
            self.number,
            change.task_id,
            change.scope,
            change.context_id,
            state,
            change.updated,
            self.number,
            change.generation,
            change.generation - len(packed.events),
            change.owner,
            self._now if state in TERMINAL_NUMBERS else None,
        )
        return head

    def _change(self, head: _Head, change: Change, packed: Packed) -> None:
        head.owner = change.owner
        head.generation = change.generation
        if packed.snapshot is not None:
            head.reflects = change.generation
        if change.events:
            self.number += 1
            head.number = self.number
            head.state, head.updated = STATE_NUMBERS[change.state], change.updated
            head.ended = self._now if head.state in TERMINAL_NUMBERS else None

    def _log(self, head: _Head, events: Sequence[bytes]) -> None:
        first = head.generation - len(events) + 1
        for some in _rows(events):
            self._events.append((head.key, first + len(some) - 1, first, _pack_bodies(some)))
            first += len(some)

    def flush(self) -> None:
        """Write what was decided upon."""
        self._write(_SAVE, [msgspec.structs.astuple(head) for head in self._changed.values()])
        self._write(_SAVE_SNAPSHOTS, [*self._snapshots.items()])
        self._write(_LOG, self._events)
        self._changed, self._snapshots, self._events = {}, {}, []

    def _write(self, statement: tuple[str, str, str], rows: Sequence[tuple[object, ...]]) -> None:
        start, row, end = statement
        for place in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[place : place + ROWS_AT_ONCE]
            values = [value for values in some for value in values]
            self._connection.execute(f"{start} {', '.join([row] * len(some))} {end}", values)


def _rows(events: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Events as they are stored together."""
    some: list[bytes] = []
    size = 0
    for event in events:
        some.append(event)
        size += len(event)
        if len(some) == EVENTS_PER_ROW or size >= BYTES_PER_ROW:
            yield some
            some, size = [], 0
    if some:
        yield some
