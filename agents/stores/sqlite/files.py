"""Checks the store's files: who may read them, and whether they are still the ones that were opened. Never reads a task.

SQLite keeps the last commits in a file `-wal` beside the store's, and its index `-shm`. If one of them is removed while it is
open, everything works until the process dies; then the commits are gone.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from typing import Final, final

from ....daemon.logs import ConfiguredPath, log
from ..interface import StoreError

_SUFFIXES: Final = ("", "-wal", "-shm")
_WAL_MAGIC: Final = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
"""How a log begins that holds a commit (SQLite's file format, section 4.1)."""

_FileId = tuple[int, int]


def create_private(path: str) -> None:
    """Create the file for this user alone, because conversations are private. SQLite gives its side files the same mode.

    An existing file is not opened here: closing it would release the locks that SQLite holds on it in this process (POSIX).
    """
    if not os.path.isfile(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def check_kinds(path: str) -> None:
    """Raises `StoreError` if one of the files exists and is none: a device, a pipe, a folder, a link. Touches nothing.

    SQLite would open a device, and leave a journal beside it. No link stands at `path`, which is a real path.
    """
    for suffix in (*_SUFFIXES, "-journal"):
        try:
            mode = os.lstat(path + suffix).st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode):
            raise StoreError(f"{path}{suffix} is no regular file")


def find_open_to_others(path: str) -> Sequence[tuple[str, int]]:
    """The existing files that other users may use, and their modes. Raises `StoreError` if they are another user's."""
    if sys.platform == "win32":
        return ()
    found: list[tuple[str, int]] = []
    for suffix in _SUFFIXES:
        try:
            status = os.lstat(path + suffix)
        except FileNotFoundError:
            continue
        mode = stat.S_IMODE(status.st_mode)
        if not mode & 0o077:
            continue
        if status.st_uid != os.geteuid():
            raise StoreError(f"{path}{suffix} belongs to another user, and not only that one may use it")
        found.append((path + suffix, mode))
    return found


def make_private(path: str) -> None:
    """Take every permission of other users away from the files. They are known to be a store's. Raises `StoreError`."""
    for file, mode in find_open_to_others(path):
        os.chmod(file, mode & ~0o077)
        log.warning("store.permissions", path=ConfiguredPath(file), mode=f"{mode:04o}")


@final
class StoreFiles:
    """The files as they were opened. Raises `OSError` if one is missing. Once one of them is lost, they all stay lost."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ids = {suffix: _file_id(path + suffix) for suffix in _SUFFIXES}
        self._lost: str | None = None

    def check(self) -> None:
        """Raises `StoreError` if a file was removed, replaced or emptied: what is written now would be lost.

        To be called before a commit, and again before the commit is acknowledged.
        """
        repeated = self._lost is not None
        if not repeated:
            self._lost = self._find_lost()
        if self._lost is not None:
            raise StoreError(self._lost, repeated=repeated)

    def check_commit(self) -> None:
        """Check the files after a commit, which has left its beginning in the log."""
        self.check()
        with open(f"{self._path}-wal", "rb", buffering=0) as file:
            is_log = file.read(4) in _WAL_MAGIC
        if not is_log:
            self._lost = f"{self._path}-wal was overwritten; nothing more is stored until a restart"
            raise StoreError(self._lost)

    @property
    def only_log_removed(self) -> bool:
        """Whether the store's own file is still there, and no other log was begun for it."""
        return _same(self._path, self._ids[""]) and not os.path.lexists(f"{self._path}-wal")

    def _find_lost(self) -> str | None:
        for suffix, file_id in self._ids.items():
            if not _same(self._path + suffix, file_id):
                return f"{self._path}{suffix} was removed or replaced; nothing more is stored until a restart"
        return None


def _same(path: str, file_id: _FileId) -> bool:
    try:
        return _file_id(path) == file_id
    except FileNotFoundError:
        return False


def _file_id(path: str) -> _FileId:
    status = os.stat(path)
    return status.st_dev, status.st_ino
