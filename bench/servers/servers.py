"""Starts a PostgreSQL or Redis server of its own, in a folder, on loopback, with what is acknowledged on the disk.

Ends with `SystemExit` where the server is not installed. Linux.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from stdio_machine import cpu_clock, family

USER = "postgres"
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 512MB
max_wal_size = 4GB
checkpoint_timeout = 30min
fsync = on
synchronous_commit = on
full_page_writes = on
track_io_timing = on
"""
STATEMENTS = "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track = all\n"


class Server:
    """A server that listens. `pid` is its main process, `url` its address."""

    def __init__(self, folder: Path, pid: int, port: int) -> None:
        self.folder = folder
        self.pid = pid
        self.port = port

    def cpu(self) -> float:
        """CPU seconds of its processes, also of those that have ended."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return cpu_clock(family(self.pid)) + (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


class Postgres(Server):
    """`programs` is the folder of its programs."""

    def __init__(self, folder: Path, pid: int, port: int, programs: Path, *, statements: bool) -> None:
        super().__init__(folder, pid, port)
        self.programs = programs
        self.has_statements = statements
        self._databases = 0

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of one that is empty."""
        self._databases += 1
        name = f"bench{self._databases}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def connect(self, url: str = "") -> Any:
        """A connection without transactions."""
        import psycopg

        return psycopg.connect(url or self.url(), autocommit=True)


class Redis(Server):
    def __init__(self, folder: Path, pid: int, port: int) -> None:
        super().__init__(folder, pid, port)
        self._databases = -1

    def new_database(self) -> str:
        self._databases += 1
        return f"redis://127.0.0.1:{self.port}/{self._databases}"

    def written(self) -> int:
        """Bytes of the append-only files."""
        return sum(file.stat().st_size for file in self.folder.rglob("*.aof"))


SLOW_LOG = "commit_delay = 10000\ncommit_siblings = 0\n"
"""With a disk that is memory: a log that takes 10 ms to write, whatever else the machine does."""


@contextmanager
def postgres(more: str = "") -> Iterator[Postgres]:
    """With `more` settings."""
    programs = Path(_program("pg_ctl", "/usr/lib/postgresql/*/bin/pg_ctl")).resolve().parent
    as_user: dict[str, Any] = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}
    with _folder() as folder:
        if as_user:
            shutil.chown(folder, USER)
        port, data = free_port(), folder / "data"

        def run(*command: str) -> None:
            subprocess.run(
                [str(programs / command[0]), *command[1:]],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                **as_user,
            )

        run("initdb", "-D", str(data), "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C")
        statements = bool(glob(str(programs.parent / "lib" / "pg_stat_statements*")))
        settings = f"port = {port}\n{SETTINGS}{STATEMENTS if statements else ''}{more}"
        with open(data / "postgresql.auto.conf", "a", encoding="utf-8") as file:
            file.write(settings)
        run("pg_ctl", "start", "-w", "-D", str(data), "-l", str(folder / "log"))
        try:
            pid = int((data / "postmaster.pid").read_text().split()[0])
            yield Postgres(folder, pid, port, programs, statements=statements)
        finally:
            run("pg_ctl", "stop", "-w", "-D", str(data), "-m", "immediate")


@contextmanager
def redis() -> Iterator[Redis]:
    """Each commit is on the disk before it is acknowledged, as with PostgreSQL."""
    program = _program("redis-server")
    with _folder() as folder:
        port = free_port()
        options = f"--port {port} --bind 127.0.0.1 --dir {folder} --appendonly yes --appendfsync always --save "
        command = [program, *options.split(), "", "--loglevel", "warning"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 30
            while not listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("redis-server does not listen")
                time.sleep(0.05)
            yield Redis(folder, process.pid, port)
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _folder() -> Iterator[Path]:
    made = tempfile.mkdtemp(prefix="server-", dir=_disk())
    os.chmod(made, 0o755)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _disk() -> str | None:
    """Where the files are, unless the server's user may not go there."""
    disk = os.environ.get("BENCH_DISK")
    return disk if disk and os.stat(disk).st_mode & 0o001 else None


def _program(name: str, pattern: str = "") -> str:
    found = sorted(glob(pattern), key=lambda path: int(path.split("/")[4])) if pattern else []
    program = found[-1] if found else shutil.which(name)
    if program is None:
        raise SystemExit(f"{name} is not installed")
    return program


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
