"""Literal text search below the root, with limits on files, bytes and matches. It can be cancelled between two files.

Never uses regular expressions: literal search takes linear time on any input. Keeps a list of names still to visit, not
of open directories, so that depth costs no descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import assert_never, final

import msgspec

from .directory import Directory, PathParts, is_unicode, read_at
from .root import Root, os_errors_as
from .types import MAX_PATH_CHARS, Cancellable, FileTooLarge, Match, NotText, SearchResult

LINE_CHARS = 200

VERSION_CONTROL_DIRECTORIES = frozenset({".git", ".hg", ".jj", ".svn"})
"""They hold packed copies of files that are searched anyway."""

_BINARY_PROBE = 8192
"""A NUL among this many first bytes makes a file binary: the rule of git and ripgrep."""


class SearchLimits(msgspec.Struct, frozen=True):
    """How much one search may read and return.

    `entries` limits the names: seconds of work on a cold disk, well within a request's default deadline of 30 s. One
    file is in memory at a time; a file above `file_bytes` is hardly source text. `result_chars` limits the paths and
    lines of the result: even at six bytes per character it fits a peer's frame limit of 10 MiB.
    """

    entries: int = 100_000
    file_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024
    result_chars: int = 1024 * 1024


SEARCH_LIMITS = SearchLimits()


class SearchQuery(msgspec.Struct, frozen=True):
    """What to search for: params of `fs/search`."""

    text: str
    glob: str | None
    ignore_case: bool
    words: bool
    limit: int


def search(
    root: Root, ctx: Cancellable, path: str, query: SearchQuery, limits: SearchLimits = SEARCH_LIMITS
) -> SearchResult:
    """Search the file or directory that the caller's `path` names. Raises the errors declared for `fs/search`."""
    run = _SearchRun(ctx, query, limits)
    with os_errors_as(path):
        start = root.parse_path(path)
        try:
            top = root.open_directory(start)
        except NotADirectoryError:
            run.search_only_file(root, start, path)
        else:
            with top:
                run.search_tree(root, top, start)
    return run.result()


