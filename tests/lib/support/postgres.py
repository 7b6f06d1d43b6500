"""A PostgreSQL server for tests: in a temporary folder, on loopback, as a user of its own where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from glob import glob
from itertools import count
from typing import Any, Final

from .requirements import missing
from .waits import wait_until

WITH_PASSWORD: Final = "known"
PASSWORD: Final = "Ope1n-Sesa2me"
"""Of a role that needs one."""

_USER: Final = "postgres"
_numbers: Final = count()


def free_port() -> int:
    """A port of loopback that nobody listens on now: below those that systems give to outgoing connections, which could take
    it while a server of a test is restarted."""
    import random
    import socket

    while True:
        port = random.SystemRandom().randrange(15_000, 32_000)  # what seeds `random` would have workers choose alike
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


@cache
def _programs() -> str:
    """The folder of `pg_ctl` and `initdb`. Skips the test where there is none, and where psycopg is missing."""
    from importlib.util import find_spec

    if find_spec("psycopg") is None:
        missing("psycopg is not installed")
    found = sorted(glob("/usr/lib/postgresql/*/bin/pg_ctl"), key=lambda path: int(path.split("/")[4]))
    program = found[-1] if found else shutil.which("pg_ctl")
    if program is None:
        missing("PostgreSQL's server is not installed")
    return os.path.dirname(os.path.realpath(program))


def as_server() -> dict[str, Any]:  # Any: options of `subprocess`
    """Neither PostgreSQL nor PgBouncer runs as root."""
    return {"user": _USER, "group": _USER, "extra_groups": []} if os.geteuid() == 0 else {}


class Server:
    """A cluster in a folder: a new one, or a standby of the `primary`. `fsync` is off: the tests end its processes, never the
    machine."""

    def __init__(self, folder: str, primary: Server | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
        if primary is None:
            self._create()
        else:
            self._copy(primary)

    def _create(self) -> None:
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", _USER, "-E", "UTF8", "--locale=C", "--no-sync")
        self._configure(
            f"port = {self.port}",
            "listen_addresses = '127.0.0.1'",
            "unix_socket_directories = ''",
            "fsync = off",
            "shared_buffers = 16MB",
            "max_connections = 60",
            "autovacuum_naptime = 10min",
        )
        with open(f"{self._data}/pg_hba.conf", "r+", encoding="utf-8") as file:
            others = file.read()
            file.seek(0)
            file.write(f"host all {WITH_PASSWORD} 127.0.0.1/32 scram-sha-256\n{others}")
        self.start()
        with self.connect() as connection:
            connection.execute(f"CREATE ROLE {WITH_PASSWORD} LOGIN SUPERUSER PASSWORD '{PASSWORD}'")

    def _copy(self, primary: Server) -> None:
        """Follow the primary, which from then on acknowledges what both have."""
        source = f"postgresql://{_USER}@127.0.0.1:{primary.port}"
        self._run("pg_basebackup", "-d", source, "-D", self._data, "-R", "-c", "fast", "--no-sync")
        self._configure(f"port = {self.port}")
        self.start()
        with primary.connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            state = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
            wait_until(lambda: connection.execute(state).fetchone())

    def promote(self) -> None:
        """A standby becomes a primary."""
        self._run("pg_ctl", "promote", "-w", "-D", self._data)

    def use_certificate(self, certificate: bytes, key: bytes) -> None:
        """Take TLS from now on. Both are PEM."""
        for name, content in (("server.crt", certificate), ("server.key", key)):
            path = f"{self._data}/{name}"
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o600)
            if os.geteuid() == 0:
                shutil.chown(path, _USER)
        self._configure("ssl = on")
        self.restart()

    def _configure(self, *lines: str) -> None:
        with open(f"{self._data}/postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    @property
    def programs(self) -> str:
        """The folder of PostgreSQL's programs, which the server is one of."""
        return _programs()

    @property
    def _data(self) -> str:
        return f"{self.folder}/data"

    def _run(self, program: str, *arguments: str) -> None:
        command = [f"{_programs()}/{program}", *arguments]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/", **as_server())

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-D", self._data, "-l", f"{self.folder}/log")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", mode)

    def stop_if_running(self) -> None:
        if os.path.exists(f"{self._data}/postmaster.pid"):
            self.stop()

    def restart(self) -> None:
        """As after a crash: nobody is told, nothing is written to the disk before."""
        self._run("pg_ctl", "restart", "-w", "-D", self._data, "-l", f"{self.folder}/log", "-m", "immediate")

    def url(self, database: str, user: str = _USER) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Any:  # Any: psycopg may not be installed
        """A connection without transactions."""
        import psycopg

        return psycopg.connect(self.url(database), autocommit=True)

    def new_database(self) -> str:
        """The URL of a database with the tables of an empty store. The one before must not be in use any more, or be open."""
        from discreet.agents.stores.postgres.schema import create

        with self.connect() as connection:
            unused = connection.execute(
                "SELECT datname FROM pg_database WHERE datname LIKE 'tasks%'"
                " AND datname NOT IN (SELECT datname FROM pg_stat_activity WHERE datname IS NOT NULL) LIMIT 1"
            ).fetchone()
            name = f"tasks{next(_numbers)}" if unused is None else unused[0]
            if unused is None:
                connection.execute(f"CREATE DATABASE {name}")
        with self.connect(name) as connection:
            connection.execute("DROP SCHEMA IF EXISTS discreet CASCADE")
            create(connection, name)
        return self.url(name)


@contextmanager
def running_server(primary: Server | None = None) -> Iterator[Server]:
    """One for the block; a standby of the `primary`, if one is given. Skips the test where PostgreSQL or psycopg is not
    installed."""
    _programs()
    folder = tempfile.mkdtemp(prefix="pg-")
    os.chmod(folder, 0o755)
    try:
        server = Server(folder, primary)
        try:
            yield server
        finally:
            server.stop_if_running()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
