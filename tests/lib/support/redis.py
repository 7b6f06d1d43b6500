"""A Redis server for tests: in a temporary folder, on loopback."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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


class EndedError(Exception):
    """The server has ended, mostly since its port was taken."""


class Server:
    """One process, and its folder. It writes everything to its append-only file, as `options` say.

    `find_port` is asked again where another program has taken the port meanwhile.
    """

    def __init__(self, folder: str, *options: str, find_port: Callable[[], int] = free_port) -> None:
        self.folder = folder
        self._options = options
        self.process: subprocess.Popen[bytes]
        for tries_left in (2, 1, 0):
            self.port = find_port()
            try:
                self.start()
                return
            except EndedError:
                if not tries_left:
                    raise

    def start(self) -> None:
        """Returns when it answers."""
        self.process = subprocess.Popen(
            [
                _program(),
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", ""),
                *(
                    "--appendonly",
                    "yes",
                    "--appendfsync",
                    "everysec",
                    "--repl-diskless-sync-delay",
                    "0",
                    *self._options,
                ),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers)

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise EndedError("the server has ended")
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

    def ask(self, *command: str) -> str:
        """What redis-cli says."""
        program = ["redis-cli", "-p", str(self.port), *command]
        return subprocess.run(program, capture_output=True, check=True, text=True).stdout


@contextmanager
def running_cluster() -> Iterator[list[Server]]:
    """Three nodes, each with a third of the slots; and a replica of the first one."""
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0")
    with ExitStack() as stack:
        nodes = [stack.enter_context(running_server(*options, find_port=_cluster_port)) for _ in range(4)]
        for n, node in enumerate(nodes[:3]):
            node.ask("CLUSTER", "ADDSLOTS", *map(str, range(16384 * n // 3, 16384 * (n + 1) // 3)))
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", str(n + 1))
        for node in nodes[1:]:
            nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", str(node.port))
        wait_until(lambda: all("cluster_known_nodes:4" in node.ask("CLUSTER", "INFO") for node in nodes))
        nodes[3].ask("CLUSTER", "REPLICATE", nodes[0].ask("CLUSTER", "MYID").strip())
        wait_until(lambda: all("cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in nodes))
        wait_until(lambda: "master_link_status:up" in nodes[3].ask("INFO", "replication"))
        yield nodes


def _cluster_port() -> int:
    """Nodes talk to each other at a port that is larger by 10,000."""
    return next(port for port in iter(free_port, None) if port < 55_000)


@contextmanager
def running_server(*options: str, find_port: Callable[[], int] = free_port) -> Iterator[Server]:
    """One for the block. Skips the test where Redis or redis-py is not installed."""
    _program()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        server = Server(folder, *options, find_port=find_port)
        try:
            yield server
        finally:
            server.kill()
