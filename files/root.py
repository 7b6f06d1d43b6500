"""The root of the file service: opens names one by one below one directory, each in the directory that was opened before it.

Nothing outside the root is reachable: `..` is refused before anything is opened, symbolic links are refused on the way, and a
rename in between leads nowhere else. FIFOs, sockets and devices are never opened. What is mounted or hard-linked below the root
belongs to it. Never opens anything by a path that a caller sent.

On Linux, macOS and the BSDs every name is opened relative to a descriptor, which stays with its directory whatever happens to
the names above it. O_NOFOLLOW refuses a symbolic link in the same system call that opens, so there is no race between check
and use. Windows opens by path only: there each name is checked just before it is opened.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final, NoReturn, TypeAlias, final

import msgspec

from ..errors import FailureError, InvalidParams
from .types import FileExists, FileKind, FileNotFound, NotADirectory, NotAFile, OutsideRoot, PathError, PermissionDenied

PathParts: TypeAlias = tuple[str, ...]
"""The names that lead from the root to an entry; empty for the root itself."""

# EINVAL and EILSEQ: names that a file system can't hold. ENXIO: not a regular file.
_ERRORS: Final[dict[int, type[PathError]]] = {
    **dict.fromkeys((errno.ENOENT, errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ), FileNotFound),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY, errno.EBUSY), PermissionDenied),
    **dict.fromkeys((errno.EISDIR, errno.ENXIO), NotAFile),
    errno.ENOTDIR: NotADirectory,
    errno.ELOOP: OutsideRoot,
    errno.EEXIST: FileExists,
}

_URI: Final = "file://"


class FileInfo(msgspec.Struct, frozen=True):
    """The kind and the size of a name. `size` is in bytes, 0 for a directory and the like; `modified` in ns since 1970 UTC."""

    kind: FileKind
    size: int
    modified: int


@final
class Root:
    """One directory, opened once, and everything below it. Safe to use from many threads at a time.

    `path` is the operator's and may lead through symbolic links. The directory is opened now and stays the root even if
    it is renamed later. Raises `OSError` if it can't be opened or is not a directory. Close it after the last use.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        """For file watchers of the system. The service opens nothing by it."""
        self._spellings = tuple(_spellings(path))
        self._directory = Directory.open_root(path)

    def parse_path(self, path: str) -> PathParts:
        """Split a caller's path into the names below the root.

        Accepts relative paths, absolute ones that begin with the root, and `file://` URIs of those; drops empty names
        and `.`. Raises OutsideRoot for any `..`, for other absolute paths and other hosts, FileNotFound for a text that
        can't be a file's name, and `FailureError` with InvalidParams for text that is not Unicode.
        """
        if not is_unicode(path):
            raise FailureError(InvalidParams(param="path", expected="string of Unicode text", received="string"))
        local = _path_of_uri(path) if path.startswith(_URI) else path
        if "\0" in local:
            raise FileNotFound(path=path)
        absolute, names = _split(local)
        if ".." in names:
            raise OutsideRoot(path=path)
        if not absolute:
            return names
        for top in self._spellings:
            if _comparable(names[: len(top)]) == top:
                return names[len(top) :]
        raise OutsideRoot(path=path)

    def open_directory(self, names: PathParts) -> Directory:
        """Open the directory that the names lead to; the caller closes it. Raises `OSError` as `Directory` does."""
        directory = self._directory.open_directory(names[0] if names else ".")
        for name in names[1:]:
            with closing(directory):
                directory = directory.open_directory(name)
        return directory

    @contextmanager
    def open_parent(self, path: str) -> Generator[tuple[Directory, str], None, None]:
        """Open the directory that holds the caller's `path`, and return it with the last name; `.` for the root itself.

        Translates errors as `os_errors_as` does, also those of the block.
        """
        with os_errors_as(path):
            names = self.parse_path(path)
            with closing(self.open_directory(names[:-1])) as directory:
                yield directory, names[-1] if names else "."

    def close(self) -> None:
        """Release the root. A second call does nothing."""
        self._directory.close()


@contextmanager
def os_errors_as(path: str) -> Generator[None, None, None]:
    """Translate `OSError`s about the caller's `path` into declared errors. Others, such as a full disk, pass."""
    try:
        yield
    except OSError as error:
        declared = _ERRORS.get(error.errno or 0)
        if declared is None:
            raise
        raise declared(path=path) from error


def _split(path: str) -> tuple[bool, PathParts]:
    """Whether a path is absolute, and its names. The first name of an absolute path is its drive, empty except on Windows."""
    drive, rest = os.path.splitdrive(path.replace("\\", "/") if os.sep == "\\" else path)
    names = tuple(name for name in rest.split("/") if name not in ("", "."))
    absolute = bool(drive) or rest.startswith("/")
    return absolute, (drive, *names) if absolute else names


