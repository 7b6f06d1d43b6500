"""Literal text search below the root: bounded in files, bytes and matches, cancelled between any two files.

There are no regular expressions here, and must never be: literal search takes linear time on any input. Walks with a
list of names still to visit, not with open directories, so that depth costs no descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TypeAlias, assert_never, final

import msgspec

from .directory import Directory, is_text, read_at
from .root import Root, os_errors_as
from .types import MAX_PATH_CHARS, Cancellable, FileTooLarge, Match, NotText, SearchResult

LINE_CHARS = 200

VERSION_STORES = frozenset({".git", ".hg", ".jj", ".svn"})
"""Directories that hold copies of what is searched anyway, packed."""

_BINARY_PROBE = 8192
"""A NUL in this many first bytes makes a file binary: the rule of git and ripgrep."""


_Names: TypeAlias = tuple[str, ...]


class Bounds(msgspec.Struct, frozen=True):
    """How much one search may look at and answer.

    `entries` are names: seconds of work on a cold disk, well inside a request's usual 30 s. One file is in memory at a
    time; what is larger than `file_bytes` is hardly source text. `result_chars` counts the paths and lines of an
    answer: even with six bytes for each it fits a peer's frame limit of 10 MiB.
    """

    entries: int = 100_000
    file_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 256 * 1024 * 1024
    result_chars: int = 1024 * 1024


BOUNDS = Bounds()


class Search(msgspec.Struct, frozen=True):
    """What to look for; the fields are the params of `fs/search`."""

    query: str
    glob: str | None
    ignore_case: bool
    words: bool
    limit: int


def search(root: Root, ctx: Cancellable, path: str, wanted: Search, bounds: Bounds = BOUNDS) -> SearchResult:
    """Search the file or the tree that the caller's `path` names. Raises the errors declared for `fs/search`."""
    run = _Run(ctx, wanted, bounds)
    with os_errors_as(path):
        start = root.names(path)
        try:
            top = root.enter(start)
        except NotADirectoryError:
            run.one_file(root, start, path)
        else:
            with top:
                run.tree(root, top, start)
    return run.result()


@final
class _Run:
    """One search under way: what was found, and what it has cost so far."""

    def __init__(self, ctx: Cancellable, wanted: Search, bounds: Bounds) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._bounds = bounds
        self._matches: list[Match] = []
        self._entries = self._bytes = self._chars = 0
        self._files = self._skipped = 0
        self._stopped = False  # a bound was met: look at nothing more
        self._unlisted = False  # names were left out, but those that were listed are still looked at

    def result(self) -> SearchResult:
        return SearchResult(tuple(self._matches), self._stopped or self._unlisted, self._files, self._skipped)

    def one_file(self, root: Root, names: _Names, path: str) -> None:
        fd = root.open_file(names)
        try:
            size = os.fstat(fd).st_size
            if size > self._bounds.file_bytes:
                raise FileTooLarge(path=path, size=size, limit=self._bounds.file_bytes)
            data = read_at(fd, 0, self._bounds.file_bytes)
        finally:
            os.close(fd)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise NotText(path=path, offset=error.start) from error
        self._take(text, "/".join(names))

    def tree(self, root: Root, top: Directory, start: _Names) -> None:
        pending = self._directory(top, start, start)
        while pending and not self._stopped:
            names = pending.pop()
            try:
                with root.enter(names) as directory:
                    pending += self._directory(directory, names, start)
            except OSError:  # closed to us, or removed or swapped for something else since it was listed
                self._skipped += 1

    def _directory(self, directory: Directory, names: _Names, start: _Names) -> list[_Names]:
        """Search the files of one directory; return the directories in it, the first one last.

        Raises `OSError` where it can't be listed; what goes wrong with a single name is counted.
        """
        below: list[_Names] = []
        for name in sorted(self._listed(directory)):
            if self._stopped:
                break
            self._ctx.check_cancelled()
            here = (*names, name)
            try:
                if self._look_at(directory, here, start):
                    below.append(here)
            except OSError:  # removed or swapped since it was listed, or closed to us
                self._skipped += 1
        return below[::-1]

    def _look_at(self, directory: Directory, names: _Names, start: _Names) -> bool:
        """Search `names` if it is a wanted file; tell whether it is a directory to be walked."""
        path = "/".join(names)
        if len(path) > MAX_PATH_CHARS:  # nobody could ask for what was found there
            self._skipped += 1
            return False
        facts = directory.facts(names[-1])
        match facts.kind:
            case "directory":
                return names[-1] not in VERSION_STORES
            case "file":
                if self._is_wanted(names[len(start) :]):
                    self._file(directory, names[-1], path, facts.size)
                return False
            case "symlink" | "other":
                return False
            case _:
                assert_never(facts.kind)

    def _listed(self, directory: Directory) -> Iterator[str]:
        for name in directory.names():
            if self._entries == self._bounds.entries:
                self._unlisted = True
                return
            self._entries += 1
            if is_text(name):
                yield name
            else:
                self._skipped += 1

    def _is_wanted(self, below_start: _Names) -> bool:
        glob = self._wanted.glob
        return glob is None or fnmatchcase("/".join(below_start) if "/" in glob else below_start[-1], glob)

    def _file(self, directory: Directory, name: str, path: str, size: int) -> None:
        if size > self._bounds.file_bytes:
            self._skipped += 1
            return
        if self._bytes + size > self._bounds.total_bytes:
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
            self._take(text, path)

    def _take(self, text: str, path: str) -> None:
        self._files += 1
        cursor = _Cursor(text)
        for at in _occurrences(text, self._wanted):
            if len(self._matches) == self._wanted.limit or self._chars > self._bounds.result_chars:
                self._stopped = True
                return
            match = cursor.match(path, at)
            self._matches.append(match)
            self._chars += len(match.path) + len(match.text)


@final
class _Cursor:
    """Counts lines and bytes on the way from match to match, so that a file is gone through once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._bytes = self._line_start = 0
        self._line = 1

    def match(self, path: str, at: int) -> Match:
        """The match at character `at`, which must not lie before the last one."""
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


def _occurrences(text: str, wanted: Search) -> Iterator[int]:
    needle = wanted.query
    if wanted.ignore_case:
        text, needle = _folded(text), _folded(needle)
    at = text.find(needle)
    while at >= 0:
        end = at + len(needle)
        if not (wanted.words and (_is_word(text[at - 1 : at]) or _is_word(text[end : end + 1]))):
            yield at
        at = text.find(needle, end)


def _folded(text: str) -> str:
    """Without differences of case, each character in its place.

    `lower` is kept from its two exceptions: U+0130 would become two characters, and a sigma depends on its neighbours.
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
