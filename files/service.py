"""The built-in service `fs` and its operations. Opens, lists and writes only through its `Root`, which has the path rules.

Each method is a plain function of its params that runs in a worker thread.
"""

from __future__ import annotations

import os
import time
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from contextlib import closing
from typing import Final, final

from ..daemon.operations.service import Service
from ..errors import FailureError, InvalidParams
from . import types
from .root import Directory, Root, first_names, os_errors_as, read_at
from .watch import MAX_WATCHES, FileWatcher

_LONGEST_CHARACTER: Final = 4
"""Bytes of the longest character in UTF-8 (RFC 3629 section 3)."""

_NAMES_PER_CHECK: Final = 256
"""Names listed between two checks for cancellation: well below a millisecond."""

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 and 9999, the range of RFC 3339."""

MAX_SEARCHES: Final = 2
"""Searches that run at the same time. They keep the CPU busy, and Python's lock lets only one thread compute at a time;
more of them would not be faster, but keep everything else waiting."""

MAX_LISTINGS: Final = 2
"""Listings that run at the same time, for the same reason: in a large directory one takes as long as a search."""


def file_service(root: str, *, allow_write: bool) -> Service:
    """Return a service of the files below `root`, read-only unless `allow_write`. Raises `OSError` for a root that can't be
    opened."""
    root_directory = Root(root)
    files = FileSystem(root_directory)
    service = Service("fs", description="The files below the root.")
    service.query(errors=types.READ_ERRORS)(files.read)
    service.query(errors=types.PATH_ERRORS, concurrency=MAX_LISTINGS)(files.list)
    service.query(errors=types.PATH_ERRORS)(files.stat)
    service.query(errors=types.SEARCH_ERRORS, concurrency=MAX_SEARCHES)(files.search)
    service.subscription(errors=types.WATCH_ERRORS, limit=MAX_WATCHES)(FileWatcher(root_directory).watch)
    if allow_write:
        service.mutation(errors=types.WRITE_ERRORS, keyed="path")(files.write)
    return service


@final
class FileSystem:
    """The file service over one root, which must outlive it. Methods may run in many threads at the same time.

    Every method raises the errors declared for it in `types`, with the path as the caller gave it. Other faults of the
    system, such as a full or failing disk, raise `OSError`.
    """

    def __init__(self, root: Root) -> None:
        self._root = root

    def read(
        self,
        ctx: types.Cancellable,
        path: types.PathText,
        offset: types.Offset = 0,
        limit: types.ReadLimit = types.DEFAULT_READ_BYTES,
        encoding: types.Encoding = "utf-8",
    ) -> types.FileContent:
        """Read a slice of one file.

        The slice has at most `limit` bytes from byte `offset` on; behind the end of the file it is empty. As `utf-8`, it
        ends before a character that does not fit, but holds at least one. NOT_TEXT names the first byte that is not
        UTF-8, also when `offset` lies inside a character. A byte order mark is kept.
        """
        with self._root.open_parent(path) as (directory, name):
            fd = directory.open_file(name)
        try:
            found = os.fstat(fd)
            data = read_at(fd, offset, limit + _LONGEST_CHARACTER) if offset <= found.st_size else b""
        finally:
            os.close(fd)
        end = min(limit, len(data)) if encoding == "base64" else _end_of_characters(data, limit)
        return types.FileContent(
            path=path,
            encoding=encoding,
            content=_encoded(data[:end], encoding, path, offset),
            offset=offset,
            next_offset=offset + end,
            size=found.st_size,
            truncated=end < len(data),
            modified=timestamp(found.st_mtime_ns),
        )

    def list(
        self,
        ctx: types.Cancellable,
        path: types.PathText = ".",
        limit: types.ListLimit = types.DEFAULT_LIST_ENTRIES,
        after: types.AfterName | None = None,
    ) -> types.Listing:
        """List the names in one directory, sorted, page by page.

        `after` asks for the names that sort after it: send the `next` of the previous page. Symbolic links are listed
        as such and not followed. `limit` bounds the memory, however large the directory is.
        """
        with os_errors_as(path), closing(self._root.open_directory(self._root.parse_path(path))) as directory:
            names, skipped = first_names(_names(ctx, directory), limit + 1, after=after)
            entries = tuple(_entries(directory, names[:limit]))
        return types.Listing(path, entries, names[limit - 1] if len(names) > limit else None, skipped)

    def stat(self, ctx: types.Cancellable, path: types.PathText) -> types.FileStat:
        """Tell what a path names: its kind, size and last change. A symbolic link is described, not followed."""
        with self._root.open_parent(path) as (directory, name):
            info = directory.info(name)
        return types.FileStat(path, info.kind, info.size, timestamp(info.modified))

    def search(
        self,
        ctx: types.Cancellable,
        query: types.SearchText,
        path: types.PathText = ".",
        glob: types.Glob | None = None,
        case: types.CaseRule = "sensitive",
        words: bool = False,
        limit: types.SearchLimit = types.DEFAULT_SEARCH_MATCHES,
        resume: types.SearchPlace | None = None,
    ) -> types.SearchResult:
        """Find literal text in the files below a directory, or in one file.

        Matches are found from left to right and don't overlap; with `words`, no letter, digit or underscore may be next
        to a match. `glob` selects among a directory's files. Binary and large files, symbolic links and the directories
        of version control are left out. Time and matches are limited; `truncated` says that a limit was reached.
        To go on, send `next` as `resume`, with all other params as they were.
        """
        from .search import SearchQuery, search  # late: the first search pays for it, not the start

        return search(self._root, ctx, path, SearchQuery(query, glob, case == "ignore", words, limit, resume))

    def write(
        self,
        ctx: types.Cancellable,
        path: types.PathText,
        content: str,
        encoding: types.Encoding = "utf-8",
        mode: types.WriteMode = "overwrite",
    ) -> types.FileWritten:
        """Write one file as a whole.

        The file has its old content or its new one, never a part of it: also for concurrent readers, after a crash, and
        when the request is cancelled. `create` raises FILE_EXISTS if there is a file. The directory must exist. A
        replaced file keeps its permission bits, but not its owner, extended attributes and other hard links.
        """
        data = _decoded(content, encoding)
        if len(data) > types.MAX_WRITE_BYTES:
            raise types.FileTooLarge(path=path, size=len(data), limit=types.MAX_WRITE_BYTES)
        ctx.check_cancelled()
        with self._root.open_parent(path) as (directory, name):
            info, created = directory.write_file(name, data, create=mode == "create")
        return types.FileWritten(path, info.size, timestamp(info.modified), created)


def _end_of_characters(data: bytes, limit: int) -> int:
    """The end of a slice of at most `limit` bytes that splits no character. What is not UTF-8 may be cut anywhere."""
    if limit >= len(data):
        return len(data)
    end = limit
    while end > 0 and limit - end < _LONGEST_CHARACTER and _continues_character(data[end]):
        end -= 1
    if end:
        return end
    end = limit  # the first character alone is wider than the limit
    while end < len(data) and _continues_character(data[end]):
        end += 1
    return end


def _continues_character(byte: int) -> bool:
    return byte & 0b1100_0000 == 0b1000_0000


def _encoded(data: bytes, encoding: types.Encoding, path: str, offset: int) -> str:
    if encoding == "base64":
        return b2a_base64(data, newline=False).decode("ascii")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise types.NotText(path=path, offset=offset + error.start) from error


def _decoded(content: str, encoding: types.Encoding) -> bytes:
    try:
        return a2b_base64(content, strict_mode=True) if encoding == "base64" else content.encode()
    except ValueError as error:  # both codecs raise it
        expected = "string of base64" if encoding == "base64" else "string of Unicode text"
        raise FailureError(InvalidParams(param="content", expected=expected, received="string")) from error


def _names(ctx: types.Cancellable, directory: Directory) -> Iterator[str]:
    """The names in a directory, with a look now and then whether the request was cancelled."""
    for seen, name in enumerate(directory.list_names()):
        if seen % _NAMES_PER_CHECK == 0:
            ctx.check_cancelled()
        yield name


def _entries(directory: Directory, names: list[str]) -> Iterator[types.Entry]:
    for name in names:
        try:
            info = directory.info(name)
        except FileNotFoundError:  # removed since it was listed
            continue
        yield types.Entry(name, info.kind, info.size, timestamp(info.modified))


def timestamp(nanoseconds: int) -> str:
    """Return a time since 1970 as RFC 3339, in UTC with milliseconds, rounded down: `2026-01-31T09:30:00.250Z`."""
    seconds, milliseconds = divmod(nanoseconds // 1_000_000, 1000)
    at = time.gmtime(min(max(seconds, _FIRST_SECOND), _LAST_SECOND))
    day = f"{at.tm_year:04}-{at.tm_mon:02}-{at.tm_mday:02}"
    return f"{day}T{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}.{milliseconds:03}Z"
