"""Tells which daemons that share a store are alive. Each locks a small file beside the store's; the system unlocks it when
the daemon dies.

Relies on no clock and on no process number, which another process may have by now. The lock is the operating system's. The
file's name holds the daemon's owner id.
"""

from __future__ import annotations

import os
import sys
from typing import final


@final
class OwnerLock:
    """A new owner id, locked until `release` or the end of the process. Raises `OSError`.

    Other daemons look for the lock file only once the owner id is in the store.
    """

    def __init__(self, store_path: str) -> None:
        self.owner_id = os.urandom(8).hex()
        self._path = _lock_path(store_path, self.owner_id)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            lock(self._fd)
        except OSError:
            _remove(self._path, self._fd)
            raise

    def release(self) -> None:
        """Unlock and remove the file."""
        _remove(self._path, self._fd)


def is_alive(store_path: str, owner_id: str) -> bool:
    """Whether the daemon with this owner id is alive; True if that can't be told. Removes the lock file of a dead one."""
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