@final
class _SearchRun:
    """One search in progress: what it has found and read so far."""

    def __init__(self, ctx: Cancellable, query: SearchQuery, limits: SearchLimits) -> None:
        self._ctx = ctx
        self._query = query
        self._limits = limits
        self._matches: list[Match] = []
        self._entries = self._bytes = self._chars = 0
        self._files = self._skipped = 0
        self._stopped = False  # a limit is reached: read nothing more
        self._names_omitted = False  # the limit of names is reached, but the listed ones are still searched

    def result(self) -> SearchResult:
        return SearchResult(tuple(self._matches), self._stopped or self._names_omitted, self._files, self._skipped)

    def search_only_file(self, root: Root, names: PathParts, path: str) -> None:
        fd = root.open_file(names)
        try:
            size = os.fstat(fd).st_size
            if size > self._limits.file_bytes:
                raise FileTooLarge(path=path, size=size, limit=self._limits.file_bytes)
            data = read_at(fd, 0, self._limits.file_bytes)
        finally:
            os.close(fd)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise NotText(path=path, offset=error.start) from error
        self._add_matches(text, "/".join(names))

    def search_tree(self, root: Root, top: Directory, start: PathParts) -> None:
        pending = self._search_directory(top, start, start)
        while pending and not self._stopped:
            names = pending.pop()
            try:
                with root.open_directory(names) as directory:
                    pending += self._search_directory(directory, names, start)
            except OSError:  # not permitted, or removed or replaced since it was listed
                self._skipped += 1

    def _search_directory(self, directory: Directory, names: PathParts, start: PathParts) -> list[PathParts]:
        """Search the files of one directory. Returns the directories in it, the first one last.

        Raises `OSError` if it can't be listed. Names that can't be read are counted as skipped.
        """
        below: list[PathParts] = []
        for name in sorted(self._list_names(directory)):
            if self._stopped:
                break
            self._ctx.check_cancelled()
            here = (*names, name)
            try:
                if self._visit(directory, here, start):
                    below.append(here)
            except OSError:  # not permitted, or removed or replaced since it was listed
                self._skipped += 1
        return below[::-1]

    def _visit(self, directory: Directory, names: PathParts, start: PathParts) -> bool:
        """Search the entry if it is a matching file. Returns whether it is a directory to be searched."""
        path = "/".join(names)
        if len(path) > MAX_PATH_CHARS:  # no request could name it
            self._skipped += 1
            return False
        info = directory.info(names[-1])
        match info.kind:
            case "directory":
                return names[-1] not in VERSION_CONTROL_DIRECTORIES
            case "file":
                if self._matches_glob(names[len(start) :]):
                    self._search_file(directory, names[-1], path, info.size)
                return False
            case "symlink" | "other":
                return False
            case _:
                assert_never(info.kind)

    def _list_names(self, directory: Directory) -> Iterator[str]:
        for name in directory.list_names():
            if self._entries == self._limits.entries:
                self._names_omitted = True
                return
            self._entries += 1
            if is_unicode(name):
                yield name
            else:
                self._skipped += 1

    def _matches_glob(self, below_start: PathParts) -> bool:
        glob = self._query.glob
        return glob is None or fnmatchcase("/".join(below_start) if "/" in glob else below_start[-1], glob)

    def _search_file(self, directory: Directory, name: str, path: str, size: int) -> None:
        if size > self._limits.file_bytes:
            self._skipped += 1
            return
        if self._bytes + size > self._limits.total_bytes:
            self._stopped = True
            return
        fd = directory.open_file(name)
        try:
            data = read_at(fd, 0, size + 1)
        finally:
            os.close(fd)
        self._bytes += len(data)
        text = _text(data)
        if text is None:
            self._skipped += 1
        else:
            self._add_matches(text, path)

    def _add_matches(self, text: str, path: str) -> None:
        self._files += 1
        cursor = _Cursor(text)
        for at in _occurrences(text, self._query):
            if len(self._matches) == self._query.limit or self._chars > self._limits.result_chars:
                self._stopped = True
                return
            match = cursor.match(path, at)
            self._matches.append(match)
            self._chars += len(match.path) + len(match.text)


@final
class _Cursor:
    """Counts lines and bytes from match to match, so that a file is read through once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._bytes = self._line_start = 0
        self._line = 1

    def match(self, path: str, at: int) -> Match:
        """The match at character `at`, which must not be before the previous one."""
        passed = self._text[self._at : at]
        self._bytes += len(passed.encode())
        if lines := passed.count("\n"):
            self._line += lines
            self._line_start = self._at + passed.rfind("\n") + 1
        self._at = at
        column = at - self._line_start + 1
        return Match(path=path, line=self._line, column=column, offset=self._bytes, text=self._excerpt())

    def _excerpt(self) -> str:
        text, at = self._text, self._at
        begin = self._line_start
        if at - begin > LINE_CHARS // 2:
            begin = at - LINE_CHARS // 4
        end = text.find("\n", at, begin + LINE_CHARS)
        return text[begin : end if end >= 0 else begin + LINE_CHARS].removesuffix("\r")


def _occurrences(text: str, query: SearchQuery) -> Iterator[int]:
    needle = query.text
    if query.ignore_case:
        text, needle = _folded(text), _folded(needle)
    at = text.find(needle)
    while at >= 0:
        end = at + len(needle)
        if not (query.words and (_is_word(text[at - 1 : at]) or _is_word(text[end : end + 1]))):
            yield at
        at = text.find(needle, end)


def _folded(text: str) -> str:
    """The text without differences of case, and of the same length.

    Two characters need care: `lower` makes two of U+0130, and writes a sigma by its neighbours.
    """
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _text(data: bytes) -> str | None:
    if b"\0" in data[:_BINARY_PROBE]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
