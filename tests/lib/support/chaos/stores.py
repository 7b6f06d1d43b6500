"""The stores of a chaos run: their servers, started here, and the addresses of the daemons' own ways to them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from .. import postgres, redis

START_SECONDS: Final = 20.0
"""A server that has ended at once is started again for so long."""

DISK_BYTES: Final = 256 << 20
"""Of the disk of an SQLite file: what a long run writes, and a moment to fill."""


class Store(Protocol):
    @property
    def server_port(self) -> int | None:
        """None if there is no server."""
        ...

    def url(self, port: int | None) -> str:
        """The setting `--store` for a daemon that reaches the server by this port; None for the server's own."""
        ...

    @property
    def can_fill(self) -> bool:
        """Whether `fill` works: the store has a disk of its own."""
        ...

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def fill(self) -> None:
        """Leave no room on the store's disk."""
        ...

    def free(self) -> None:
        """Give the room back."""
        ...


class SqliteFile:
    """A file, which nothing can take away. Where this user may mount one, it has a disk of its own, which can be full."""

    server_port = None

    def __init__(self, disk: Path | None, folder: Path) -> None:
        self._disk = disk
        self._path = (disk or folder) / "tasks.db"

    @property
    def can_fill(self) -> bool:
        return self._disk is not None

    def url(self, port: int | None) -> str:
        return f"sqlite:{self._path}"

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def fill(self) -> None:
        assert self._disk is not None
        with suppress(OSError), (self._disk / "ballast").open("wb", buffering=0) as ballast:  # until there is no room
            while True:
                ballast.write(bytes(1 << 16))

    def free(self) -> None:
        assert self._disk is not None
        (self._disk / "ballast").unlink()


class ServerStore:
    """What stores on servers have in common: nothing here fills their disks."""

    can_fill = False

    def fill(self) -> None:
        raise NotImplementedError

    def free(self) -> None:
        raise NotImplementedError


class PostgresDatabase(ServerStore):
    """A database on a server of its own, which is stopped as by a crash."""

    def __init__(self, server: postgres.Server) -> None:
        self._server = server
        with server.connect() as connection:
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


class RedisKeys(ServerStore):
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
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return self._server.start()
            except AssertionError:  # another program of this machine may have had its port for a moment
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.5)

    def stop(self) -> None:
        self._server.kill()


@contextmanager
def running_store(kind: str, folder: Path) -> Iterator[Store]:
    """The store of this kind for the block: `sqlite`, `postgresql` or `redis`."""
    if kind == "sqlite":
        with small_disk(folder / "disk") as disk:
            yield SqliteFile(disk, folder)
    elif kind == "postgresql":
        with postgres.running_server() as server:
            yield PostgresDatabase(server)
    else:
        with redis.running_server() as server:
            yield RedisKeys(server)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of its own for the block, in memory; None where this user may mount none."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
