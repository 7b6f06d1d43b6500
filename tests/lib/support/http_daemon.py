"""A daemon that serves an app by HTTP, as a process of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .programs import DISCREET, environment
from .waits import DEADLINE_SECONDS

_LISTENING: Final = re.compile(r"event=http\.listening url=(\S+)")


@contextmanager
def http_daemon(app: str, folder: Path, *flags: str) -> Iterator[str]:
    """The URL of a daemon that serves this app, a path in `folder` and a name: `./app.py:agent`. Ends it with the block."""
    log = folder / "daemon.log"
    command = [*DISCREET, "serve", app, "--http", "127.0.0.1:0", "--no-stdio", *flags]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        try:
            assert process.stderr is not None
            for line in process.stderr:
                stderr.write(line)
                if found := _LISTENING.search(line.decode()):
                    yield found[1]
                    break
            else:
                stderr.flush()
                raise AssertionError(log.read_text())
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_SECONDS)
