"""The store's file: its tables, the checksums of their rows, and how it is opened.

Other daemons of this machine may open the same file at the same time. Never changes a file of another program.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar, final
from zlib import crc32

import msgspec

from ....daemon.logs import ConfiguredPath, log
from ..checks import COVERED_EVENTS_KEPT
from ..failures import DamagedRecordError, damaged_task_error, unknown_version
from ..interface import StoreError, StoreUnavailableError
from ..sql import IS_QUEUED, TaskRow
from .files import check_kinds, create_private, find_open_to_others, make_private

T = TypeVar("T")

# -- rows ------------------------------------------------------------------------------------------------------


class CheckedRow(TaskRow, array_like=True):
    """A row of `tasks` with its checksum, which tells what was changed in the file by anything else."""

    checksum: int = 0

    def values(self) -> tuple[object, ...]:
        """The columns, with the checksum of the others as of now."""
        *values, _ = msgspec.structs.astuple(self)
        self.checksum = row_checksum(b"", *values)
        return (*values, self.checksum)

    @property
    def is_intact(self) -> bool:
        *values, checksum = msgspec.structs.astuple(self)
        return bool(checksum == row_checksum(b"", *values))

    def verify(self) -> None:
        """Raises `DamagedRecordError`."""
        if not self.is_intact:
            raise DamagedRecordError("the row", self.id)


COLUMNS: Final = ", ".join(CheckedRow.__struct_fields__)
COLUMN_COUNT: Final = len(CheckedRow.__struct_fields__)


def row_checksum(body: bytes, *values: object) -> int:
    """CRC-32 of a row's body and of its other columns: strings, integers and None."""
    return crc32(body, crc32(repr(values).encode()))


def verify(what: str, task_id: str, checksum: object, body: bytes, *values: object) -> None:
    """Raises `DamagedRecordError` if that is not the row's checksum."""
    if not isinstance(body, bytes) or checksum != row_checksum(body, *values):
        raise DamagedRecordError(what, task_id)


# -- waiting and transactions ----------------------------------------------------------------------------------

BUSY_SECONDS: Final = 30.0
"""How long a writer waits for the writers of other daemons, each of which takes milliseconds."""

STATEMENT_SECONDS: Final = 0.1
"""How long SQLite itself waits in one statement. It can't be told to stop sooner."""

_PAUSE_SECONDS: Final = 0.01


def is_error(exc: sqlite3.Error, code: int) -> bool:
    """Whether it is an error of this primary code. Errors of the module `sqlite3` itself have none."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF == code


@final
class BusyWait:
    """Used by the store's threads, and shortened by any."""

    def __init__(self) -> None:
        self._end = math.inf

    def shorten(self, seconds: float) -> None:
        """Let no wait last longer than until this time from now."""
        self._end = time.monotonic() + seconds

    def run(self, function: Callable[[], T]) -> T:
        """Return the function's result. Calls it again while it raises SQLITE_BUSY."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return function()
            except sqlite3.OperationalError as exc:
                if not is_error(exc, sqlite3.SQLITE_BUSY) or time.monotonic() > min(deadline, self._end):
                    raise
                time.sleep(_PAUSE_SECONDS)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    """A transaction, rolled back by an exception. One that reads sees the file at one moment (`DEFERRED`).

    Reads close their cursors, also those that a traceback would hold: while one is open, later reads see that moment, too.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors end it
            connection.execute("ROLLBACK")
        raise


# -- tables ----------------------------------------------------------------------------------------------------

APPLICATION_ID: Final = 0x64736372
"""Marks a SQLite file as ours, at byte 68 of its header: `dscr`."""

VERSION: Final = 1
"""Of the tables. A store of another version is refused."""

