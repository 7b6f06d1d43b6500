"""The stores of a chaos run: their servers, started here, and the addresses of the daemons' own ways to them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from .. import postgres, redis

CommitTimes = dict[tuple[str, int], float]
"""Of an event, by its task and number: when its commit was made, in seconds since 1970."""


class Store(Protocol):
    @property
    def server_port(self) -> int | None:
        """None if there is no server."""
        ...

    def url(self, port: int | None) -> str:
        """The setting `--store` for a daemon that reaches the server by this port; None for the server's own."""
        ...

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def commit_times(self) -> CommitTimes:
        """Empty where the store does not know."""
        ...


class SqliteFile:
    """A file, which nobody can take away."""

    server_port = None

    def __init__(self, folder: Path) -> None:
        self._path = folder / "tasks.db"

    def url(self, port: int | None) -> str:
        return f"sqlite:{self._path}"

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def commit_times(self) -> CommitTimes:
        return {}


class PostgresDatabase:
    """A database on a server of its own, which is stopped as by a crash."""

    def __init__(self, server: postgres.Server) -> None:
        self._server = server
        with server.connect() as connection:
            connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
            connection.execute("ALTER SYSTEM SET max_connections = 200")
        server.restart()
        self._url = server.new_database()

    @property
    def server_port(self) -> int:
        return self._server.port

    def url(self, port: int | None) -> str:
        return re.sub(rf":{self._server.port}/", f":{port or self._server.port}/", self._url)

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    def commit_times(self) -> CommitTimes:
        with self._server.connect(self._url.rpartition("/")[2]) as connection:
            rows = connection.execute(
                "SELECT id, first_generation, last_generation, extract(epoch FROM pg_xact_commit_timestamp(events.xmin))"
                " FROM discreet.events JOIN discreet.tasks ON key = task_key"
            ).fetchall()
        return {(row[0], number): float(row[3]) for row in rows if row[3] for number in range(row[1], row[2] + 1)}


class RedisKeys:
    """A prefix on a server of its own, which is killed."""

    def __init__(self, server: redis.Server) -> None:
        self._server = server
        self._url = server.new_store()

    @property
    def server_port(self) -> int:
        return self._server.port

    def url(self, port: int | None) -> str:
        return self._url.replace(f":{self._server.port}/", f":{port or self._server.port}/")

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.kill()

    def commit_times(self) -> CommitTimes:
        return {}


@contextmanager
def running_store(kind: str, folder: Path) -> Iterator[Store]:
    """The store of this kind for the block: `sqlite`, `postgresql` or `redis`."""
    if kind == "sqlite":
        yield SqliteFile(folder)
    elif kind == "postgresql":
        with postgres.running_server() as server:
            yield PostgresDatabase(server)
    else:
        with redis.running_server() as server:
            yield RedisKeys(server)
