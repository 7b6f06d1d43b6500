"""Which daemons are alive: each holds a lock on a small file beside the store's, which the system frees when it dies.

No clock is asked, and no process number, which may be another's by now. The lock is the operating system's own; the file's
name is the daemon's among all that share the store.
"""

from __future__ import annotations

import os
import sys
from typing import final


@final
class Claim:
    """A name of one's own, for as long as this is not released and the process lives. Raises `OSError`.

    Nobody else looks for the file before the name stands in the store.
    """

    def __init__(self, path: str) -> None:
        self.owner = os.urandom(8).hex()
        self._file = _file(path, self.owner)
        self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            lock(self._fd)
        except OSError:
            _remove(self._file, self._fd)
            raise

    def release(self) -> None:
        _remove(self._file, self._fd)


def is_alive(path: str, owner: str) -> bool:
    """Whether the daemon of this name is there, as far as can be told. Removes what a dead one has left."""
    file = _file(path, owner)
    try:
        fd = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:  # another user's daemon, or no more files can be opened
        return True
    try:
        lock(fd)
    except OSError:
        os.close(fd)
        return True
    _remove(file, fd)
    return False


def _file(path: str, owner: str) -> str:
    return f"{path}-daemon-{owner}"


if sys.platform == "win32":
    import msvcrt

    def lock(fd: int) -> None:
        """Lock an open file for this process. Raises `OSError` where another has it."""
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _remove(file: str, fd: int) -> None:
        """What is open can't be removed there: where somebody has it open meanwhile, it stays."""
        os.close(fd)
        try:
            os.unlink(file)
        except OSError:
            pass

else:
    import fcntl

    def lock(fd: int) -> None:
        """Lock an open file. Raises `OSError` where it is locked already. Programs that are started don't hold the lock."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _remove(file: str, fd: int) -> None:
        try:
            os.unlink(file)
        except FileNotFoundError:
            pass
        os.close(fd)