# `tasks` holds what queries look for. Snapshots are in a table of their own, because SQLite rewrites whole rows and
# snapshots may be large. Each row carries the checksum of its other columns, a snapshot also that of its generation.
#   task_counts      maintained by triggers, because counting rows takes longer the more there are
#   owner_requests   equal ones are told by the statement that inserts: an index over bodies would store them twice
#   daemons          one row per daemon: how many transactions it wrote, and the last sequence number that it gave;
#                    the row with the empty id sums up the daemons that have ended
_TABLES: Final = f"""
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, context_id TEXT NOT NULL,
    state INTEGER NOT NULL, status_timestamp TEXT NOT NULL, sequence INTEGER NOT NULL, generation INTEGER NOT NULL,
    snapshot_generation INTEGER NOT NULL, owner TEXT, ended_ms INTEGER, checksum INTEGER NOT NULL
);
CREATE INDEX tasks_by_scope ON tasks (scope, sequence);
CREATE INDEX tasks_by_context ON tasks (scope, context_id, sequence, state);
CREATE INDEX tasks_by_state ON tasks (scope, state, sequence);
CREATE INDEX tasks_by_status_timestamp ON tasks (scope, status_timestamp, sequence, state, context_id);
CREATE INDEX tasks_by_owner ON tasks (owner) WHERE owner IS NOT NULL;
CREATE INDEX tasks_queued ON tasks (sequence) WHERE {IS_QUEUED};
CREATE INDEX tasks_by_end ON tasks (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE TABLE snapshots (task_key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE events (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, last_generation INTEGER NOT NULL,
    first_generation INTEGER NOT NULL, bodies BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX events_by_task ON events (task_key, last_generation);
CREATE TABLE push_targets (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL,
    UNIQUE (task_key, id)
);
CREATE TABLE owner_requests (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE INDEX owner_requests_by_task ON owner_requests (task_key);
CREATE TABLE task_counts (
    scope TEXT, state INTEGER, tasks INTEGER NOT NULL, PRIMARY KEY (scope, state)
) WITHOUT ROWID;
CREATE TABLE daemons (
    owner_id TEXT PRIMARY KEY, writes INTEGER NOT NULL, last_sequence INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO daemons VALUES ('', 0, 0);
"""

_INCREMENT: Final = """
    INSERT INTO task_counts VALUES (new.scope, new.state, 1) ON CONFLICT DO UPDATE SET tasks = tasks + 1;
"""
_DECREMENT: Final = """
    UPDATE task_counts SET tasks = tasks - 1 WHERE scope = old.scope AND state = old.state;
    DELETE FROM task_counts WHERE scope = old.scope AND state = old.state AND tasks = 0;
"""
_TRIGGERS: Final = f"""
CREATE TRIGGER task_inserted AFTER INSERT ON tasks BEGIN {_INCREMENT} END;
CREATE TRIGGER task_state_changed AFTER UPDATE OF state ON tasks WHEN old.state <> new.state BEGIN
    {_DECREMENT} {_INCREMENT}
END;
CREATE TRIGGER snapshot_replaced AFTER UPDATE OF snapshot_generation ON tasks
    WHEN old.snapshot_generation <> new.snapshot_generation BEGIN
    -- Another daemon may be about to read what the new snapshot covers, and the last events before it.
    DELETE FROM events WHERE task_key = old.key AND last_generation <= old.snapshot_generation
        AND last_generation <= new.snapshot_generation - {COVERED_EVENTS_KEPT};
END;
CREATE TRIGGER task_deleted AFTER DELETE ON tasks BEGIN
    {_DECREMENT}
    DELETE FROM snapshots WHERE task_key = old.key;
    DELETE FROM events WHERE task_key = old.key;
    DELETE FROM push_targets WHERE task_key = old.key;
    DELETE FROM owner_requests WHERE task_key = old.key;
END;
"""

_COLUMNS_OF: Final = {
    "tasks": COLUMNS,
    "snapshots": "task_key, body, checksum",
    "events": "row, task_key, last_generation, first_generation, bodies, checksum",
    "push_targets": "row, task_key, id, body, checksum",
    "owner_requests": "row, task_key, kind, body, checksum",
    "task_counts": "scope, state, tasks",
    "daemons": "owner_id, writes, last_sequence",
}
"""The objects that a file of the present version must have, whatever its version says."""


def open_writer(path: str) -> sqlite3.Connection:
    """Open the file for writing; create it if needed, and check it. Raises `StoreError`."""
    with translate_errors(path):
        check_kinds(path)
        create_private(path)
        connection = connect(path)
        try:
            BusyWait().run(lambda: _prepare(connection, path))
        except BaseException:
            connection.close()
            raise
    return connection


