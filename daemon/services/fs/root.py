"""The root of the file service: turns a caller's path into names, and walks them one by one below one open directory.

Nothing outside the root is reachable: `..` is refused before the walk, symbolic links are refused during it, and each
step starts from the directory that the step before had opened, so that no rename in between leads elsewhere. What is
mounted or hard-linked below the root belongs to it. Must never open anything by a path that a caller sent.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Self, TypeAlias, final

from ....errors import FailureError, InvalidParams
from .directory import Directory, Facts, is_text
from .types import FileExists, FileNotFound, NotADirectory, NotAFile, OutsideRoot, PermissionDenied

_PathError: TypeAlias = (
    type[FileNotFound]
    | type[PermissionDenied]
    | type[NotAFile]
    | type[NotADirectory]
    | type[OutsideRoot]
    | type[FileExists]
)

# EINVAL and EILSEQ: names that a file system can't hold. ENXIO: no regular file, as `Directory` promises.
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
_Names: TypeAlias = tuple[str, ...]


@final
class Root:
    """One directory, opened once, and what lies below it. Safe to use from many threads at a time.

    `path` is the operator's and may lead through symbolic links; what stands there is opened now and stays the root,
    even if it is renamed later. Raises `OSError` if it can't be opened or is no directory. Close it after the last
    use: `with Root(path) as root`. Every method may raise the `OSError`s that `Directory` names; `os_errors_as` turns
    them into declared errors.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        """For telling others where to look. Nothing is opened by it."""
        self._tops = tuple(_tops(path))
        self._directory = _open_top(path)

    def names(self, path: str) -> _Names:
        """Split a caller's path into the names below the root; empty for the root itself.

        Relative paths, absolute ones that begin with the root, and `file://` URIs of those are taken; empty names and
        `.` are dropped. Raises OutsideRoot for any `..`, for other absolute paths and other hosts; FileNotFound for
        what no file can be called; and `FailureError` with InvalidParams for text that is not Unicode.
        """
        if not is_text(path):
            raise FailureError(InvalidParams(param="path", expected="string of Unicode text", received="string"))
        local = _of_uri(path) if path.startswith(_URI) else path
        if "\0" in local:
            raise FileNotFound(path=path)
        absolute, names = _split(local)
        if ".." in names:
            raise OutsideRoot(path=path)
        if not absolute:
            return names
        for top in self._tops:
            if _comparable(names[: len(top)]) == top:
                return names[len(top) :]
        raise OutsideRoot(path=path)

    def enter(self, names: _Names) -> Directory:
        """Open the directory that the names lead to; the caller closes it."""
        here = self._directory.enter(names[0] if names else ".")
        for name in names[1:]:
            with here:
                here = here.enter(name)
        return here

    def open_file(self, names: _Names) -> int:
        """Open a regular file for reading and return its descriptor; the caller closes it. Never blocks on a FIFO."""
        if not names:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with self.enter(names[:-1]) as parent:
            return parent.open_file(names[-1])

    def facts(self, names: _Names) -> Facts:
        """Describe what the names lead to; a symbolic link in last place is described, not followed."""
        with self.enter(names[:-1]) as parent:
            return parent.facts(names[-1] if names else ".")

    def replace(self, names: _Names, data: bytes, *, create: bool) -> tuple[Facts, bool]:
        """Write a whole file as `Directory.replace` does. Its directory must exist."""
        if not names:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with self.enter(names[:-1]) as parent:
            return parent.replace(names[-1], data, create=create)

    def close(self) -> None:
        """Release the root; closing twice does nothing."""
        self._directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def os_errors_as(path: str) -> Generator[None, None, None]:
    """Turn what the system says about the caller's `path` into the declared error; other faults stay as they are."""
    try:
        yield
    except OSError as error:
        declared = _ERRORS.get(error.errno or 0)
        if declared is None:
            raise
        raise declared(path=path) from error


def _split(path: str) -> tuple[bool, _Names]:
    """Whether a path starts at the top, and its names; its drive, empty but on Windows, is then the first of them."""
    drive, rest = os.path.splitdrive(path.replace("\\", "/") if os.sep == "\\" else path)
    names = tuple(name for name in rest.split("/") if name not in ("", "."))
    absolute = bool(drive) or rest.startswith("/")
    return absolute, (drive, *names) if absolute else names


def _tops(path: str) -> Iterator[_Names]:
    """The absolute paths by which callers may name the root: free of symbolic links, and as the operator gave it."""
    real, given = os.path.realpath(path), os.path.abspath(path)
    yield _comparable(_split(real)[1])
    # `link/..` is not what its spelling says, so a spelling has to prove itself.
    if given != real and os.path.exists(given) and os.path.samefile(given, real):
        yield _comparable(_split(given)[1])


def _comparable(names: _Names) -> _Names:
    return tuple(os.path.normcase(name) for name in names)


def _of_uri(uri: str) -> str:
    """The path in a `file://` URI (RFC 8089). Raises OutsideRoot for another host, FileNotFound for bytes, not text."""
    from urllib.parse import unquote  # late: slow to load, and most callers send paths

    host, _, rest = uri.removeprefix(_URI).partition("/")
    if host not in ("", "localhost"):
        raise OutsideRoot(path=uri)
    try:
        local = unquote(rest, errors="strict")
    except UnicodeDecodeError as error:
        raise FileNotFound(path=uri) from error
    return local if os.path.splitdrive(local)[0] else f"/{local}"


def _open_top(path: str) -> Directory:
    if sys.platform == "win32":
        from .root_windows import open_top
    else:
        from .root_posix import open_top
    return open_top(path)
