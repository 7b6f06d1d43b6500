"""Threads while the system may refuse one: whether there are any to spare, and a lock for those who rely on it."""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread  # not `threading`, which waits for each thread to begin
from typing import Final

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
