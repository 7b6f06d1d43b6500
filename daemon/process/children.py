"""Ends the processes that handlers started and left running.

On Linux these are our descendants, and every process that inherited our mark: an environment variable that `mark_children`
sets. A process that detached itself (setsid, and its parent ended) is no descendant any more but still has the mark, unless
it was started with another environment. Elsewhere nobody lists them, and handlers must end the processes that they start.

Rejected: PR_SET_CHILD_SUBREAPER, which makes detached processes our children. Their zombies would be ours to collect, and
nothing tells them from children whose status a handler still waits for.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from time import monotonic, sleep, time_ns
from typing import Final

POLL_SECONDS: Final = 0.01

MARK: Final = "_DISCREET_PROCESS"
"""Holds the number of a daemon's process and the time of its start, so that a reused number is another mark."""


def mark_children() -> None:
    """Have all processes that are started from now on inherit our mark. A program that replaced itself keeps it."""
    if not os.environ.get(MARK, "").startswith(f"{os.getpid()}:"):
        os.environ[MARK] = f"{os.getpid()}:{time_ns()}"


def end_children(grace: float) -> int:
    """Ask every descendant to end, wait up to `grace` seconds, then kill what is left. Returns how many there were."""
    pids = descendants(os.getpid())
    detached = _detached() if pids or _had_children() else []
    if not (pids or detached):
        return 0
    _signal_all([*pids, *detached], signal.SIGTERM)
    deadline = monotonic() + grace
    while (descendants(os.getpid()) or any(map(_is_marked, detached))) and monotonic() < deadline:
        _reap(pids)
        sleep(POLL_SECONDS)
    if sys.platform != "win32":
        _signal_all([*descendants(os.getpid()), *filter(_is_marked, detached)], signal.SIGKILL)
    return len({*pids, *detached})


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


def _had_children() -> bool:
    """Whether a child of ours has ever been waited for: whoever detaches a process starts one that ends."""
    if sys.platform != "linux":
        return False
    from resource import RUSAGE_CHILDREN, getrusage

    return getrusage(RUSAGE_CHILDREN).ru_maxrss > 0


def _detached() -> list[int]:
    """All other processes with our mark."""
    with suppress(OSError):
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if pid != os.getpid() and _is_marked(pid)]
    return []


def _is_marked(pid: int) -> bool:
    """Whether this process runs and was started with our mark. Those of other users can't be read."""
    mark = os.environ.get(MARK)
    if mark is None:
        return False
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environment:
        return f"{MARK}={mark}".encode() in environment.read().split(b"\0")
    return False


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
