"""Ends the processes that handlers started and left running.

Only Linux lists a process's children. Elsewhere handlers must end the processes that they start.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from time import monotonic, sleep
from typing import Final

POLL_SECONDS: Final = 0.01


def end_children(grace: float) -> int:
    """Ask every descendant to end, wait up to `grace` seconds, then kill what is left. Returns how many there were."""
    pids = descendants(os.getpid())
    if not pids:
        return 0
    _signal_all(pids, signal.SIGTERM)
    deadline = monotonic() + grace
    while descendants(os.getpid()) and monotonic() < deadline:
        _reap(pids)
        sleep(POLL_SECONDS)
    if sys.platform != "win32":
        _signal_all(descendants(os.getpid()), signal.SIGKILL)
    return len(pids)


def descendants(pid: int) -> list[int]:
    """The living children of a process and theirs, parents first. Empty where the platform does not tell."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                found += map(int, listing.read().split())
    return found


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def _reap(pids: list[int]) -> None:
    """Collect ended children, so that they stop counting as descendants."""
    if sys.platform != "win32":
        for pid in pids:
            with suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
