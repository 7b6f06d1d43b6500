"""The operations of the built-in file service: what callers may ask for below the root, and the answers they get.

Each method is a plain function of its params, run in a worker thread and ready to be declared as an operation. Owns no
path rules (`root` does) and must never open, list or write anything but through its root.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import final

from ....errors import FailureError, InvalidParams
from .directory import Directory, is_text, read_at
from .root import Root, os_errors_as
from .types import (
    DEFAULT_LIST_ENTRIES,
    DEFAULT_READ_BYTES,
    DEFAULT_SEARCH_MATCHES,
    MAX_WRITE_BYTES,
    AfterName,
    Cancellable,
    CaseRule,
    Encoding,
    Entry,
    FileContent,
    FileStat,
    FileTooLarge,
    FileWritten,
    Glob,
    Listing,
    ListLimit,
    NotText,
    Offset,
    PathText,
    ReadLimit,
    SearchLimit,
    SearchResult,
    SearchText,
    WriteMode,
)

_LONGEST_CHARACTER = 4
"""Bytes of the longest character in UTF-8 (RFC 3629 section 3)."""

_NAMES_PER_CHECK = 256
"""Names listed between two looks at whether the request was cancelled: well below a millisecond."""

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 and 9999, between which RFC 3339 can name a time."""


@final
class FileSystem:
    """The file service over one root. Methods may run at the same time in many threads; the root must outlive them.

    Every method raises the errors declared for it in `fs_types`, with the path as the caller gave it. Other faults of
    the system, such as a full or failing disk, come as `OSError`.
    """

    def __init__(self, root: Root) -> None:
        self._root = root

    def read(
        self,
        ctx: Cancellable,
        path: PathText,
        offset: Offset = 0,
        limit: ReadLimit = DEFAULT_READ_BYTES,
        encoding: Encoding = "utf-8",
    ) -> FileContent:
        """Read a slice of one file.

        At most `limit` bytes from byte `offset` on. As `utf-8`, the slice ends before a character that does not fit
        (but holds at least one) and NOT_TEXT tells the first byte that is no UTF-8, also when `offset` lies inside a
        character; a byte order mark is kept. Behind the end of the file the slice is empty.
        """
        with os_errors_as(path):
            fd = self._root.open_file(self._root.names(path))
        try:
            found = os.fstat(fd)
            data = read_at(fd, offset, limit + _LONGEST_CHARACTER) if offset <= found.st_size else b""
        finally:
            os.close(fd)
        end = min(limit, len(data)) if encoding == "base64" else _end_of_characters(data, limit)
        return FileContent(
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
        ctx: Cancellable,
        path: PathText = ".",
        limit: ListLimit = DEFAULT_LIST_ENTRIES,
        after: AfterName | None = None,
    ) -> Listing:
        """List the names in one directory, sorted, page by page.

        `after` asks for the names that sort after it: send the `next` of the page before. Symbolic links are listed as
        such and not followed. Memory is bounded by `limit`, however large the directory is.
        """
        with os_errors_as(path), self._root.enter(self._root.names(path)) as directory:
            names, skipped = _first_names(ctx, directory, limit + 1, after)
            entries = tuple(_entries(directory, names[:limit]))
        return Listing(path, entries, names[limit - 1] if len(names) > limit else None, skipped)

    def stat(self, ctx: Cancellable, path: PathText) -> FileStat:
        """Tell what a path names: its kind, size and last change. A symbolic link is described, not followed."""
        with os_errors_as(path):
            facts = self._root.facts(self._root.names(path))
        return FileStat(path, facts.kind, facts.size, timestamp(facts.modified))

    def search(
        self,
        ctx: Cancellable,
        query: SearchText,
        path: PathText = ".",
        glob: Glob | None = None,
        case: CaseRule = "sensitive",
        words: bool = False,
        limit: SearchLimit = DEFAULT_SEARCH_MATCHES,
    ) -> SearchResult:
        """Find literal text in the files below a directory, or in one file.

        Occurrences are taken from left to right without overlap; with `words` only those count that no letter, digit
        or underscore touches. `glob` chooses among a directory's files. Binary and large files, symbolic links and the
        stores of version control are passed over; names, bytes and matches are bounded, and `truncated` says that a
        bound was met.
        """
        from .search import Search, search  # late: the first search pays for it, not the start

        wanted = Search(query=query, glob=glob, ignore_case=case == "ignore", words=words, limit=limit)
        return search(self._root, ctx, path, wanted)

    def write(
        self,
        ctx: Cancellable,
        path: PathText,
        content: str,
        encoding: Encoding = "utf-8",
        mode: WriteMode = "overwrite",
    ) -> FileWritten:
        """Write one file as a whole.

        The file has its old content or its new one, never a part: also for readers meanwhile, after a crash, and when
        the request is cancelled. `create` refuses with FILE_EXISTS where there is a file. The directory must exist. A
        replaced file keeps its permission bits; owner, extended attributes and other hard links are not carried over.
        """
        data = _decoded(content, encoding)
        if len(data) > MAX_WRITE_BYTES:
            raise FileTooLarge(path=path, size=len(data), limit=MAX_WRITE_BYTES)
        ctx.check_cancelled()
        with os_errors_as(path):
            facts, created = self._root.replace(self._root.names(path), data, create=mode == "create")
        return FileWritten(path, facts.size, timestamp(facts.modified), created)


