"""Sees to it that a server does not outlive this process, even when this process is killed and can do nothing more.

A small process of its own holds the end of a pipe. When the pipe ends without a word, it kills the server's group.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

GRACE_SECONDS: Final = 1
"""How long a server has, whose input ended with this process, before it is killed."""

_SCRIPT: Final = f'read -r group || exit 0; read -r done || {{ sleep {GRACE_SECONDS}; kill -s KILL -- "-$group"; }}'


@contextmanager
def guarded() -> Iterator[Callable[[int], None]]:
    """While entered, a process group that is named to it, once, is killed if this process dies. Leaving lets go of it.

    Where there are no groups to kill (Windows), or no shell, nothing is done.
    """
    guard = _start()
    if guard is None:
        yield lambda _: None
        return
    ours, process = guard
    try:
        yield lambda group: _tell(ours, b"%d\n" % group)
    finally:
        _tell(ours, b"done\ndone\n")  # a group that was never named is none
        os.close(ours)
        process.wait()


def _start() -> tuple[int, subprocess.Popen[bytes]] | None:
    if sys.platform == "win32":
        return None
    theirs, ours = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # whoever kills this process's group must not hit it
        )
    except OSError:
        os.close(ours)
        return None
    finally:
        os.close(theirs)
    return ours, process


def _tell(fd: int, word: bytes) -> None:
    try:
        os.write(fd, word)
    except OSError:
        return  # somebody has killed the guard
