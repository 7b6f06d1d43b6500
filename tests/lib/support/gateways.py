"""A daemon in a process of its own that serves HTTP, until a test ends."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .programs import environment
from .waits import DEADLINE_SECONDS


@contextmanager
def http_daemon(folder: Path, app: str, *options: str, address: str = "127.0.0.1:0") -> Iterator[str]:
    """The URL where `discreet serve` listens that hosts this app; `unix:PATH` for a unix socket. It starts in the folder."""
    serve = [sys.executable, "-P", "-m", "discreet", "serve", app, "--http", address, "--no-stdio"]
    with subprocess.Popen(
        [*serve, "--drain-timeout", "0.1", *options],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as daemon:
        try:
            assert daemon.stderr is not None
            found = None
            while found is None:
                line = daemon.stderr.readline()
                assert line, "the daemon ended"
                found = re.search(r"http\.listening.*?((?:http|unix)[^\s\"]+)", line)
            yield found[1]
        finally:
            daemon.terminate()
            daemon.communicate(timeout=DEADLINE_SECONDS)