def _end_of_characters(data: bytes, limit: int) -> int:
    """Where a slice of at most `limit` bytes ends that splits no character; what is no UTF-8 may be cut anywhere."""
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


def _encoded(data: bytes, encoding: Encoding, path: str, offset: int) -> str:
    if encoding == "base64":
        from binascii import b2a_base64  # late: few callers want bytes

        return b2a_base64(data, newline=False).decode("ascii")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotText(path=path, offset=offset + error.start) from error


def _decoded(content: str, encoding: Encoding) -> bytes:
    try:
        if encoding == "base64":
            from binascii import a2b_base64  # late: few callers send bytes

            return a2b_base64(content, strict_mode=True)
        return content.encode()
    except ValueError as error:  # of both codecs
        expected = "string of base64" if encoding == "base64" else "string of Unicode text"
        raise FailureError(InvalidParams(param="content", expected=expected, received="string")) from error


def _first_names(ctx: Cancellable, directory: Directory, count: int, after: str | None) -> tuple[list[str], int]:
    """The first `count` names that sort after `after`, and how many names of the directory are no text."""
    from heapq import nsmallest  # late: only listings need it

    skipped = 0

    def candidates() -> Iterator[str]:
        nonlocal skipped
        for seen, name in enumerate(directory.names()):
            if seen % _NAMES_PER_CHECK == 0:
                ctx.check_cancelled()
            if not is_text(name):
                skipped += 1
            elif after is None or name > after:
                yield name

    return nsmallest(count, candidates()), skipped


def _entries(directory: Directory, names: list[str]) -> Iterator[Entry]:
    for name in names:
        try:
            facts = directory.facts(name)
        except FileNotFoundError:  # removed since it was listed
            continue
        yield Entry(name, facts.kind, facts.size, timestamp(facts.modified))


def timestamp(nanoseconds: int) -> str:
    """A time since 1970 as RFC 3339 in UTC with milliseconds, cut and not rounded: `2026-01-31T09:30:00.250Z`."""
    seconds, milliseconds = divmod(nanoseconds // 1_000_000, 1000)
    at = time.gmtime(min(max(seconds, _FIRST_SECOND), _LAST_SECOND))
    day = f"{at.tm_year:04}-{at.tm_mon:02}-{at.tm_mday:02}"
    return f"{day}T{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02}.{milliseconds:03}Z"