def _spellings(path: str) -> Iterator[PathParts]:
    """The absolute paths by which callers may name the root: without symbolic links, and as the operator gave it."""
    real, given = os.path.realpath(path), os.path.abspath(path)
    yield _comparable(_split(real)[1])
    # With `link/..` in it, the given path may name another directory than its text says.
    if given != real and os.path.exists(given) and os.path.samefile(given, real):
        yield _comparable(_split(given)[1])


def _comparable(names: PathParts) -> PathParts:
    return tuple(os.path.normcase(name) for name in names)


def _path_of_uri(uri: str) -> str:
    """The path in a `file://` URI (RFC 8089). Raises OutsideRoot for another host, FileNotFound for what is not UTF-8."""
    from urllib.parse import unquote  # late: slow to load, and most callers send paths

    host, _, rest = uri.removeprefix(_URI).partition("/")
    if host not in ("", "localhost"):
        raise OutsideRoot(path=uri)
    try:
        local = unquote(rest, errors="strict")
    except UnicodeDecodeError as error:
        raise FileNotFound(path=uri) from error
    return local if os.path.splitdrive(local)[0] else f"/{local}"


def is_unicode(name: str) -> bool:
    """Whether `name` can be sent: False for names with bytes that are not UTF-8."""
    return name.isascii() or not any("\ud800" <= char <= "\udfff" for char in name)


# O_PATH (Linux) needs no read permission for a directory on the way; other systems do.
_CLOEXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
_LIST: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC
_OPEN_ROOT: Final[int] = _LIST | getattr(os, "O_PATH", 0)
_NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0) | _CLOEXEC | getattr(os, "O_BINARY", 0)
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
    """One open directory, which its user closes. It reaches the names directly in it, and nothing else.

    No method takes a path, follows a symbolic link, or opens a FIFO, socket or device. Faults are `OSError`s with a fixed
    `errno`: ELOOP for a symbolic link on the way, EISDIR and ENXIO if it is not a regular file, ENOTDIR if it is not a
    directory.
    """

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
        try:
            if self._fd is not None:
                return Directory(os.open(name, _OPEN_ROOT | _NO_FOLLOW, dir_fd=self._fd))
            if self.info(name).kind == "directory":
                return Directory(None, self._at(name))
            _refuse(errno.ENOTDIR)
        except OSError as error:
            if error.errno in _MAYBE_LINK:  # the entry may have changed since then, so nothing else depends on its kind
                _refuse(errno.ELOOP if self.info(name).kind in ("symlink", "directory") else errno.ENOTDIR)
            raise

    def open_file(self, name: str, access: int = os.O_RDONLY) -> int:
        """Open the regular file `name` and return its descriptor, which the caller closes."""
        # Checked before, because opening alone can wake a FIFO's writer or start a device; and again after.
        _require_regular(self.info(name))
        fd = os.open(self._at(name), access | _OPEN_FILE, dir_fd=self._fd)
        try:
            _require_regular(_info(os.fstat(fd)))
        except OSError:
            os.close(fd)
            raise
        return fd

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
        if self._fd is not None:  # that the name survives a power cut is attempted, not guaranteed
            with suppress(OSError):
                self._sync(os.open(".", _LIST, dir_fd=self._fd))
        return info, permissions is None

    def close(self) -> None:
        """Release the directory. A second call does nothing."""
        fd = self._fd
        if fd is not None and fd >= 0:
            self._fd = -1
            os.close(fd)

    def _at(self, name: str) -> str:
        """Return the system's name of `name`: relative to the descriptor, or on Windows the path."""
        if self._fd is not None:
            return name
        if ":" in name or "\\" in name:  # a colon would name an alternate data stream
            _refuse(errno.EINVAL)
        return self._path if name == "." else os.path.join(self._path, name)

    def _permissions(self, name: str) -> int | None:
        """The permission bits of the file to be replaced; None if there is none.

        Opening it for writing checks the permission to change its content, which a rename alone would not.
        """
        try:
            fd = self.open_file(name, os.O_WRONLY)
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

    @staticmethod
    def _sync(fd: int) -> None:
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


def first_names(
    listed: Iterable[str], count: int, *, after: str | None = None, first: str | None = None
) -> tuple[list[str], int]:
    """Return the first `count` names, sorted, that sort after `after` and not before `first`; and the number of names that are
    not Unicode.

    No more than `count` names are in memory, however many are listed.
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
