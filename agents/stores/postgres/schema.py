"""The tables of the store, in a schema of their own, and strings as its type `text` takes them. Never touches another schema.

One of the daemons that start at the same time creates the tables, and the others wait for it.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from psycopg import Connection

from ..failures import unknown_version
from ..interface import QUEUED, StoreError

AnyConnection: TypeAlias = Connection[tuple[Any, ...]]  # Any: what a row holds depends on the statement

COLUMNS: Final = (
    "key, id, scope, context_id, state, status_timestamp, sequence, generation, snapshot_generation, owner, ended_ms"
)
"""The columns of `TaskRow`."""

OWNED: Final = f"owner <> '{QUEUED}'"
"""Part of every condition on owners, as the index by owner has it, too: it holds no task that waits for a daemon."""

COUNT_SHARDS: Final = 16
"""Rows over which the count of a caller's tasks in one state is spread: daemons that commit at once seldom wait for one."""

ALL_SCOPES: Final = "\x1a"
"""Scope of the rows that count the tasks of all callers. No caller has it: `to_text` never makes this text."""

CREATION_LOCK: Final = 0x6469736372656574
"""Key of the advisory lock for creating the tables: `discreet`."""

VERSION: Final = 1
"""Of the tables. A store of another version is refused."""

# `tasks` holds what queries look for; snapshots, which may be large, are in a table of their own.
#   tasks.owner      `queue` where the task waits for a daemon; see `QUEUED`
#   owner_requests   the digest tells equal ones, as an index takes no large value
#   writers          of each daemon, its last transaction: whether one was made that the server never acknowledged
#   task_counts      kept by the store, because counting rows takes longer the more there are
_TABLES: Final = """
CREATE TABLE discreet.store (version integer NOT NULL);
CREATE SEQUENCE discreet.changes;
CREATE TABLE discreet.tasks (
    key bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, scope text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL, state smallint NOT NULL, status_timestamp text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL, generation bigint NOT NULL, snapshot_generation bigint NOT NULL,
    owner text COLLATE "C", ended_ms bigint
);
CREATE INDEX tasks_by_scope ON discreet.tasks (scope, sequence);
CREATE INDEX tasks_by_context ON discreet.tasks (scope, context_id, sequence);
CREATE INDEX tasks_by_state ON discreet.tasks (scope, state, sequence);
CREATE INDEX tasks_by_status_timestamp ON discreet.tasks (scope, status_timestamp);
CREATE INDEX tasks_by_owner ON discreet.tasks (owner) WHERE owner <> 'queue';
CREATE INDEX tasks_queued ON discreet.tasks (sequence) WHERE owner = 'queue';
CREATE INDEX tasks_by_end ON discreet.tasks (ended_ms, key) WHERE ended_ms IS NOT NULL;
CREATE TABLE discreet.snapshots (task_key bigint PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE discreet.events (
    task_key bigint NOT NULL, last_generation bigint NOT NULL, first_generation bigint NOT NULL, bodies bytea NOT NULL,
    PRIMARY KEY (task_key, last_generation)
);
CREATE TABLE discreet.push_targets (
    row bigint GENERATED ALWAYS AS IDENTITY, task_key bigint NOT NULL, id text COLLATE "C" NOT NULL, body bytea NOT NULL,
    PRIMARY KEY (task_key, id)
);
CREATE TABLE discreet.owner_requests (
    row bigint GENERATED ALWAYS AS IDENTITY, task_key bigint NOT NULL, kind text COLLATE "C" NOT NULL,
    digest bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (task_key, kind, digest)
);
CREATE TABLE discreet.writers (
    base text COLLATE "C" PRIMARY KEY, transaction bigint NOT NULL, written_ms bigint NOT NULL
);
CREATE TABLE discreet.task_counts (
    scope text COLLATE "C", state smallint, shard smallint, tasks bigint NOT NULL, PRIMARY KEY (scope, state, shard)
);
"""

_CHECK: Final = f"""
    SELECT FROM (SELECT {COLUMNS} FROM discreet.tasks LIMIT 0) AS tasks,
        (SELECT task_key, body FROM discreet.snapshots LIMIT 0) AS snapshots,
        (SELECT task_key, last_generation, first_generation, bodies FROM discreet.events LIMIT 0) AS events,
        (SELECT row, task_key, id, body FROM discreet.push_targets LIMIT 0) AS push_targets,
        (SELECT row, task_key, kind, digest, body FROM discreet.owner_requests LIMIT 0) AS owner_requests,
        (SELECT base, transaction, written_ms FROM discreet.writers LIMIT 0) AS writers,
        (SELECT scope, state, shard, tasks FROM discreet.task_counts LIMIT 0) AS task_counts,
        (SELECT last_value FROM discreet.changes LIMIT 0) AS changes
"""


def check_tables(connection: AnyConnection) -> None:
    """Raises `psycopg.Error` where a table or a column is missing. They may go at any time: others have rights there, too."""
    connection.execute(_CHECK)


def create(connection: AnyConnection, label: str) -> None:
    """Create the store unless it is there, and check it. Raises `StoreError` for one of another version, and `psycopg.Error`."""
    if not _has_store(connection, label):
        connection.execute(
            "SELECT pg_advisory_lock(%s)", (CREATION_LOCK,)
        )  # before the transaction, which sees what others did
        try:
            with connection.transaction():
                if not _has_store(connection, label):
                    _create_tables(connection)
        finally:
            if not connection.closed:
                connection.execute("SELECT pg_advisory_unlock(%s)", (CREATION_LOCK,))
    check_tables(connection)


def check_store(connection: AnyConnection, label: str) -> None:
    """Raises `StoreError` where there is no store of this version, and `psycopg.Error`."""
    if not _has_store(connection, label):
        raise StoreError(f"{label} holds no store yet")
    check_tables(connection)


def _create_tables(connection: AnyConnection) -> None:
    """The schema may be there, empty, and another role's: creating one takes a privilege that the daemon need not have."""
    if connection.execute("SELECT to_regnamespace('discreet') IS NULL").fetchone() == (True,):
        connection.execute("CREATE SCHEMA discreet")
    connection.execute(_TABLES)
    connection.execute("INSERT INTO discreet.store VALUES (%s)", (VERSION,))


def _has_store(connection: AnyConnection, label: str) -> bool:
    if connection.execute("SELECT to_regclass('discreet.store') IS NULL").fetchone() == (True,):
        return False
    row = connection.execute("SELECT version FROM discreet.store").fetchone()
    if row is None:
        raise StoreError(f"{label} is not a store of this version of discreet")
    if row[0] != VERSION:
        raise unknown_version(label, row[0], VERSION)
    return True


_ESCAPE: Final = "\x1a"
"""SUBSTITUTE begins an escape, and so is escaped itself."""

_escaped: Final = re.compile("[\x00\x1a\ud800-\udfff]")
_escapes: Final = re.compile("\x1a([0-9a-f]{4})")


def to_text(value: str) -> str:
    """Different strings give different texts."""
    return _escaped.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", value)


def from_text(text: str) -> str:
    """The string that `to_text` made the text from."""
    return _escapes.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text
