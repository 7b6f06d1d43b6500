"""Opens sessions on the server, and holds the name of a daemon in one: alive is whose session holds the advisory lock of
its name. The server ends a session when the daemon or its machine dies. Reads no task.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final, final

import psycopg

from ....errors.redaction import register
from ..interface import StoreError
from .address import Address
from .schema import AnyConnection

OLDEST_SERVER: Final = 130_000
"""PostgreSQL 13: none that is older is maintained."""

LOCK_SECONDS: Final = 5
"""How long a daemon waits until the server has ended its former session."""

_SETTINGS: Final = {
    "client_min_messages": "warning",
    "default_transaction_isolation": "read committed",
    "enable_hashjoin": "off",  # every statement finds its rows by an index, also while the planner takes a table for small
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "idle_in_transaction_session_timeout": "4s",  # a daemon that was stopped within a transaction keeps no rows locked
    "idle_session_timeout": "0",
    "jit": "off",  # no statement is worth compiling, but a scan of a small table seems so where such scans are off
    "lock_timeout": "0",
    "max_parallel_workers_per_gather": "0",  # to start some takes 40 ms, and no statement reads much
    "statement_timeout": "0",
    "tcp_keepalives_idle": "1",  # seconds: the session of a daemon whose machine has died ends within 4 of them
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "4000",  # milliseconds: the same where the server waits for an acknowledgement
}
"""Of every session, where the server knows them."""

STOPPED_SECONDS: Final = 10.0
"""How long the session that holds a daemon's name may be silent. It asks something each second: a daemon that does not was
stopped, though its machine still answers for it. (The server's `idle_session_timeout` does not end every such session: its
time does not run within a pipeline, and not after each one.)"""

_SET: Final = """
    SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)
    JOIN pg_settings USING (name)
"""
_CHECK: Final = """
    SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
        current_setting('synchronous_commit'), pg_backend_pid()
"""


def open_session(address: Address) -> AnyConnection:
    """A session without implicit transactions. Raises `StoreError` for a server that is no store's, and `psycopg.Error`."""
    connection = psycopg.connect(**address.parameters, autocommit=True)
    try:
        if connection.info.password:  # from wherever libpq has it
            register(connection.info.password)
        row = connection.execute(_CHECK).fetchone()
        assert row is not None, "a SELECT without FROM has a row"
        version, encoding, synchronous_commit, _ = row
        if version < OLDEST_SERVER:
            raise StoreError(f"{address.label} is PostgreSQL {version // 10_000}; it must be 13 or later")
        if encoding != "UTF8":
            raise StoreError(f"{address.label} has the encoding {encoding}; it must be UTF8")
        connection.execute(_SET, ([*_SETTINGS], [*_SETTINGS.values()]))
        if synchronous_commit == "off":  # what is acknowledged is on the disk
            connection.execute("SET synchronous_commit = on")
    except BaseException:
        connection.close()
        raise
    return connection


def keep_plans(connection: AnyConnection) -> None:
    """Plan each statement once. For a session that writes: there, any values find their rows by the same indexes."""
    connection.execute("SET plan_cache_mode = force_generic_plan")


def backend_pid(connection: AnyConnection) -> int:
    """The process of the server that serves this connection, as of now."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None, "a SELECT without FROM has a row"
    return int(row[0])


def check_own_sessions(connections: Sequence[AnyConnection], label: str) -> None:
    """Raises `StoreError` where a pooler lets sessions share the server's: a lock would be held by anybody."""
    pids = [backend_pid(connection) for connection in connections]
    again = [backend_pid(connection) for connection in connections]
    if len(set(pids)) < len(pids) or pids != again:
        raise shares_sessions(label)


def shares_sessions(label: str) -> StoreError:
    return StoreError(
        f"{label} is behind a pooler that gives a session away between transactions; PgBouncer needs pool_mode = session"
    )


@final
class OwnerNames:
    """The names of one daemon: a new one for each session. `base` is common to them, and to no other daemon's."""

    def __init__(self) -> None:
        self.base: Final = os.urandom(8).hex()
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"{self.base}-{self._count}"

    def is_own(self, name: str | None) -> bool:
        return name is not None and name.startswith(self.base)


def lock_key(name: str) -> int:
    """The key of the advisory lock of a name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


_SHOW_NAME: Final = "SELECT set_config('application_name', current_setting('application_name') || ' ' || %s, false)"


def take_name(connection: AnyConnection, name: str) -> None:
    """Lock a new name for this session, and show it to operators in `pg_stat_activity`."""
    connection.execute("SELECT pg_advisory_lock(%s)", (lock_key(name),))
    connection.execute(_SHOW_NAME, (name,))


def release_names(connection: AnyConnection) -> None:
    """The daemon is dead from now on."""
    connection.execute("SELECT pg_advisory_unlock_all()")


_HOLDERS: Final = """
    FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_END_HOLDER: Final = f"""
    SELECT pg_terminate_backend(pid) {_HOLDERS} AND pid <> pg_backend_pid()
    AND (classid::bigint << 32 | objid::bigint) = %s
"""


@contextmanager
def former_names_held(connection: AnyConnection, names: Sequence[str]) -> Iterator[None]:
    """End what is left on the server of sessions that this daemon has lost: then their transactions are over. During the
    block nobody takes their daemon for dead.

    Raises `psycopg.Error` where it takes longer than `LOCK_SECONDS`.
    """
    connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{LOCK_SECONDS}s",))
    for name in names:
        connection.execute(_END_HOLDER, (lock_key(name),))
        connection.execute("SELECT pg_advisory_lock(%s)", (lock_key(name),))
    connection.execute("SET lock_timeout = 0")
    yield
    for name in names:
        connection.execute("SELECT pg_advisory_unlock(%s)", (lock_key(name),))


def held_keys(connection: AnyConnection) -> set[int]:
    """The keys of all advisory locks of this database."""
    rows = connection.execute(f"SELECT classid::bigint << 32 | objid::bigint {_HOLDERS}").fetchall()
    return {int(key) for (key,) in rows}


_END_SILENT: Final = f"""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (
        SELECT pid {_HOLDERS} AND (classid::bigint << 32 | objid::bigint) = ANY(%s::bigint[])
    ) AND usename = current_user AND wait_event = 'ClientRead'
    AND greatest(state_change, query_start) < clock_timestamp() - make_interval(secs => %s)
"""


def end_silent_sessions(connection: AnyConnection, names: Sequence[str]) -> None:
    """End the sessions of those of these daemons that were stopped: soon they count as dead, and hold no rows locked."""
    connection.execute(_END_SILENT, ([lock_key(name) for name in names], STOPPED_SECONDS))
