"""Holds sessions with the server: its address, its errors, and the name of a daemon that a session holds. Reads no task.

A daemon is alive while its session holds the advisory lock of its name. The server ends a session when the daemon or its
machine dies.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from time import monotonic
from typing import Any, Final, TypeVar, final

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from ....errors.printable import cut, printable
from ....errors.redaction import register, scrub_known
from ..failures import DamagedRecordError, damaged_task_error
from ..interface import StoreError, StoreUnavailableError
from .schema import AnyConnection

T = TypeVar("T")

# -- the address ----------------------------------------------------------------------------------------------

_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "discreet",
    "client_encoding": "utf-8",
    "connect_timeout": 5,  # seconds for each host
    "keepalives_idle": 5,  # a server whose machine has died is noticed within 15 seconds
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # milliseconds
    "target_session_attrs": "read-write",  # of several hosts, the one that is no standby
}
"""Parameters of libpq, where neither the address nor the environment names them."""

_VARIABLES: Final = {
    "application_name": "PGAPPNAME",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}

_SECRETS: Final = ("password", "sslpassword")


class Address(msgspec.Struct, frozen=True):
    """`label` names the database for the operator: host and name, without user or password."""

    label: str
    parameters: dict[str, Any]  # Any: libpq's parameters are strings and numbers

    def __repr__(self) -> str:
        return f"Address({self.label})"


def read_address(url: str) -> Address:
    """Registers the password with the scrubber. Raises `StoreError`, which repeats nothing of an address that is wrong."""
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    if "@" in path:  # else libpq would take the beginning of a password for a host, and show it
        raise StoreError("the address has an @ after a /; write %2F for a / in a password, and %40 for an @ in a name")
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:  # its text may repeat a part of the password
        raise StoreError("the address is none that PostgreSQL's libpq can read") from None
    for name in _SECRETS:
        if given.get(name):
            register(str(given[name]))
    host = str(given.get("host") or given.get("hostaddr") or "")
    if "@" in host and not host.startswith("@"):  # else libpq would show the rest of the password as a host
        raise StoreError("the address has more than one @; write %40 for one in a password")
    defaults = {name: value for name, value in _DEFAULTS.items() if _VARIABLES.get(name, name) not in os.environ}
    return Address(_label(host, given), {**defaults, **given})


def _label(host: str, given: dict[str, Any]) -> str:  # Any: as above
    service = given.get("service")
    port = f":{given['port']}" if given.get("port") else ""
    name = given.get("dbname") or (f"?service={service}" if service else "")
    return f"postgresql://{'' if host.startswith('/') else host}{port}/{name}"


# -- errors ---------------------------------------------------------------------------------------------------

_MAX_REASON: Final = 300
"""Characters of what the server or libpq says when it refuses a connection."""

_TEXTS: Final = {
    "25006": "can't be written to: the server is read-only",
    "42501": "can't be used: the role lacks a privilege",
    "42P01": "is not a store of this version of discreet: a table is missing; restore it from a backup",
    "42703": "is not a store of this version of discreet: a column is missing; restore it from a backup",
    "53100": "can't grow: the server's disk is full",
    "53200": "can't be used: the server has no memory left",
    "55P03": "is locked by another program",
    "57014": "took too long",
    "XX001": "is a damaged database",
    "XX002": "is a damaged database",
}
"""By SQLSTATE."""

_PASSING: Final = frozenset({"53100", "53200", "55P03", "57014"})
"""Errors that may be gone with the next attempt."""

RETRIED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation)
"""Errors of a transaction that another daemon's at the same time has caused."""


@contextmanager
def translate_errors(label: str) -> Iterator[None]:
    """`label` names the database."""
    try:
        yield
    except psycopg.Error as exc:
        state = exc.sqlstate
        text = _TEXTS.get(state or "", f"can't be used: {state or type(exc).__name__}")
        error = StoreUnavailableError if state in _PASSING else StoreError
        raise error(f"{label} {text}") from None  # psycopg's own text may repeat a row
    except DamagedRecordError as exc:
        raise damaged_task_error(label, exc) from exc


