"""The tables of the store, in a schema of their own, and their migrations. Never touches another schema.

One of the daemons that start at the same time migrates, and the others wait for it.
"""

from __future__ import annotations

from typing import Any, Final, LiteralString, TypeAlias

from psycopg import Connection

from ....a2a.types import STATE_NUMBERS, TERMINAL
from ..interface import QUEUED, StoreError
from .rows import COLUMNS

AnyConnection: TypeAlias = Connection[tuple[Any, ...]]  # Any: what a row holds depends on the statement

COVERED_EVENTS_KEPT: Final = 1024
"""Events kept although a snapshot covers them, for daemons that follow a task and are a little behind."""

TERMINAL_NUMBERS: Final = [number for state, number in STATE_NUMBERS.items() if state in TERMINAL]
"""The numbers in column `state` of tasks that have ended."""

OWNED: Final = f"owner <> '{QUEUED}'"
"""Part of every condition on owners, as the index by owner has it, too: it holds no task that waits for a daemon."""

COUNT_SHARDS: Final = 16
"""Rows over which the count of a caller's tasks in one state is spread: daemons that commit at once seldom wait for one."""

ALL_SCOPES: Final = "\x1a"
"""Scope of the rows that count the tasks of all callers. No caller has it: `to_text` never makes this text."""

MIGRATION_LOCK: Final = 0x6469736372656574
"""Key of the advisory lock of whoever migrates: `discreet`."""

# `tasks` holds what queries look for; snapshots, which may be large, are in a table of their own.
#   tasks.sequence   number of the task's last change among the changes of all tasks
#   tasks.owner      `queue` where the task waits for a daemon; see `QUEUED`
#   tasks.ended_ms   when the task ended, in milliseconds since 1970
#   events           one row holds up to 64 consecutive events of one commit
#   owner_requests   the digest tells equal ones, as an index takes no large value
#   writers          of each daemon, its last transaction: whether one was made that the server never acknowledged
#   task_counts      kept by the store, because counting rows takes longer the more there are
_TABLES: Final = """
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

MIGRATIONS: Final = (_TABLES,)
"""Element n turns a store of version n into one of version n + 1. Only append."""


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


def migrate(connection: AnyConnection, label: str, migrations: tuple[LiteralString, ...] = MIGRATIONS) -> None:
    """Create the store, or bring it up to date, and check it. Raises `StoreError` for one of a newer version, and
    `psycopg.Error`."""
    if _version(connection, label, migrations) < len(migrations):
        connection.execute(
            "SELECT pg_advisory_lock(%s)", (MIGRATION_LOCK,)
        )  # before the transaction, which sees what others did
        try:
            with connection.transaction():
                _run_missing(connection, _version(connection, label, migrations), migrations)
        finally:
            if not connection.closed:
                connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))
    check_tables(connection)


def _run_missing(connection: AnyConnection, version: int, migrations: tuple[LiteralString, ...]) -> None:
    if version == len(migrations):  # another daemon was first
        return
    if version == 0:
        _create_schema(connection)
    for migration in migrations[version:]:
        connection.execute(migration)
    connection.execute("UPDATE discreet.store SET version = %s", (len(migrations),))


def _create_schema(connection: AnyConnection) -> None:
    """One that is there may be empty, and another role's: creating one takes a privilege that the daemon need not have."""
    if connection.execute("SELECT to_regnamespace('discreet') IS NULL").fetchone() == (True,):
        connection.execute("CREATE SCHEMA discreet")
    connection.execute("CREATE TABLE discreet.store (version integer NOT NULL)")
    connection.execute("INSERT INTO discreet.store VALUES (0)")


def _version(connection: AnyConnection, label: str, migrations: tuple[LiteralString, ...]) -> int:
    """0 where there is no store."""
    if connection.execute("SELECT to_regclass('discreet.store') IS NULL").fetchone() == (True,):
        return 0
    row = connection.execute("SELECT version FROM discreet.store").fetchone()
    if row is None or not 0 < row[0] <= len(migrations):
        if row is not None and row[0] > len(migrations):
            raise StoreError(f"{label} was created by a newer version of discreet")
        raise StoreError(f"{label} is not a store of this version of discreet")
    return int(row[0])
