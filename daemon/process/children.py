"""Ends the processes that handlers started and left running.

On Linux these are our descendants, and every process that inherited our mark: an environment variable that `mark_children`
sets. A process that detached itself (setsid, and its parent ended) is no descendant any more but still has the mark, unless
it was started with another environment. Other systems list no descendants, and handlers must end the processes that they start.

Rejected: PR_SET_CHILD_SUBREAPER, which makes detached processes our children. Their zombies would be ours to collect, and
nothing tells them from children whose status a handler still waits for.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import LockType, allocate_lock, start_new_thread  # not `threading`, which waits for each thread to begin
from contextlib import suppress
from time import monotonic, sleep, time_ns
from typing import Final, NoReturn

from ...framing import stdio_guard
from .signals import ENDING

# Ends processes that an app forks off the daemon. A fork is a second daemon with the same stdin and stdout, in the middle of a
# handler: it must read nothing, answer nothing, and end when its handler does.


# Threads while the system may refuse one: whether there are any to spare, and a lock for those who rely on it.


PROBE_SECONDS: Final = 1.0
"""How long a thread may take to end. It ends at once; the bound is for a machine that has no memory left."""

starting: Final = allocate_lock()
"""Held while a thread is started, so that what `threads_to_spare` has found stays true until it is used."""


def threads_to_spare(count: int) -> bool:
    """Whether the system lets this process have so many more threads. Starts and ends them, to find out."""
    gate = allocate_lock()
    gate.acquire()
    ended: list[LockType] = []

    def wait(lock: LockType) -> None:
        with gate:
            lock.release()

    try:
        for _ in range(count):
            lock = allocate_lock()
            lock.acquire()
            start_new_thread(wait, (lock,))
            ended.append(lock)
    except (RuntimeError, MemoryError):
        pass
    gate.release()
    for lock in ended:
        lock.acquire(timeout=PROBE_SECONDS)
    return len(ended) == count


in_child = False
"""Whether this process is such a fork. Looked at where a handler has ended or waits."""

_UNCAUGHT: Final = 1


def guard_forks() -> None:
    """Take stdin and stdout from every process that is forked from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_enter_child)


def _enter_child() -> None:
    global in_child  # noqa: PLW0603 - one fact of the process, looked at on the way of every request
    in_child = True
    with suppress(OSError):
        stdio_guard.disown()
    for name in ENDING:  # ours tell the daemon
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(ValueError):
                signal.signal(number, signal.SIG_DFL)


def leave_child(exc: BaseException | None = None) -> NoReturn:
    """End the fork, whose handler has ended, or waits for a loop that is not its own. Its status is that of `sys.exit`."""
    with suppress(Exception):
        stdio_guard.flush_text_streams()
    if isinstance(exc, SystemExit):
        os._exit(exc.code if isinstance(exc.code, int) else int(exc.code is not None))
    os._exit(0 if exc is None else _UNCAUGHT)


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
    """Whether a child of ours has ever been waited for: detaching a process takes a child that ends."""
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
