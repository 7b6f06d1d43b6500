"""Opens connections to the server that has the store's keys. Knows no key, and retries nothing.

They are redis-py's connections, without its clients: one command at a time, an error as it came, no pool and no retries.
A cluster's nodes are asked which of them has the slot of the keys. All else then goes to that one; where the slot moves, the
connection counts as lost and another is opened.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeAlias, final

import redis
from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.retry import Retry

from ..interface import StoreError
from .address import Address
from .failures import ends_connection

ANSWER_SECONDS: Final = 5.0
"""How long the server may take for what it is asked before the connection counts as lost."""

CONNECT_SECONDS: Final = 5.0

OLDEST_SERVER: Final = (6, 2)

_Endpoint: TypeAlias = tuple[str, int]

_KINDS: Final[dict[str, Any]] = {"redis": Connection, "rediss": SSLConnection, "unix": UnixDomainSocketConnection}
"""By scheme. Any: as below."""


@final
class Session:
    """One connection. Used by one thread."""

    def __init__(self, connection: Any) -> None:  # Any: redis-py has types for its clients only
        self._connection = connection
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
    """Where sessions are opened. Remembers a cluster's nodes, for when the one that the address names is down.

    Used by several threads: `_nodes` is replaced, never changed.
    """

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
        session = Session(connection)
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
        """What the server says of itself."""
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
