"""The daemons of a chaos run as processes: started, killed, stopped, and started again where they end by themselves."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Final, Literal

import msgspec

from ..programs import DISCREET, environment

HERE: Final = Path(__file__).parent
KEEP_ALIVE_SECONDS: Final = 1
AGAIN_SECONDS: Final = 0.5
"""Between an end by itself and the next start, as a supervisor waits."""

Role = Literal["both", "front", "worker"]


class DaemonExit(msgspec.Struct, frozen=True):
    """A daemon that ended without being asked to, and the last lines of its log."""

    at: float
    name: str
    status: int
    log: str


class Daemon:
    """One of them: where it listens, its process, and all pids that it has had."""

    def __init__(self, folder: Path, name: str, port: int, arguments: list[str]) -> None:
        self.name = name
        self.port = port
        self.log = folder / f"{name}.log"
        self.pids: list[int] = []
        self.wanted = True
        self.exits: list[DaemonExit] = []
        self._arguments = arguments
        self._runs = str(folder / "runs")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.wanted = True
        output: IO[bytes]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*DISCREET, "serve", *self._arguments],
                cwd=HERE,
                env=environment(CHAOS_RUNS=self._runs),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
            )
        self.pids.append(self._process.pid)

    def send(self, number: signal.Signals) -> None:
        """To the process, if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    async def end(self, number: signal.Signals, seconds: float = 60.0) -> None:
        """By this signal, and by SIGKILL if that takes too long."""
        self.wanted = False
        self.send(number)
        deadline = time.monotonic() + seconds
        while self._process is not None and self._process.poll() is None:
            if time.monotonic() > deadline:
                self.exits.append(DaemonExit(time.time(), self.name, -9999, f"did not end within {seconds:.0f} s"))
                self._process.kill()
            await asyncio.sleep(0.01)

    async def supervise(self) -> None:
        """Starts it again, for ever, where it ended although it is wanted."""
        while True:
            if self.wanted and self._process is not None and (status := self._process.poll()) is not None:
                lines = self.log.read_text(errors="replace").splitlines()
                self.exits.append(DaemonExit(time.time(), self.name, status, "\n".join(lines[-12:])))
                await asyncio.sleep(AGAIN_SECONDS)
                if self.wanted:
                    self.start()
            await asyncio.sleep(0.05)

    def kill(self) -> None:
        """At the very end, also of one that is stopped."""
        self.wanted = False
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()


def arguments(app: str, store: str, port: int, role: Role, max_runs: int) -> list[str]:
    """What follows `discreet serve`."""
    roles = [] if role == "both" else ["--role", role, "--max-runs", str(max_runs)]
    listening = [
        "--http",
        f"127.0.0.1:{port}",
        "--http-open",
        "--http-keep-alive",
        str(KEEP_ALIVE_SECONDS),
        "--no-stdio",
    ]
    limits = ["--http-max-connections", "8192", "--http-max-requests", "8192"]
    return [f"./agent_app.py:{app}", "--store", store, *listening, *limits, *roles]
