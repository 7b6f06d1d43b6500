"""A Redis server for tests: in a temporary folder, on loopback."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, Final

from .postgres import free_port
from .requirements import missing
from .waits import wait_until

_numbers: Final = count()


@cache
def _program() -> str:
    """Skips the test where there is no server, and where redis-py is missing."""
    from importlib.util import find_spec

    if find_spec("redis") is None:
        missing("redis-py is not installed")
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        missing("redis-server is not installed")
    return program


class Server:
    """One process, and its folder. It writes everything to its append-only file, as `options` say."""

    def __init__(self, folder: str, *options: str, port: int | None = None) -> None:
        self.folder = folder
        self.port = free_port() if port is None else port
        self._options = options
        self.process: subprocess.Popen[bytes]
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        self.process = subprocess.Popen(
            [
                _program(),
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", ""),
                *("--appendonly", "yes", "--appendfsync", "everysec", *self._options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        found = subprocess.run(
            ["redis-cli", "-p", str(self.port), "PING"], capture_output=True, check=False, text=True
        ).stdout
        return "PONG" in found or "NOAUTH" in found or "closed" in found

    def kill(self) -> None:
        """As a crash does."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """As after a crash: nobody is told."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """It keeps its connections and answers no more, until `go_on`."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def url(self, prefix: str = "discreet") -> str:
        return f"redis://127.0.0.1:{self.port}/0?prefix={prefix}"

    def new_store(self) -> str:
        """The URL of an empty store."""
        return self.url(f"s{next(_numbers)}")

    def client(self) -> Any:  # Any: redis-py may not be installed
        import redis

        return redis.Redis(port=self.port, socket_timeout=30)


@contextmanager
def running_server(*options: str) -> Iterator[Server]:
    """One for the block. Skips the test where Redis or redis-py is not installed."""
    _program()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = Server(folder, *options)
        try:
            yield server
        finally:
            server.kill()
