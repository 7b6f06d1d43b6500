"""An open directory on Linux, macOS and the BSDs: every name is opened relative to a descriptor, never by path.

Because a descriptor stays with its directory whatever happens to the names above it, and O_NOFOLLOW refuses a
symbolic link in the same system call that opens, there is no moment between a check and a use. Python offers no
`openat2`; one `openat` per name gives what its RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS would.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Self, final

from .directory import Facts
from .types import Kind

# O_PATH (Linux) asks for no read permission on the way; elsewhere a directory has to be readable to be passed.
_PASS: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_ENTER = _PASS | os.O_NOFOLLOW
_SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK and O_NOCTTY matter only if a FIFO or terminal takes a file's place between `facts` and `open`.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# What O_NOFOLLOW answers at a symbolic link: ENOTDIR beside O_DIRECTORY on Linux, EMLINK on FreeBSD, else ELOOP.
_MAYBE_LINK = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EMLINK})

_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
_NOT_REGULAR = {stat.S_IFDIR: errno.EISDIR, stat.S_IFLNK: errno.ELOOP}
_PERMISSION_BITS = 0o777


def open_top(path: str) -> PosixDirectory:
    """Open the root itself; the operator named it, so symbolic links in `path` are followed. Raises `OSError`."""
    return PosixDirectory(os.open(path, _PASS))


@final
class PosixDirectory:
    """A `Directory` on a descriptor that it owns."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def enter(self, name: str) -> PosixDirectory:
        try:
            return PosixDirectory(os.open(name, _ENTER, dir_fd=self._fd))
        except OSError as error:
            if error.errno in _MAYBE_LINK:
                raise self._why_no_directory(name) from error
            raise

    def open_file(self, name: str) -> int:
        return self._open_regular(name, os.O_RDONLY)

    def facts(self, name: str) -> Facts:
        return _facts(self._stat(name))

    def names(self) -> Iterator[str]:
        # Opened anew: a descriptor's place in the listing is shared by everyone who lists through it.
        fd = os.open(".", _SCAN, dir_fd=self._fd)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    yield entry.name
        finally:
            os.close(fd)

    def replace(self, name: str, data: bytes, *, create: bool) -> tuple[Facts, bool]:
        permissions = self._permissions(name)
        if create and permissions is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        temporary = f".discreet-{os.urandom(8).hex()}"
        try:
            facts = self._write_new(temporary, data, permissions)
            if create:  # a link, unlike a rename, fails where someone else was quicker
                os.link(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)
            else:
                os.rename(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._fd)
        self._sync()
        return facts, permissions is None

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def _why_no_directory(self, name: str) -> OSError:
        """The reason for the caller only; what is there by now may differ from what refused to open."""
        mode = self._stat(name).st_mode
        swapped = stat.S_ISLNK(mode) or stat.S_ISDIR(mode)
        reason = errno.ELOOP if swapped else errno.ENOTDIR
        return OSError(reason, os.strerror(reason))

    def _open_regular(self, name: str, access: int) -> int:
        # Looked at first, because opening alone can wake a FIFO's writer or start a device; and once more after.
        _require_regular(self._stat(name).st_mode)
        fd = os.open(name, access | _FILE, dir_fd=self._fd)
        try:
            _require_regular(os.fstat(fd).st_mode)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _permissions(self, name: str) -> int | None:
        """The permission bits of the file to be replaced, None where there is none.

        Opening it for writing asks the system whether its content may be changed: a rename alone would not.
        """
        try:
            fd = self._open_regular(name, os.O_WRONLY)
        except FileNotFoundError:
            return None
        try:
            return stat.S_IMODE(os.fstat(fd).st_mode) & _PERMISSION_BITS
        finally:
            os.close(fd)

    def _write_new(self, name: str, data: bytes, permissions: int | None) -> Facts:
        # A replacement is private until it has the old file's permissions; a new file has those of the umask.
        fd = os.open(name, _NEW, 0o666 if permissions is None else 0o600, dir_fd=self._fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if permissions is not None:
                os.fchmod(fd, permissions)
            os.fsync(fd)
            return _facts(os.fstat(fd))
        finally:
            os.close(fd)

    def _sync(self) -> None:
        # The new content is in place and complete; that its name survives a power cut is asked for, not promised.
        with suppress(OSError):
            fd = os.open(".", _SCAN, dir_fd=self._fd)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _facts(found: os.stat_result) -> Facts:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return Facts(kind, found.st_size if kind == "file" else 0, found.st_mtime_ns)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        reason = _NOT_REGULAR.get(stat.S_IFMT(mode), errno.ENXIO)
        raise OSError(reason, os.strerror(reason))
