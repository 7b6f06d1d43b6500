"""Starts daemons that serve the agent of these measurements by HTTP."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from servers import free_port, listens
from stdio_machine import cpu_clock

BENCH = Path(__file__).parent.parent
SERVE = (
    "-P -m discreet serve ./agents_app.py:agent --no-stdio --backend asyncio --log-level error"
    " --http-max-connections 1000 --http-max-requests 1000"
)


class Daemon(NamedTuple):
    port: int
    pid: int

    def cpu(self) -> float:
        """CPU seconds."""
        return cpu_clock([self.pid])


@contextmanager
def daemon(store: str, *options: str) -> Iterator[Daemon]:
    """`discreet serve` with the agent of these measurements, when it listens."""
    port = free_port()
    command = [sys.executable, *SERVE.split(), "--http", f"127.0.0.1:{port}", "--store", store, *options]
    process = subprocess.Popen(command, cwd=BENCH, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command}: it does not listen")
            time.sleep(0.05)
        yield Daemon(port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