def open_read_only(path: str) -> sqlite3.Connection:
    """Open the file of a store that exists, to read it. Raises `StoreError`."""
    with translate_errors(path):
        check_kinds(path)
        if not os.path.exists(path):
            raise StoreError(f"{path} does not exist")
        connection = connect(path, read_only=True)
        try:
            if not _is_own(connection):
                raise StoreError(f"{path} is a database of another program")
            if _is_new(connection, path):
                raise StoreError(f"{path} holds no store yet")
            check_tables(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    if not _is_own(connection):
        raise StoreError(f"{path} is a database of another program")
    find_open_to_others(path)
    is_new = _is_new(connection, path)
    _enable_wal(connection, path)
    if is_new:
        _create(connection, path)
    check_tables(connection)
    check_pages(connection, path)
    make_private(path)  # last: a file that is refused is left as it was


def check_tables(connection: sqlite3.Connection) -> None:
    """Raises `sqlite3.OperationalError` where a table or a column is missing."""
    for table, columns in _COLUMNS_OF.items():
        connection.execute(f"SELECT {columns} FROM {table} LIMIT 0")


def connect(path: str, *, busy_seconds: float = STATEMENT_SECONDS, read_only: bool = False) -> sqlite3.Connection:
    """A connection without implicit transactions. One thread at a time may use it. `path` is absolute where it is `read_only`."""
    name = f"{Path(path).as_uri()}?mode=ro" if read_only else path
    connection = sqlite3.connect(
        name, timeout=busy_seconds, isolation_level=None, check_same_thread=False, uri=read_only
    )
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.create_function("row_checksum", -1, row_checksum, deterministic=True)
        connection.text_factory = _decode_text
    except BaseException:
        connection.close()
        raise
    return connection


def _decode_text(raw: bytes) -> str:
    """A damaged text has a wrong checksum then, and does not make the whole statement fail."""
    return raw.decode("utf-8", "replace")


@contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Turns the errors of SQLite and the system into `StoreError`, one line each."""
    try:
        yield
    except sqlite3.Error as exc:
        name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
        primary = name.removeprefix("SQLITE_").split("_")[0]
        text = _ERROR_TEXTS.get(primary, f"can't be used: {name}")
        raise (StoreUnavailableError if primary in _PASSING else StoreError)(f"{path} {text}") from exc
    except OSError as exc:
        raise StoreError(f"{path} can't be opened: {exc.strerror}") from exc
    except DamagedRecordError as exc:
        raise damaged_task_error(path, exc) from exc
    except UnicodeDecodeError as exc:  # of a text, or of SQLite's own message about one
        raise StoreError(f"{path} {_ERROR_TEXTS['CORRUPT']}") from exc


_ERROR_TEXTS: Final = {
    "ERROR": "is not a store of this version of discreet: it has other tables or columns",
    "NOTADB": "is not a SQLite database",
    "CORRUPT": "is a damaged database",
    "READONLY": "can't be written to",
    "CANTOPEN": "can't be opened",
    "FULL": "can't grow: the disk is full",
    "IOERR": "can't be read or written: the disk fails",
    "BUSY": "is locked by another program",
}

_PASSING: Final = frozenset({"BUSY", "FULL", "IOERR"})
"""Errors that may be gone with the next attempt."""


def _is_own(connection: sqlite3.Connection) -> bool:
    """Whether the file is empty or a store's.

    Counts tables first: if another daemon creates them meanwhile, the application id appears together with them.
    """
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(application_id == APPLICATION_ID or (application_id == 0 and tables == 0))


def _enable_wal(connection: sqlite3.Connection, path: str) -> None:
    """Use a write-ahead log, with which readers don't wait for writers."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"{path} can't be shared: its file system does not support a write-ahead log")


def _is_new(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file holds no tables yet. Raises `StoreError` if they are of another version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, VERSION):
        raise unknown_version(path, version, VERSION)
    return bool(version == 0)


def _create(connection: sqlite3.Connection, path: str) -> None:
    with transaction(connection):
        if _is_new(connection, path):  # no other daemon was first
            for statement in re.split(r"\n(?=CREATE|INSERT)", (_TABLES + _TRIGGERS).strip()):
                connection.execute(statement)  # one by one, as `executescript` would commit
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")


# -- the check of pages when a file is opened: a damaged index would hide tasks --------------------------------

CHECK_SECONDS: Final = 1.0
"""How long the check may take. It reads some hundred megabytes in this time; of a larger file the rest is not checked."""

_CHECKS: Final = (
    "PRAGMA integrity_check(tasks)",  # first: these few pages, indexes included, decide which tasks there are
    "PRAGMA quick_check(1)",
)


def check_pages(connection: sqlite3.Connection, path: str, seconds: float = CHECK_SECONDS) -> None:
    """Raises `StoreError` for a damaged page, and `sqlite3.Error`."""
    deadline = time.monotonic() + seconds
    try:
        with _interrupted_after(connection, seconds):
            for check in _CHECKS:
                if time.monotonic() >= deadline:
                    return _log_unchecked(path, seconds)
                if connection.execute(check).fetchone() != ("ok",):
                    raise StoreError(f"{path} is a damaged database")
    except sqlite3.OperationalError as exc:
        if not is_error(exc, sqlite3.SQLITE_INTERRUPT):
            raise
        _log_unchecked(path, seconds)


def _log_unchecked(path: str, seconds: float) -> None:
    log.info("store.unchecked", path=ConfiguredPath(path), seconds=seconds)


@contextmanager
def _interrupted_after(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupts the connection from a thread: a progress handler is not called within the check of one table."""
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
