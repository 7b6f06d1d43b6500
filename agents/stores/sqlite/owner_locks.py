"""Tells which daemons that share a store are alive, by a small file of each beside the store's.

Each daemon locks its file; the system unlocks it when the daemon dies. Each also sets the times of its file every second,
which a stopped daemon (SIGSTOP) does not. Compares no clocks and no process numbers, which another process may have by now.
The file's name holds the daemon's owner id. Its access time is only there to change; its modification time is the daemon's
clock.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, final

BEAT_SECONDS: Final = 1.0

TIMEOUT_SECONDS: Final = 10.0
"""A daemon that has not beaten for so long counts as dead, though it still has its lock."""

PAUSE_SECONDS: Final = 5.0
"""A daemon that has not looked at the others for so long may have been stopped itself, and they with it."""

FENCE_SECONDS: Final = 7.0
"""A daemon that could not beat for so long takes its own tasks for lost: less than the others wait."""


@final
class OwnerLock:
    """A new owner id, locked until `release` or the end of the process. Raises `OSError`.

    Other daemons look for the lock file only once the owner id is in the store.
    """

    def __init__(self, store_path: str) -> None:
        self.store_path = store_path
        self.owner_id = os.urandom(8).hex()
        self._path = _lock_path(store_path, self.owner_id)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            lock(self._fd)
        except OSError:
            _remove(self._path, self._fd)
            raise

    def beat(self, now: float) -> None:
        """`now` is in seconds since 1970, by this daemon's clock. The file may be gone: then the daemon counts as dead."""
        with suppress(OSError):
            os.utime(self._path, ns=(time.monotonic_ns(), int(now * 1e9)))

    def release(self) -> None:
        """Unlock and remove the file."""
        _remove(self._path, self._fd)


@final
class Heartbeat:
    """Sends the heartbeats of this daemon from a thread, also while its event loop or its disk keeps others waiting."""

    def __init__(self, lock: OwnerLock, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._lock = lock
        self._clock = clock
        self._monotonic = monotonic
        self._last = monotonic()
        self._was_late = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="discreet-store-heartbeat", daemon=True)

    def start(self) -> None:
        """Raises `RuntimeError` if the system provides no thread."""
        self._lock.beat(self._clock())
        self._thread.start()

    @property
    def is_late(self) -> bool:
        """Whether this daemon was stopped for so long that others may have taken its tasks, and it has not looked since. Any
        thread may ask."""
        return self._was_late or self._monotonic() > self._last + FENCE_SECONDS

    @property
    def fence(self) -> float:
        """Until when no other daemon takes this one for dead, by the monotonic clock. Any thread may ask."""
        return -math.inf if self._was_late else self._last + FENCE_SECONDS

    def take_was_late(self) -> bool:
        """Whether it was; from now on it is not."""
        was_late, self._was_late = self.is_late, False
        self._last = self._monotonic() if was_late else self._last
        return was_late

    def beat_if_due(self) -> None:
        """The event loop does it, too, when it looks for changes: while it is busy, the thread may long wait for its turn."""
        if not self._stopping.is_set() and self._monotonic() > self._last + BEAT_SECONDS:
            self._beat()

    def _main(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            self._beat()

    def _beat(self) -> None:
        self._was_late = self.is_late
        self._last = self._monotonic()
        self._lock.beat(self._clock())

    def stop(self) -> None:
        """Before the lock is released."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()


@final
class HeartbeatMonitor:
    """Watches the heartbeats of other daemons. Used by one thread."""

    def __init__(self, store_path: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store_path = store_path
        self._monotonic = monotonic
        self._seen: dict[str, tuple[int, float]] = {}
        self._last_look = monotonic()

    def find_silent(self, owner_ids: Collection[str]) -> set[str]:
        """Return the daemons that have not beaten for `TIMEOUT_SECONDS`. Call it every second: after a longer pause, in which
        this daemon may have been stopped itself, their time begins anew."""
        now = self._monotonic()
        if now > self._last_look + PAUSE_SECONDS:
            self._seen.clear()
        self._last_look = now
        silent: set[str] = set()
        seen: dict[str, tuple[int, float]] = {}
        for owner_id in owner_ids:
            try:
                status = os.stat(_lock_path(self._store_path, owner_id))
            except OSError:
                continue
            before = self._seen.get(owner_id)
            seen[owner_id] = before if before and before[0] == status.st_atime_ns else (status.st_atime_ns, now)
            if now > seen[owner_id][1] + TIMEOUT_SECONDS:
                silent.add(owner_id)
        self._seen = seen
        return silent


def clock_of(store_path: str, owner_id: str) -> float | None:
    """Read the clock of a living daemon as of its last beat, in seconds since 1970; None if that can't be told."""
    try:
        return os.stat(_lock_path(store_path, owner_id)).st_mtime if is_alive(store_path, owner_id) else None
    except OSError:
        return None


def is_alive(store_path: str, owner_id: str) -> bool:
    """Whether the daemon with this owner id is there; True if that can't be told. Removes the lock file of a dead one."""
    path = _lock_path(store_path, owner_id)
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:  # another user's daemon, or this process can open no more files
        return True
    try:
        lock(fd)
    except OSError:
        os.close(fd)
        return True
    _remove(path, fd)
    return False


def _lock_path(store_path: str, owner_id: str) -> str:
    return f"{store_path}-daemon-{owner_id}"


if sys.platform == "win32":
    import msvcrt

    def lock(fd: int) -> None:
        """Lock an open file for this process. Raises `OSError` if another process holds the lock."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _remove(path: str, fd: int) -> None:
        """Windows removes no open file: if another process has opened it meanwhile, it stays.

        Unlocked first: of a file that is closed with a lock, the system says only that it is unlocked some time later.
        """
        try:
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        except OSError:  # another process holds the lock
            pass
        os.close(fd)
        try:
            os.unlink(path)
        except OSError:
            pass

else:
    import fcntl

    def lock(fd: int) -> None:
        """Lock an open file. Raises `OSError` if it is locked already. Child programs do not inherit the descriptor."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _remove(path: str, fd: int) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        os.close(fd)
