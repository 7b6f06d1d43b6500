"""The store's file: its tables, its migrations, and how it is opened.

Other daemons of this machine may open the same file at the same time. Never changes a file of another program.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ....a2a.types import STATE_NUMBERS, TERMINAL
from ....daemon.logs import ConfiguredPath, log
from ..failures import DamagedRecordError, damaged_task_error
from ..interface import QUEUED, StoreError, StoreUnavailableError
from .busy import STATEMENT_SECONDS, BusyWait, is_error
from .files import check_kinds, create_private, find_open_to_others, make_private
from .rows import COLUMNS, row_checksum

# Checks the pages of the store's file when it is opened: a damaged index would hide tasks. Repairs nothing.


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


APPLICATION_ID: Final = 0x64736372
"""Marks a SQLite file as ours, at byte 68 of its header: `dscr`."""

COVERED_EVENTS_KEPT: Final = 1024
"""Events kept although a snapshot covers them: a daemon that follows a task reads it a few times a second only."""

TERMINAL_NUMBERS: Final = tuple(number for state, number in STATE_NUMBERS.items() if state in TERMINAL)
"""The numbers in column `state` of tasks that have ended."""

IS_QUEUED: Final = f"owner = '{QUEUED}'"
"""A literal in SQL, as in the index of queued tasks: SQLite uses that index for no other."""

# `tasks` holds what queries look for. Snapshots are in a table of their own, because SQLite rewrites whole rows and
# snapshots may be large.
#   tasks.sequence   number of the task's last change among the changes of all tasks
#   tasks.ended_ms   when the task ended, in milliseconds since 1970
#   events           one row holds up to 64 consecutive events of one commit
#   *_counts         maintained by triggers, because counting rows takes longer the more there are
#   daemons          one row per daemon: how many transactions it wrote, and the last sequence number that it gave;
#                    the row with the empty id sums up the daemons that have ended
_TABLES: Final = """
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, context_id TEXT NOT NULL,
    state INTEGER NOT NULL, status_timestamp TEXT NOT NULL, sequence INTEGER NOT NULL, generation INTEGER NOT NULL,
    snapshot_generation INTEGER NOT NULL, owner TEXT, ended_ms INTEGER
);
CREATE INDEX tasks_by_scope ON tasks (scope, sequence);
CREATE INDEX tasks_by_context ON tasks (scope, context_id, sequence, state);
CREATE INDEX tasks_by_state ON tasks (scope, state, sequence);
CREATE INDEX tasks_by_status_timestamp ON tasks (scope, status_timestamp, sequence, state, context_id);
CREATE INDEX tasks_by_owner ON tasks (owner) WHERE owner IS NOT NULL;
CREATE INDEX tasks_by_end ON tasks (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE TABLE snapshots (task_key INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE events (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, last_generation INTEGER NOT NULL,
    first_generation INTEGER NOT NULL, bodies BLOB NOT NULL
);
CREATE UNIQUE INDEX events_by_task ON events (task_key, last_generation);
CREATE TABLE push_targets (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (task_key, id)
);
CREATE TABLE owner_requests (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, kind TEXT NOT NULL, UNIQUE (task_key, kind)
);
CREATE TABLE task_counts (scope TEXT, state INTEGER, tasks INTEGER NOT NULL, PRIMARY KEY (scope, state)) WITHOUT ROWID;
CREATE TABLE context_task_counts (
    scope TEXT, context_id TEXT, state INTEGER, tasks INTEGER NOT NULL, PRIMARY KEY (scope, context_id, state)
) WITHOUT ROWID;
CREATE TABLE daemons (
    owner_id TEXT PRIMARY KEY, writes INTEGER NOT NULL, last_sequence INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO daemons VALUES ('', 0, 0);
"""

_INCREMENT_COUNTS: Final = """
    INSERT INTO task_counts VALUES (new.scope, new.state, 1) ON CONFLICT DO UPDATE SET tasks = tasks + 1;
    INSERT INTO context_task_counts VALUES (new.scope, new.context_id, new.state, 1)
        ON CONFLICT DO UPDATE SET tasks = tasks + 1;
"""
_DECREMENT_COUNTS: Final = """
    UPDATE task_counts SET tasks = tasks - 1 WHERE scope = old.scope AND state = old.state;
    UPDATE context_task_counts SET tasks = tasks - 1
        WHERE scope = old.scope AND context_id = old.context_id AND state = old.state;
    DELETE FROM task_counts WHERE scope = old.scope AND state = old.state AND tasks = 0;
    DELETE FROM context_task_counts
        WHERE scope = old.scope AND context_id = old.context_id AND state = old.state AND tasks = 0;
"""
_TRIGGERS: Final = f"""
CREATE TRIGGER task_inserted AFTER INSERT ON tasks BEGIN {_INCREMENT_COUNTS} END;
CREATE TRIGGER task_state_changed AFTER UPDATE OF state ON tasks WHEN old.state <> new.state BEGIN
    {_DECREMENT_COUNTS} {_INCREMENT_COUNTS}
END;
CREATE TRIGGER snapshot_replaced AFTER UPDATE OF snapshot_generation ON tasks
WHEN old.snapshot_generation <> new.snapshot_generation BEGIN
    -- Another daemon may be about to read what the new snapshot covers, and the last events before it.
    DELETE FROM events WHERE task_key = old.key AND last_generation <= old.snapshot_generation
        AND last_generation <= new.snapshot_generation - {COVERED_EVENTS_KEPT};
END;
CREATE TRIGGER owner_removed AFTER UPDATE OF owner ON tasks WHEN old.owner IS NOT NULL AND new.owner IS NULL BEGIN
    DELETE FROM owner_requests WHERE task_key = old.key;
END;
CREATE TRIGGER task_deleted AFTER DELETE ON tasks BEGIN
    {_DECREMENT_COUNTS}
    DELETE FROM snapshots WHERE task_key = old.key;
    DELETE FROM events WHERE task_key = old.key;
    DELETE FROM push_targets WHERE task_key = old.key;
    DELETE FROM owner_requests WHERE task_key = old.key;
END;
"""

# Each row carries the checksum of its other columns (`rows.row_checksum`), a snapshot also that of its generation.
_CHECKSUMS: Final = f"""
ALTER TABLE tasks ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE push_targets ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE tasks SET checksum = row_checksum(x'', {COLUMNS.removesuffix(", checksum")});
UPDATE snapshots SET checksum = row_checksum(body, task_key, (SELECT snapshot_generation FROM tasks WHERE key = task_key));
UPDATE events SET checksum = row_checksum(bodies, task_key, last_generation, first_generation);
UPDATE push_targets SET checksum = row_checksum(body, task_key, id);
"""

# Equal requests are told by `statements.insert_owner_requests`: an index over bodies would store them twice. Nor is a trigger
# told of an owner that is removed and set again by one transaction: the writer deletes the requests itself.
_QUEUE: Final = f"""
CREATE INDEX tasks_queued ON tasks (sequence) WHERE {IS_QUEUED};
CREATE TABLE former_requests AS SELECT row, task_key, kind FROM owner_requests;
DROP TABLE owner_requests;
CREATE TABLE owner_requests (
    row INTEGER PRIMARY KEY, task_key INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE INDEX owner_requests_by_task ON owner_requests (task_key);
INSERT INTO owner_requests SELECT row, task_key, kind, x'', row_checksum(x'', task_key, kind) FROM former_requests;
DROP TABLE former_requests;
DROP TRIGGER owner_removed;
"""

MIGRATIONS: Final = (_TABLES + _TRIGGERS, _CHECKSUMS, _QUEUE)
"""Element n turns a file of version n into one of version n + 1. Only append. Each statement begins on a new line."""


_COLUMNS_OF: Final = {
    "tasks": COLUMNS,
    "snapshots": "task_key, body, checksum",
    "events": "row, task_key, last_generation, first_generation, bodies, checksum",
    "push_targets": "row, task_key, id, body, checksum",
    "owner_requests": "row, task_key, kind, body, checksum",
    "task_counts": "scope, state, tasks",
    "context_task_counts": "scope, context_id, state, tasks",
    "daemons": "owner_id, writes, last_sequence",
}
"""What a file of the present version must have, whatever its version says."""


def open_writer(path: str, migrations: tuple[str, ...] = MIGRATIONS) -> sqlite3.Connection:
    """Open the file for writing; create it or migrate it if needed, and check it. Raises `StoreError`."""
    with translate_errors(path):
        check_kinds(path)
        create_private(path)
        connection = connect(path)
        try:
            BusyWait().run(lambda: _prepare(connection, path, migrations))
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str, migrations: tuple[str, ...]) -> None:
    if not _is_own(connection):
        raise StoreError(f"{path} is a database of another program")
    find_open_to_others(path)
    _check_version(connection, path, migrations)
    _enable_wal(connection, path)
    _migrate(connection, migrations)
    _check_version(connection, path, migrations)
    if migrations is MIGRATIONS:
        check_tables(connection)
    check_pages(connection, path)
    make_private(path)  # last: a file that is refused is left as it was


def check_tables(connection: sqlite3.Connection) -> None:
    """Raises `sqlite3.OperationalError` where a table or a column is missing."""
    for table, columns in _COLUMNS_OF.items():
        connection.execute(f"SELECT {columns} FROM {table} LIMIT 0")


def connect(path: str, *, busy_seconds: float = STATEMENT_SECONDS) -> sqlite3.Connection:
    """A connection without implicit transactions. One thread at a time may use it."""
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
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


def _check_version(connection: sqlite3.Connection, path: str, migrations: tuple[str, ...]) -> None:
    version = _version(connection)
    if version > len(migrations):
        raise StoreError(f"{path} was created by a newer version of discreet")
    if version < 0:
        raise StoreError(f"{path} has the version {version}, which no store has")


def _migrate(connection: sqlite3.Connection, migrations: tuple[str, ...]) -> None:
    """Run the missing migrations, each in one transaction that also sets the version."""
    while (version := _version(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # no other daemon has run this migration meanwhile
                for statement in _statements(migrations[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _statements(script: str) -> Iterator[str]:
    """The statements one by one, because `executescript` would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
