"""An open directory: reaches the names directly in it, and nothing else.

No method takes a path, follows a symbolic link, or ever opens a FIFO, socket or device. Faults are `OSError`s with a fixed
`errno`: ELOOP for a symbolic link on the way, EISDIR and ENXIO for what is not a regular file, ENOTDIR for what is not a
directory.

On Linux, macOS and the BSDs every name is opened relative to a descriptor, which stays with its directory whatever happens to
the names above it. O_NOFOLLOW refuses a symbolic link in the same system call that opens, so there is no race between check
and use. Windows opens by path only: there each name is checked just before it is opened.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NoReturn, Self, TypeAlias, final

import msgspec

from .types import FileKind

PathParts: TypeAlias = tuple[str, ...]
"""The names that lead from the root to an entry; empty for the root itself."""


class FileInfo(msgspec.Struct, frozen=True):
    """What a name stands for. `size` is in bytes, 0 for what is not a file; `modified` in ns since 1970 UTC."""

    kind: FileKind
    size: int
    modified: int


# O_PATH (Linux) needs no read permission for a directory on the way; other systems do.
_OPEN_ROOT: Final[int] = (
    getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
)
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN_DIRECTORY: Final = _OPEN_ROOT | _NO_FOLLOW
_LIST: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# O_NONBLOCK and O_NOCTTY matter only if a FIFO or terminal takes a file's place between `stat` and `open`.
_OPEN_FILE: Final[int] = _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW

# The errno of O_NOFOLLOW at a symbolic link: ENOTDIR beside O_DIRECTORY on Linux, EMLINK on FreeBSD, else ELOOP.
_MAYBE_LINK: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EMLINK})

_KINDS: Final[dict[int, FileKind]] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}
_NOT_REGULAR: Final = {"directory": errno.EISDIR, "symlink": errno.ELOOP, "other": errno.ENXIO}
_PERMISSION_BITS: Final = 0o777


@final
class Directory:
    """One open directory, which the receiver closes. Using it after `close` raises `OSError`."""

    __slots__ = ("_fd", "_path")

    def __init__(self, fd: int | None, path: str = "") -> None:
        self._fd = fd
        """None on Windows, where `_path` is the directory's."""
        self._path = path

    @staticmethod
    def open_root(path: str) -> Directory:
        """Open the root itself. The operator named it, so symbolic links in `path` are followed. Raises `OSError`."""
        if sys.platform != "win32":
            return Directory(os.open(path, _OPEN_ROOT))
        real = os.path.realpath(path)
        if not stat.S_ISDIR(os.stat(real).st_mode):
            _refuse(errno.ENOTDIR)
        # With this prefix no name means a device (`NUL`), and trailing dots and blanks stay.
        return Directory(None, real if real.startswith("\\\\") else f"\\\\?\\{real}")

    def open_directory(self, name: str) -> Directory:
        """Open the directory `name`; `.` opens this one again."""
        if self._fd is None:
            if self.info(name).kind != "directory":
                self._refuse_directory(name)
            return Directory(None, self._at(name))
        try:
            return Directory(os.open(name, _OPEN_DIRECTORY, dir_fd=self._fd))
        except OSError as error:
            if error.errno in _MAYBE_LINK:
                self._refuse_directory(name)
            raise

    def open_file(self, name: str) -> int:
        """Open the regular file `name` for reading and return its descriptor, which the caller closes."""
        return self._open_regular(name, os.O_RDONLY)

    def info(self, name: str) -> FileInfo:
        """Describe `name` itself: a symbolic link is described, not followed. `.` is this directory."""
        return _info(os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False))

    def list_names(self) -> Iterator[str]:
        """Yield every name except `.` and `..`, in no order. Bytes that are not UTF-8 come as lone surrogates."""
        # Opened anew: all who list through one descriptor share its position.
        fd = None if self._fd is None else os.open(".", _LIST, dir_fd=self._fd)
        try:
            with os.scandir(self._path if fd is None else fd) as entries:
                for entry in entries:
                    yield entry.name
        finally:
            if fd is not None:
                os.close(fd)

    def write_file(self, name: str, data: bytes, *, create: bool) -> tuple[FileInfo, bool]:
        """Make `name` a file that holds `data`, atomically. Returns the file's info and whether the file is new.

        With `create`, an existing `name` is left unchanged and `FileExistsError` raised. On any error the old file
        remains.
        """
        permissions = self._permissions(name)
        if create and permissions is not None:
            _refuse(errno.EEXIST)
        temporary = f".discreet-{os.urandom(8).hex()}"
        try:
            info = self._write_new(temporary, data, permissions)
            self._move(temporary, name, create=create)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._at(temporary), dir_fd=self._fd)
        self._sync()
        return info, permissions is None

    def close(self) -> None:
        """Release the directory. A second call does nothing."""
        fd = self._fd
        if fd is not None and fd >= 0:
            self._fd = -1
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _at(self, name: str) -> str:
        """What the system knows `name` by: relative to the descriptor, or on Windows the path."""
        if self._fd is not None:
            return name
        if ":" in name or "\\" in name:  # a colon would name an alternate data stream
            _refuse(errno.EINVAL)
        return self._path if name == "." else os.path.join(self._path, name)

    def _refuse_directory(self, name: str) -> NoReturn:
        """Say what refused to open. The entry may have changed since then, so nothing else depends on this."""
        _refuse(errno.ELOOP if self.info(name).kind in ("symlink", "directory") else errno.ENOTDIR)

    def _open_regular(self, name: str, access: int) -> int:
        # Checked before, because opening alone can wake a FIFO's writer or start a device; and again after.
        _require_regular(self.info(name))
        fd = os.open(self._at(name), access | _OPEN_FILE, dir_fd=self._fd)
        try:
            _require_regular(_info(os.fstat(fd)))
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
        fd = os.open(self._at(name), _NEW_FILE, 0o666 if permissions is None else 0o600, dir_fd=self._fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            if permissions is not None and sys.platform != "win32":
                os.fchmod(fd, permissions)
            os.fsync(fd)
            return _info(os.fstat(fd))
        finally:
            os.close(fd)

    def _move(self, temporary: str, name: str, *, create: bool) -> None:
        if self._fd is None:  # on Windows `rename` fails if the name is taken
            (os.rename if create else os.replace)(self._at(temporary), self._at(name))
        elif create:  # unlike a rename, a link fails if the name has been taken meanwhile
            os.link(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd, follow_symlinks=False)
        else:
            os.rename(temporary, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def _sync(self) -> None:
        # The new content is complete. That its name survives a power cut is attempted, not guaranteed.
        if self._fd is None:
            return
        with suppress(OSError):
            fd = os.open(".", _LIST, dir_fd=self._fd)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _info(found: os.stat_result) -> FileInfo:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    if getattr(found, "st_file_attributes", 0) & stat.FILE_ATTRIBUTE_REPARSE_POINT:
        kind = "symlink"  # on Windows also junctions, and every other reparse point
    return FileInfo(kind, found.st_size if kind == "file" else 0, found.st_mtime_ns)


def _require_regular(info: FileInfo) -> None:
    if info.kind != "file":
        _refuse(_NOT_REGULAR[info.kind])


def _refuse(reason: int) -> NoReturn:
    raise OSError(reason, os.strerror(reason))


def is_unicode(name: str) -> bool:
    """Whether `name` can be sent: False for names with bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def first_names(
    listed: Iterable[str], count: int, *, after: str | None = None, first: str | None = None
) -> tuple[list[str], int]:
    """The first `count` names, sorted, of those that sort after `after`, and at or after `first`; and how many of all
    names are not Unicode. No more than `count` names are in memory, however many are listed.
    """
    from heapq import nsmallest  # late: only listings need it

    skipped = 0

    def candidates() -> Iterator[str]:
        nonlocal skipped
        for name in listed:
            if not is_unicode(name):
                skipped += 1
            elif (after is None or name > after) and (first is None or name >= first):
                yield name

    return nsmallest(count, candidates()), skipped


def read_at(fd: int, offset: int, count: int) -> bytes:
    """Read `count` bytes of an open file from byte `offset` on; fewer only at the end of the file."""
    os.lseek(fd, offset, os.SEEK_SET)
    chunks: list[bytes] = []
    while count and (chunk := os.read(fd, count)):
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)
