"""Kills a server's process group when this process dies, even by SIGKILL.

A small shell process waits at the end of a pipe. If the pipe closes without a message, it kills the group.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

GRACE_SECONDS: Final = 1
"""How long the server may go on after this process died, which ended its input, before it is killed."""

_SCRIPT: Final = f'read -r group || exit 0; read -r done || {{ sleep {GRACE_SECONDS}; kill -s KILL -- "-$group"; }}'


@contextmanager
def orphan_guard() -> Iterator[Callable[[int], None]]:
    """Yields a function; call it once with a process group. If this process dies within the block, the group is killed.

    Does nothing on Windows, which has no process groups, and where there is no shell.
    """
    guard = _start()
    if guard is None:
        yield lambda _: None
        return
    pipe, process = guard
    try:
        yield lambda group: _send(pipe, b"%d\n" % group)
    finally:
        _send(pipe, b"done\ndone\n")  # without a group, the first line is read as the group and the second as the end
        os.close(pipe)
        process.wait()


def _start() -> tuple[int, subprocess.Popen[bytes]] | None:
    if sys.platform == "win32":
        return None
    reader, writer = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to this process's group must not end the guard
        )
    except OSError:
        os.close(writer)
        return None
    finally:
        os.close(reader)
    return writer, process


def _send(fd: int, line: bytes) -> None:
    try:
        os.write(fd, line)
    except OSError:
        return  # the guard process was killed
