"""Opens and finds the sockets of debuggers: a Unix socket for each process, in a folder that only its user may enter.

The folder's name is fixed, since an editor may give the daemon another environment than a person's shell has.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Final

from ..daemon.process.liveness import exists

SUFFIX: Final = ".debug"
LOCK_SUFFIX: Final = ".attached"
"""The file that who has attached keeps locked: one at a time."""


class SocketUnusable(Exception):
    """There can be no such socket; the text says why, in one line."""


def listen() -> socket.socket:
    """A socket on which `connect` reaches this process. Raises `SocketUnusable`."""
    folder = _folder()
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        _require_private(folder)
        for pid in listening():
            if not exists(pid):
                _unlink(pid)
        _unlink(os.getpid())  # of a process that had this number before
        found = socket.socket(socket.AF_UNIX)
        found.bind(_path(os.getpid()))
        os.chmod(_path(os.getpid()), 0o600)
        found.listen()
    except OSError as exc:
        raise SocketUnusable(f"{folder} can't be used: {exc.strerror}") from None
    return found


def remove() -> None:
    """Remove the socket of this process."""
    with suppress(OSError):
        _unlink(os.getpid())


def listening() -> list[int]:
    """The numbers of the processes that have such a socket. They may have died. Raises `SocketUnusable`."""
    try:
        names = os.listdir(_folder())
    except OSError:
        return []
    return sorted(
        int(name[: -len(SUFFIX)]) for name in names if name.endswith(SUFFIX) and name[: -len(SUFFIX)].isdecimal()
    )


def connect(pid: int) -> socket.socket:
    """Connect to the debugger of this process. No other client can until the caller's process ends.

    Raises `SocketUnusable`, also if a client is attached already, and `OSError` if nothing listens.
    """
    _require_private(_folder())
    _lock(pid)
    found = socket.socket(socket.AF_UNIX)
    try:
        found.connect(_path(pid))
    except BaseException:
        found.close()
        raise
    return found


def _lock(pid: int) -> None:
    """Keep others out until this process ends."""
    import fcntl  # late: not on every system

    os.stat(_path(pid))
    lock = os.open(_path(pid, LOCK_SUFFIX), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise SocketUnusable(f"somebody is attached to {pid}, and only one can be") from None


def _folder() -> str:
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "getuid"):
        raise SocketUnusable("this system has no Unix sockets for Python")
    return f"/tmp/discreet-{os.getuid()}"


def _path(pid: int, suffix: str = SUFFIX) -> str:
    return f"{_folder()}/{pid}{suffix}"


def _unlink(pid: int) -> None:
    for suffix in (SUFFIX, LOCK_SUFFIX):
        with suppress(FileNotFoundError):
            os.unlink(_path(pid, suffix))


def _require_private(folder: str) -> None:
    """Raise for a folder that other users may enter: a client of the socket runs code as this user."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise SocketUnusable(f"{folder} must be a folder of yours that no other user may enter (mode 0700)")
