"""Sessions with the server that has the keys: its address, its errors, its connections. Knows no key, and retries nothing.

They are redis-py's connections, without its clients: one command at a time, an error as it came, no pool and no retries.
A cluster's nodes are asked which of them has the slot of the keys. All else then goes to that one; where the slot moves, the
connection counts as lost and another is opened.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias, final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import msgspec
import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.retry import Retry

from ....errors.printable import cut, printable
from ....errors.redaction import register, scrub_known
from ..failures import DamagedRecordError, damaged_task_error
from ..interface import StoreError, StoreUnavailableError

# -- the address ----------------------------------------------------------------------------------------------

DEFAULT_PORT: Final = 6379
DEFAULT_PREFIX: Final = "discreet"
PASSWORD_VARIABLE: Final = "REDISCLI_AUTH"
"""Holds the password where the address has none."""

_SECRETS: Final = ("password", "ssl_password")
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TEXT_OPTIONS: Final = (
    "username password client_name ssl_keyfile ssl_certfile ssl_password ssl_cert_reqs ssl_ca_certs ssl_ca_path"
    " ssl_ca_data ssl_ciphers"
)
_OPTIONS: Final = frozenset((*_TEXT_OPTIONS.split(), "ssl_check_hostname", "db", "prefix"))
"""The names that may follow the question mark: parameters of redis-py, and `prefix`."""

_is_prefix: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}").fullmatch


class Address(msgspec.Struct, frozen=True):
    """`label` names the database for the operator: without user or password. `options` are those of redis-py's connections.

    All keys begin with `{prefix}:`. The braces make it their hash tag: in a cluster they are all in one slot, and so on one
    node, where a script changes them at once. So a store is as large as one node; several stores spread over the nodes.
    """

    label: str
    prefix: str
    scheme: str
    host: str
    port: int
    options: dict[str, Any]  # Any: strings, numbers, booleans

    def __repr__(self) -> str:
        return f"Address({self.label})"

    def key(self, name: str) -> str:
        return f"{{{self.prefix}}}:{name}"


def read_address(url: str) -> Address:
    """Registers the password with the scrubber. Raises `StoreError`, which repeats nothing of an address that is wrong."""
    try:
        parts = urlsplit(url)
        given = {name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
        host, port = unquote(parts.hostname or "localhost"), parts.port or DEFAULT_PORT
    except ValueError:  # its text may repeat a part of the password
        raise StoreError("the address is not redis://USER:PASSWORD@HOST:PORT/DATABASE") from None
    given = _credentials(parts) | given
    for name in _SECRETS:
        if given.get(name):
            register(given[name])
    if unknown := sorted(given.keys() - _OPTIONS):
        raise StoreError(f"the address has {len(unknown)} unknown parameters; it takes {', '.join(sorted(_OPTIONS))}")
    database = given.pop("db", "") or ("" if parts.scheme == "unix" else parts.path.strip("/")) or "0"
    prefix = given.pop("prefix", DEFAULT_PREFIX)
    if not (database.isascii() and database.isdigit() and len(database) < 6):
        raise StoreError("the database in the address is not a number; the first one is redis://HOST/0")
    if not _is_prefix(prefix):
        raise StoreError("the prefix in the address must be 1 to 64 letters, digits, or any of . _ : -")
    options = _options(parts.scheme, given) | {"db": int(database)}
    if parts.scheme == "unix":
        options["path"] = unquote(parts.path)
    where = unquote(parts.path) if parts.scheme == "unix" else f"{host}:{port}/{int(database)}"
    label = f"{parts.scheme}://{where}" + (f" with prefix {prefix}" if prefix != DEFAULT_PREFIX else "")
    return Address(label, prefix, parts.scheme, host, port, options)


def _credentials(parts: SplitResult) -> dict[str, str]:
    found = {"username": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    found["password"] = found["password"] or os.environ.get(PASSWORD_VARIABLE, "")
    return {name: value for name, value in found.items() if value}


def _options(scheme: str, given: dict[str, str]) -> dict[str, Any]:  # Any: as above
    options: dict[str, Any] = dict(given)
    if scheme != "rediss" and any(name.startswith("ssl_") for name in given):
        raise StoreError("the address has parameters of TLS; one with TLS begins with rediss://")
    if "ssl_check_hostname" in given:
        known = _BOOLEANS.get(given["ssl_check_hostname"].lower())
        if known is None:
            raise StoreError("ssl_check_hostname in the address must be true or false")
        options["ssl_check_hostname"] = known
    if given.get("ssl_cert_reqs", "required") not in ("none", "optional", "required"):
        raise StoreError("ssl_cert_reqs in the address must be none, optional or required")
    if given.get("ssl_cert_reqs") == "none":
        options.setdefault("ssl_check_hostname", False)
    return options


# -- errors ---------------------------------------------------------------------------------------------------

_MAX_REASON: Final = 300
"""Characters of what is said of a refused connection."""

NO_STORE: Final = "NOSTORE"
"""Error code of our own scripts: the store is not there any more, as after a restart of a server that keeps nothing."""

DAMAGED: Final = "DAMAGED"
"""Error code of our own scripts: keys that all tasks share hold something else."""

SUPERSEDED: Final = "SUPERSEDED"
"""Error code of our own scripts: a later transaction of this daemon has been made."""

_SHARED: Final = "the keys store, counts, owners, ended or wake"

_TEXTS: Final = {
    "BUSY": "is busy with a script of another program",
    "CROSSSLOT": "does not take the keys of one store in one script",
    "MISCONF": "can't be written to: it can't write to its own disk",
    "NOAUTH": "can't be used: it needs a password",
    "NOPERM": "can't be used: its user may not run the commands that a store needs",
    "OOM": "can't grow: its memory is full (maxmemory)",
    "WRONGTYPE": "holds something else under the keys of a store",
    NO_STORE: "holds no store of this version of discreet any more",
    DAMAGED: f"is damaged: {_SHARED} are not as they were written; restore it from a backup, or delete all its keys",
    SUPERSEDED: "holds a later change of this daemon",
}
"""By error code."""

_PASSING: Final = frozenset({"BUSY", "MISCONF", "OOM"})
"""Errors that may be gone with the next attempt."""

_ENDED: Final = frozenset(
    {"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN", NO_STORE}
)
"""After these a connection is of no use, even if it is still open: the server, or its part in a cluster, has changed."""

_CODES: Final = (
    (exceptions.AskError, "ASK"),  # before its base class
    (exceptions.MovedError, "MOVED"),
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.ClusterCrossSlotError, "CROSSSLOT"),
    (exceptions.MasterDownError, "MASTERDOWN"),
    (exceptions.TryAgainError, "TRYAGAIN"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.NoScriptError, "NOSCRIPT"),
    (exceptions.OutOfMemoryError, "OOM"),
)
"""redis-py takes the code off the text of these."""

_code: Final = re.compile(r"(?:\A|[:\s]-)([A-Z]{2,})\b")
"""At the beginning; servers before Redis 7 give the code of what failed in a script somewhere behind."""


def code_of(exc: redis.ResponseError) -> str:
    """The code of the server's error, as `OOM`; `ERR` if it has no better one."""
    for kind, code in _CODES:
        if isinstance(exc, kind):
            return code
    text = str(exc)
    if "ACL failure" in text or "can't run this command" in text or "can't access" in text:  # of a script's user
        return "NOPERM"
    codes: list[str] = [code for code in _code.findall(text) if code != "ERR"]
    return codes[0] if codes else "ERR"


