"""Ends processes that an app forks off the daemon. A fork is a second daemon with the same stdin and stdout, in the middle of a
handler: it must read nothing, answer nothing, and end when its handler does.
"""

from __future__ import annotations

import os
import signal
from _thread import LockType, allocate_lock, start_new_thread  # not `threading`, which waits for each thread to begin
from contextlib import suppress
from typing import Final, NoReturn

from ...framing import stdio_guard
from .signals import ENDING

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


def leave(exc: BaseException | None = None) -> NoReturn:
    """End the fork, whose handler has ended, or waits for a loop that is not its own. Its status is that of `sys.exit`."""
    with suppress(Exception):
        stdio_guard.flush_text_streams()
    if isinstance(exc, SystemExit):
        os._exit(exc.code if isinstance(exc.code, int) else int(exc.code is not None))
    os._exit(0 if exc is None else _UNCAUGHT)
