"""The root of the file service: splits a caller's path into names and opens them one by one below one open directory.

Nothing outside the root is reachable: `..` is refused before anything is opened, symbolic links are refused on the way,
and each step starts from the directory that the step before has opened, so that a rename in between leads nowhere else.
What is mounted or hard-linked below the root belongs to it. Never opens anything by a path that a caller sent.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Self, TypeAlias, final

from ..errors import FailureError, InvalidParams
from .directory import Directory, FileInfo, PathParts, is_unicode
from .types import FileExists, FileNotFound, NotADirectory, NotAFile, OutsideRoot, PermissionDenied

_PathError: TypeAlias = type[FileNotFound | PermissionDenied | NotAFile | NotADirectory | OutsideRoot | FileExists]

# EINVAL and EILSEQ: names that a file system can't hold. ENXIO: not a regular file (see `Directory`).
_ERRORS: dict[int, _PathError] = {
    errno.ENOENT: FileNotFound,
    errno.ENAMETOOLONG: FileNotFound,
    errno.EINVAL: FileNotFound,
    errno.EILSEQ: FileNotFound,
    errno.EACCES: PermissionDenied,
    errno.EPERM: PermissionDenied,
    errno.EROFS: PermissionDenied,
    errno.ETXTBSY: PermissionDenied,
    errno.EBUSY: PermissionDenied,
    errno.ENOTDIR: NotADirectory,
    errno.EISDIR: NotAFile,
    errno.ENXIO: NotAFile,
    errno.ELOOP: OutsideRoot,
    errno.EEXIST: FileExists,
}

_URI = "file://"


@final
class Root:
    """One directory, opened once, and what lies below it. Safe to use from many threads at a time.

    `path` is the operator's and may lead through symbolic links. The directory is opened now and stays the root even if
    it is renamed later. Raises `OSError` if it can't be opened or is not a directory. Close it after the last use:
    `with Root(path) as root`. Every method may raise the `OSError`s that `Directory` names; `os_errors_as` turns them
    into declared errors.
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
        """Open the directory that the names lead to; the caller closes it."""
        directory = self._directory.open_directory(names[0] if names else ".")
        for name in names[1:]:
            with directory:
                directory = directory.open_directory(name)
        return directory

    def open_file(self, names: PathParts) -> int:
        """Open a regular file for reading and return its descriptor; the caller closes it. Never blocks on a FIFO."""
        if not names:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with self.open_directory(names[:-1]) as parent:
            return parent.open_file(names[-1])

    def info(self, names: PathParts) -> FileInfo:
        """Describe the entry that the names lead to. A symbolic link is described, not followed."""
        with self.open_directory(names[:-1]) as parent:
            return parent.info(names[-1] if names else ".")

    def write_file(self, names: PathParts, data: bytes, *, create: bool) -> tuple[FileInfo, bool]:
        """Write a whole file as `Directory.write_file` does. Its directory must exist."""
        if not names:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with self.open_directory(names[:-1]) as parent:
            return parent.write_file(names[-1], data, create=create)

    def close(self) -> None:
        """Release the root. A second call does nothing."""
        self._directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