def ends_connection(exc: redis.RedisError) -> bool:
    """Whether the connection is lost with this error, or of no use any more."""
    return not isinstance(exc, redis.ResponseError) or code_of(exc) in _ENDED


@contextmanager
def translate_errors(label: str) -> Iterator[None]:
    """`label` names the database."""
    try:
        yield
    except redis.ResponseError as exc:
        raise store_error(label, exc) from None  # the text may hold data
    except redis.RedisError as exc:
        raise StoreError(f"{label} can't be used: {type(exc).__name__}") from None
    except DamagedRecordError as exc:
        raise damaged_task_error(label, exc) from exc


def store_error(label: str, exc: redis.ResponseError) -> StoreError:
    code = code_of(exc)
    error = StoreUnavailableError if code in _PASSING else StoreError
    return error(f"{label} {_TEXTS.get(code, f'can not be used: {code}')}")


def why_not_connected(exc: Exception) -> str:
    """Why there is no connection, in one line, without the password."""
    if "WRONGPASS" in str(exc) or "invalid username-password" in str(exc):
        return "the user or the password is wrong"
    if "without any password" in str(exc):
        return "the server has no password, and the address has one"
    if isinstance(exc, redis.AuthenticationError):
        return "the server needs a password"
    if isinstance(exc, redis.InvalidResponse) or "Protocol Error" in str(exc):
        return "what answers is not Redis"
    if isinstance(exc, redis.ResponseError) and code_of(exc) in _TEXTS:
        return f"the server {_TEXTS[code_of(exc)]}"
    return cut(printable(scrub_known(" ".join(str(exc).split()) or type(exc).__name__)), _MAX_REASON)


# -- connections ----------------------------------------------------------------------------------------------

ANSWER_SECONDS: Final = 5.0
"""How long the server may take for what it is asked before the connection counts as lost."""

CONNECT_SECONDS: Final = 5.0

OLDEST_SERVER: Final = (6, 2)

_Endpoint: TypeAlias = tuple[str, int]

_KINDS: Final[dict[str, Any]] = {"redis": Connection, "rediss": SSLConnection, "unix": UnixDomainSocketConnection}
"""By scheme. Any: as below."""


