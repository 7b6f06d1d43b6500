"""Where the debugger of a daemon is reached: a Unix socket for each process, in a folder that only its user may enter.

The folder's name is fixed, since an editor may give the daemon another environment than a person's shell has.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import Final

SUFFIX: Final = ".debug"


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
            if not _is_alive(pid):
                os.unlink(_path(pid))
        with suppress(FileNotFoundError):  # of a process that had this number before
            os.unlink(_path(os.getpid()))
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
        os.unlink(_path(os.getpid()))


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
    """A connection to the debugger of this process. Raises `SocketUnusable`, and `OSError` where nothing listens."""
    _require_private(_folder())
    found = socket.socket(socket.AF_UNIX)
    try:
        found.connect(_path(pid))
    except BaseException:
        found.close()
        raise
    return found


def _folder() -> str:
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "getuid"):
        raise SocketUnusable("this system has no Unix sockets for Python")
    return f"/tmp/discreet-{os.getuid()}"


def _path(pid: int) -> str:
    return f"{_folder()}/{pid}{SUFFIX}"


def _require_private(folder: str) -> None:
    """Whoever can reach the socket runs code as this user."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise SocketUnusable(f"{folder} must be a folder of yours that nobody else may enter (mode 0700)")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