def why_not_connected(exc: psycopg.Error) -> str:
    """Return libpq's words about its last attempt, in one line: the host that it asked, and the server's answer. They repeat no
    password."""
    if not isinstance(exc, psycopg.OperationalError):  # a parameter that libpq does not take
        return type(exc).__name__
    lines = [line for line in str(exc).splitlines() if line.strip()] or [type(exc).__name__]
    reasons = [line for line in lines if "FATAL:" in line or "failed:" in line or "error:" in line]
    reason = (reasons or lines)[-1].rpartition("FATAL:")[2].removeprefix("connection failed: ")
    return cut(printable(scrub_known(" ".join(reason.split()))), _MAX_REASON)


# -- sessions -------------------------------------------------------------------------------------------------

ANSWER_SECONDS: Final = 15.0
"""How long the server may take for what it is asked before the session counts as lost."""

_ENDED: Final = (
    psycopg.errors.ReadOnlySqlTransaction,  # the server is a standby now
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
"""After these a session is of no use, even if it is still open."""


def ends_session(exc: BaseException) -> bool:
    """Whether a session is lost with this error, or of no use any more. Its connection may not know that yet.

    libpq's own errors have no SQLSTATE.
    """
    return isinstance(exc, _ENDED) or (type(exc) is psycopg.OperationalError and exc.sqlstate is None)


class NoAnswerError(psycopg.OperationalError):
    """The session was ended because its server did not answer."""


@final
class Session:
    """A connection that is closed when it is lost. Used by one thread, but for `end_if_stuck` and `shut_down`."""

    def __init__(self, connection: AnyConnection) -> None:
        self.connection = connection
        self._busy_since: float | None = None
        self._stuck = False

    @property
    def closed(self) -> bool:
        return self.connection.closed

    def run(self, work: Callable[[AnyConnection], T]) -> T:
        """Return the result of `work(connection)`. Raises its exceptions; the connection is closed if it was lost with one."""
        self._stuck = False
        self._busy_since = monotonic()
        try:
            return work(self.connection)
        except psycopg.Error as exc:
            if self.connection.closed or ends_session(exc):
                self.close()
                if self._stuck:
                    raise NoAnswerError from exc
            raise
        finally:
            self._busy_since = None

    def close(self) -> None:
        with suppress(psycopg.Error):
            self.connection.close()

    def end_if_stuck(self) -> None:
        """End a session whose server has not answered for too long."""
        since = self._busy_since
        if since is not None and monotonic() > since + ANSWER_SECONDS:
            self._stuck = True
            self.shut_down()

    def shut_down(self) -> None:
        """Have the thread that waits for the server hear that the connection is over."""
        with suppress(psycopg.Error, OSError):
            duplicate = socket.fromfd(self.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
            with duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)


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


def connect(address: Address) -> AnyConnection:
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
    """End this daemon's lost sessions on the server, and so their transactions. During the block no daemon takes their names for
    dead.

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


_SHOWN_NAMES: Final = """
    SELECT DISTINCT application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name ~ ' [0-9a-f]{16}-[0-9]+$'
"""


def shown_names(connection: AnyConnection) -> frozenset[str]:
    """The daemons that have a session with this database, by what `take_name` shows."""
    return frozenset(name for (name,) in connection.execute(_SHOWN_NAMES))


_END_SILENT: Final = f"""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (
        SELECT pid {_HOLDERS} AND (classid::bigint << 32 | objid::bigint) = ANY(%s::bigint[])
    ) AND usename = current_user AND wait_event = 'ClientRead'
    AND greatest(state_change, query_start) < clock_timestamp() - make_interval(secs => %s)
"""


def end_silent_sessions(connection: AnyConnection, names: Sequence[str]) -> None:
    """End the sessions of those of these daemons that were stopped: soon they count as dead, and hold no rows locked."""
    connection.execute(_END_SILENT, ([lock_key(name) for name in names], STOPPED_SECONDS))