@final
class Session:
    """One connection, and where the keys of the store are. Used by one thread."""

    def __init__(self, connection: Any, address: Address) -> None:  # Any: redis-py has types for its clients only
        self._connection = connection
        self.key: Final = address.key
        self.label: Final = address.label
        self.closed = False

    def call(self, *arguments: str | bytes | int) -> Any:  # Any: replies are bytes, numbers, None, and lists of them
        """The server's reply. Raises `redis.RedisError`; the session is closed where it was lost with that."""
        try:
            self._connection.send_command(*arguments, check_health=False)
            return self._connection.read_response()
        except redis.RedisError as exc:
            if ends_connection(exc):
                self.close()
            raise
        except OSError as exc:
            self.close()
            raise redis.ConnectionError(str(exc)) from None

    def close(self) -> None:
        self.closed = True
        self._connection.disconnect()

    def shut_down(self) -> None:
        """Have the thread that waits for the server hear that the connection is over. Any thread may."""
        waiting: socket.socket | None = getattr(self._connection, "_sock", None)  # redis-py shows it nowhere
        with suppress(OSError):
            if waiting is not None:
                waiting.shutdown(socket.SHUT_RDWR)


@final
class Server:
    """Opens sessions. Remembers a cluster's nodes, for when the one that the address names is down."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._nodes: tuple[_Endpoint, ...] = ()

    def open(self) -> Session:
        """A session on the node that has the keys, and may write. Raises `StoreError` for a server that is no store's, and
        `redis.RedisError`."""
        failure: redis.ConnectionError | redis.TimeoutError | None = None
        for endpoint in dict.fromkeys(((self.address.host, self.address.port), *self._nodes)):
            try:
                session = self._connect(endpoint)
            except (redis.ConnectionError, redis.TimeoutError) as exc:
                failure = failure or exc
            else:
                return self._checked(session, endpoint)
        assert failure is not None, "the address is tried in any case"
        raise failure

    def _connect(self, endpoint: _Endpoint) -> Session:
        address = self.address
        options: dict[str, Any] = {  # Any: as in `Address`
            "socket_timeout": ANSWER_SECONDS,
            "socket_connect_timeout": CONNECT_SECONDS,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
            **address.options,
        }
        if address.scheme == "unix":
            del options["socket_connect_timeout"]
        else:
            options |= {"host": endpoint[0], "port": endpoint[1], "socket_keepalive": True}
        name = options.pop("client_name", "discreet")
        connection = _KINDS[address.scheme](**options)
        try:
            connection.connect()
        except OSError as exc:  # a file of TLS that is not there
            raise redis.ConnectionError(exc.strerror or type(exc).__name__) from None
        session = Session(connection, address)
        with suppress(redis.ResponseError):  # who may not do that before Redis 7 may do all else
            session.call("CLIENT", "SETNAME", name)
        return session

    def _checked(self, session: Session, endpoint: _Endpoint) -> Session:
        """The session, or that on the node of the cluster that has the keys."""
        try:
            facts = self._check_version(session)
            if facts.get("mode") != "cluster":
                self._check_role(facts)
                return session
            self._nodes, owner = self._nodes_of_cluster(session, endpoint)
            if owner == endpoint:
                self._check_role(facts)
                return session
            session.close()
            session = self._connect(owner)
            self._check_role(self._check_version(session))
        except BaseException:
            session.close()
            raise
        return session

    def _check_version(self, session: Session) -> dict[str, str]:
        """Check the server, and return the facts that it sends of itself."""
        label = self.address.label
        try:
            reply = session.call("HELLO", "2")
        except redis.ResponseError as exc:
            if "unknown command" in str(exc).lower():
                raise StoreError(f"{label} is too old: it must be Redis 6.2 or later, or Valkey") from None
            raise
        facts = {
            _text(name): _text(value)
            for name, value in zip(reply[::2], reply[1::2], strict=True)
            if isinstance(value, bytes)
        }
        version = tuple(int(number) for number in re.findall(r"\d+", facts.get("version", ""))[:2])
        if version < OLDEST_SERVER:
            raise StoreError(f"{label} is version {facts.get('version')}; it must be Redis 6.2 or later, or Valkey")
        if facts.get("mode") == "sentinel":
            raise StoreError(f"{label} is a Sentinel; the address must be that of the server itself")
        return facts

    def _check_role(self, facts: dict[str, str]) -> None:
        if facts.get("role") != "master":
            raise StoreError(f"{self.address.label} can't be written to: the server is a replica")

    def _nodes_of_cluster(self, session: Session, endpoint: _Endpoint) -> tuple[tuple[_Endpoint, ...], _Endpoint]:
        """All nodes, and the one that has the slot of the keys."""
        slot = session.call("CLUSTER", "KEYSLOT", self.address.key(""))
        nodes: dict[_Endpoint, None] = {}
        owner: _Endpoint | None = None
        for first, last, *found in session.call("CLUSTER", "SLOTS"):
            endpoints = [*_endpoints(found, endpoint)]
            nodes |= dict.fromkeys(endpoints)
            if first <= slot <= last:
                owner = endpoints[0]
        if owner is None:
            raise StoreError(f"{self.address.label} is a cluster in which no node has the slot of the store's keys")
        return tuple(nodes), owner


def _endpoints(nodes: list[Any], asked: _Endpoint) -> Iterator[_Endpoint]:  # Any: hosts, ports, ids
    """A node without a host is where the cluster was asked."""
    for host, port, *_ in nodes:
        yield (_text(host) if host and host != b"?" else asked[0], int(port))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
