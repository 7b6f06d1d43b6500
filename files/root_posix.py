"""An open directory on Linux, macOS and the BSDs: every name is opened relative to a descriptor, never by path.

A descriptor stays with its directory whatever happens to the names above it, and O_NOFOLLOW refuses a symbolic link in
the same system call that opens: there is no race between check and use. Python has no `openat2`; one `openat` per name
does the same as its RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Self, final

from .directory import FileInfo
from .types import FileKind

# O_PATH (Linux) needs no read permission for a directory on the way; other systems do.
_OPEN_ROOT: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_OPEN_DIRECTORY = _OPEN_ROOT | os.O_NOFOLLOW
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK and O_NOCTTY matter only if a FIFO or terminal takes a file's place between `stat` and `open`.
_OPEN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# The errno of O_NOFOLLOW at a symbolic link: ENOTDIR beside O_DIRECTORY on Linux, EMLINK on FreeBSD, else ELOOP.
_MAYBE_LINK = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EMLINK})

_KINDS: dict[int, FileKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
_NOT_REGULAR = {stat.S_IFDIR: errno.EISDIR, stat.S_IFLNK: errno.ELOOP}
_PERMISSION_BITS = 0o777


def open_root(path: str) -> PosixDirectory:
    """Open the root itself; the operator named it, so symbolic links in `path` are followed. Raises `OSError`."""
    return PosixDirectory(os.open(path, _OPEN_ROOT))


@final
class PosixDirectory:
    """A `Directory` on a descriptor that it owns."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def open_directory(self, name: str) -> PosixDirectory:
        try:
            return PosixDirectory(os.open(name, _OPEN_DIRECTORY, dir_fd=self._fd))
        except OSError as error:
            if error.errno in _MAYBE_LINK:
                raise self._directory_error(name) from error
            raise

    def open_file(self, name: str) -> int:
        return self._open_regular(name, os.O_RDONLY)

    def info(self, name: str) -> FileInfo:
        return _info(self._stat(name))

    def list_names(self) -> Iterator[str]:
        # Opened anew: all who list through one descriptor share its position.
        fd = os.open(".", _LIST, dir_fd=self._fd)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    yield entry.name
        finally:
            os.close(fd)

    def write_file(self, name: str, data: bytes, *, create: bool) -> tuple[FileInfo, bool]:
        permissions = self._permissions(name)
        if create and permissions is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        temporary = f".discreet-{os.urandom(8).hex()}"
        try:
            info = self._write_new(temporary, data, permissions)
            if create:  # unlike a rename, a link fails if the name has been taken meanwhile
                os.link(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)
            else:
                os.rename(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._fd)
        self._sync()
        return info, permissions is None

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

    def _directory_error(self, name: str) -> OSError:
        """The error to report. The entry may have changed since it refused to open, so nothing else depends on this."""
        mode = self._stat(name).st_mode
        swapped = stat.S_ISLNK(mode) or stat.S_ISDIR(mode)
        reason = errno.ELOOP if swapped else errno.ENOTDIR
        return OSError(reason, os.strerror(reason))

    def _open_regular(self, name: str, access: int) -> int:
        # Checked before, because opening alone can wake a FIFO's writer or start a device; and again after.
        _require_regular(self._stat(name).st_mode)
        fd = os.open(name, access | _OPEN_FILE, dir_fd=self._fd)
        try:
            _require_regular(os.fstat(fd).st_mode)
        except OSError:
            os.close(fd)
            raise
        return fd

    def _permissions(self, name: str) -> int | None:
        """The permission bits of the file to be replaced; None if there is none.

        Opening it for writing checks the permission to change its content, which a rename alone would not.
        """
        try:
            fd = self._open_regular(name, os.O_WRONLY)
        except FileNotFoundError:
            return None
        try:
            return stat.S_IMODE(os.fstat(fd).st_mode) & _PERMISSION_BITS
        finally:
            os.close(fd)

    def _write_new(self, name: str, data: bytes, permissions: int | None) -> FileInfo:
        # A replacement is private until it gets the old file's permissions; a new file has those of the umask.
        fd = os.open(name, _NEW_FILE, 0o666 if permissions is None else 0o600, dir_fd=self._fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if permissions is not None:
                os.fchmod(fd, permissions)
            os.fsync(fd)
            return _info(os.fstat(fd))
        finally:
            os.close(fd)

    def _sync(self) -> None:
        # The new content is complete. That its name survives a power cut is attempted, not guaranteed.
        with suppress(OSError):
            fd = os.open(".", _LIST, dir_fd=self._fd)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _info(found: os.stat_result) -> FileInfo:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return FileInfo(kind, found.st_size if kind == "file" else 0, found.st_mtime_ns)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        reason = _NOT_REGULAR.get(stat.S_IFMT(mode), errno.ENXIO)
        raise OSError(reason, os.strerror(reason))
