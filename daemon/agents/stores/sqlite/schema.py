"""The file of the SQLite store: its tables, how an older one becomes what it should be, and how it is opened.

Other daemons of this machine may open the same file at the same moment. Never changes a file that is not the store's own.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from ...model.states import TERMINAL
from ...model.types import STATE_NUMBERS
from ..interface import StoreError

APPLICATION_ID: Final = 0x64736372
"""Which program a file belongs to, at byte 68 of its header: `dscr`."""

KEEP_BEHIND: Final = 1024
"""Events that stay behind a snapshot: daemons that follow a task look a few times a second only."""

BUSY_SECONDS: Final = 30.0
"""How long a writer waits for the writers of other daemons, each of which takes milliseconds."""

TERMINAL_NUMBERS: Final = tuple(number for state, number in STATE_NUMBERS.items() if state in TERMINAL)
"""Of the states in the file, those in which a task has ended."""

# `tasks` is what is looked for, and small: snapshots may be large, and a row is written as a whole. `number` is that of the
# task's last change among all changes of all tasks; `ended` is when it ended, in milliseconds since 1970. The events of one
# commit are one row. Counts are kept by triggers, because counting rows takes longer the more there are. Each of `daemons` says
# how often it has written, and the largest number that it has given; those that are no more are summed up under no name.
_TABLES: Final = """
CREATE TABLE tasks (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, context_id TEXT NOT NULL,
    state INTEGER NOT NULL, updated TEXT NOT NULL, number INTEGER NOT NULL, generation INTEGER NOT NULL,
    reflects INTEGER NOT NULL, owner TEXT, ended INTEGER
);
CREATE INDEX tasks_by_scope ON tasks (scope, number);
CREATE INDEX tasks_by_context ON tasks (scope, context_id, number, state);
CREATE INDEX tasks_by_state ON tasks (scope, state, number);
CREATE INDEX tasks_by_time ON tasks (scope, updated, number, state, context_id);
CREATE INDEX tasks_by_owner ON tasks (owner) WHERE owner IS NOT NULL;
CREATE INDEX tasks_by_end ON tasks (ended) WHERE ended IS NOT NULL;
CREATE TABLE snapshots (task INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE events (
    row INTEGER PRIMARY KEY, task INTEGER NOT NULL, last INTEGER NOT NULL, first INTEGER NOT NULL, bodies BLOB NOT NULL
);
CREATE UNIQUE INDEX events_by_task ON events (task, last);
CREATE TABLE targets (
    row INTEGER PRIMARY KEY, task INTEGER NOT NULL, id TEXT NOT NULL, body BLOB NOT NULL, UNIQUE (task, id)
);
CREATE TABLE asked (row INTEGER PRIMARY KEY, task INTEGER NOT NULL, what TEXT NOT NULL, UNIQUE (task, what));
CREATE TABLE counts (scope TEXT, state INTEGER, tasks INTEGER NOT NULL, PRIMARY KEY (scope, state)) WITHOUT ROWID;
CREATE TABLE context_counts (
    scope TEXT, context_id TEXT, state INTEGER, tasks INTEGER NOT NULL, PRIMARY KEY (scope, context_id, state)
) WITHOUT ROWID;
CREATE TABLE daemons (owner TEXT PRIMARY KEY, writes INTEGER NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO daemons VALUES ('', 0, 0);
"""

_COUNT_ONE_MORE: Final = """
    INSERT INTO counts VALUES (new.scope, new.state, 1) ON CONFLICT DO UPDATE SET tasks = tasks + 1;
    INSERT INTO context_counts VALUES (new.scope, new.context_id, new.state, 1)
        ON CONFLICT DO UPDATE SET tasks = tasks + 1;
"""
_COUNT_ONE_LESS: Final = """
    UPDATE counts SET tasks = tasks - 1 WHERE scope = old.scope AND state = old.state;
    UPDATE context_counts SET tasks = tasks - 1
        WHERE scope = old.scope AND context_id = old.context_id AND state = old.state;
    DELETE FROM counts WHERE scope = old.scope AND state = old.state AND tasks = 0;
    DELETE FROM context_counts
        WHERE scope = old.scope AND context_id = old.context_id AND state = old.state AND tasks = 0;
"""
_TRIGGERS: Final = f"""
CREATE TRIGGER task_comes AFTER INSERT ON tasks BEGIN {_COUNT_ONE_MORE} END;
CREATE TRIGGER task_moves AFTER UPDATE OF state ON tasks WHEN old.state <> new.state BEGIN
    {_COUNT_ONE_LESS} {_COUNT_ONE_MORE}
END;
CREATE TRIGGER snapshot_moves AFTER UPDATE OF reflects ON tasks WHEN old.reflects <> new.reflects BEGIN
    -- Other daemons may be about to read what the new snapshot covers, and the last events before it.
    DELETE FROM events WHERE task = old.key AND last <= old.reflects AND last <= new.reflects - {KEEP_BEHIND};
END;
CREATE TRIGGER owner_goes AFTER UPDATE OF owner ON tasks WHEN old.owner IS NOT NULL AND new.owner IS NULL BEGIN
    DELETE FROM asked WHERE task = old.key;
END;
CREATE TRIGGER task_goes AFTER DELETE ON tasks BEGIN
    {_COUNT_ONE_LESS}
    DELETE FROM snapshots WHERE task = old.key;
    DELETE FROM events WHERE task = old.key;
    DELETE FROM targets WHERE task = old.key;
    DELETE FROM asked WHERE task = old.key;
END;
"""

MIGRATIONS: Final = (_TABLES + _TRIGGERS,)
"""What makes of a file of version n one of version n + 1. Only ever added to. A statement begins on a line of its own."""


def open_writer(path: str, migrations: tuple[str, ...] = MIGRATIONS) -> sqlite3.Connection:
    """The file, made and brought up to date if need be. Raises `StoreError`."""
    with told(path):
        _make_private(path)
        connection = connect(path)
        try:
            if not _is_own(connection):
                raise StoreError(f"{path} is a database of another program")
            _set_wal(connection, path)
            _migrate(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
    return connection


def connect(path: str, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection for one thread at a time; transactions are begun and ended by hand."""
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def told(path: str) -> Iterator[None]:
    """What goes wrong with the file is told in one line."""
    try:
        yield
    except sqlite3.Error as exc:
        name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
        raise StoreError(f"{path} {_FAULTS.get(name.removeprefix('SQLITE_').split('_')[0], f'fails: {name}')}") from exc
    except OSError as exc:
        raise StoreError(f"{path} can't be opened: {exc.strerror}") from exc
    except msgspec.DecodeError as exc:
        raise StoreError(f"{path} holds a task that can't be read") from exc


_FAULTS: Final = {
    "NOTADB": "is no SQLite database",
    "CORRUPT": "is a damaged database",
    "READONLY": "can't be written to",
    "CANTOPEN": "can't be opened",
    "FULL": "does not fit on the disk any more",
    "IOERR": "can't be read or written: the disk fails",
    "BUSY": "is held by another program",
}


def _make_private(path: str) -> None:
    """What people say to agents is nobody else's business. SQLite gives its side files the same mode.

    A file that is there is left alone: to close one that SQLite has open in this process would end its locks (POSIX).
    """
    if not os.path.isfile(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _is_own(connection: sqlite3.Connection) -> bool:
    """Asked in this order: where another daemon makes the tables just now, the name is there as soon as they are."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    return bool(application_id == APPLICATION_ID or (application_id == 0 and tables == 0))


def _set_wal(connection: sqlite3.Connection, path: str) -> None:
    """Readers don't wait for writers. SQLite does not wait for others who open the file just now, so this does."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StoreError(f"{path} can't be shared: its file system knows no write-ahead log")


def _migrate(connection: sqlite3.Connection, path: str, migrations: tuple[str, ...]) -> None:
    """Each step is one transaction, with the version that it leads to."""
    while (version := _version(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) == version:  # nobody else was faster
                for statement in _statements(migrations[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    if version > len(migrations):
        raise StoreError(f"{path} was made by a newer version of this program")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _statements(script: str) -> Iterator[str]:
    """One by one: `executescript` would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
