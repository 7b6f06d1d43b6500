"""Literal text search below the root. Each search has a bounded time, and tells where to go on after it.

Entries are visited in one fixed order, the order of their paths compared name by name, so that a place in the tree says
what has been searched. Never uses regular expressions on files: literal search takes linear time on any input. Keeps
names still to visit, not open directories, so that depth costs no descriptors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from fnmatch import translate
from time import monotonic, sleep
from typing import Final, final

import msgspec

from ..errors import FailureError, InvalidParams
from .root import Directory, PathParts, Root, first_names, os_errors_as, read_at
from .types import MAX_PATH_CHARS, Cancellable, FileTooLarge, Match, NotText, SearchPlace, SearchResult

STEP_SECONDS: Final = 0.0005
"""Time between two pauses."""

PAUSE_SECONDS: Final = 20e-6
"""A thread that only let go of Python's lock would mostly take it again before another wakes up."""

LINE_CHARS: Final = 200

VERSION_CONTROL_DIRECTORIES: Final = frozenset({".git", ".hg", ".jj", ".svn"})
"""They hold packed copies of files that are searched anyway."""

_BINARY_PROBE: Final = 8192
"""A NUL among this many first bytes makes a file binary: the rule of git and ripgrep."""

_FEWEST_CHARACTERS: Final = 64 * 1024
"""A search goes on for so many characters of a file, also when its time is over: the last one comes to the end."""

_FEWEST_NAMES: Final = 100


class SearchLimits(msgspec.Struct, frozen=True):
    """How much one search may do and return.

    `seconds` is well within a request's default deadline of 30 s. One file is in memory at a time; a file above
    `file_bytes` is hardly source text. About `names` are kept of those still to visit. `result_chars` limits the paths and
    lines of the result: even at six bytes per character it fits a peer's frame limit of 10 MiB.
    """

    seconds: float = 5.0
    names: int = 50_000
    file_bytes: int = 4 * 1024 * 1024
    result_chars: int = 1024 * 1024


SEARCH_LIMITS: Final = SearchLimits()


class SearchQuery(msgspec.Struct, frozen=True):
    """The params of `fs/search`. `resume` is the place to go on from; everything before it is left out."""

    text: str
    glob: str | None = None
    ignore_case: bool = False
    words: bool = False
    limit: int = 100
    resume: SearchPlace | None = None


def search(
    root: Root, ctx: Cancellable, path: str, query: SearchQuery, limits: SearchLimits = SEARCH_LIMITS
) -> SearchResult:
    """Search the file or directory that the caller's `path` names. Raises the errors declared for `fs/search`."""
    with os_errors_as(path):
        start = root.parse_path(path)
        resume = () if query.resume is None else root.parse_path(query.resume.path)
        if query.resume is not None and resume[: len(start)] != start:
            raise FailureError(InvalidParams("resume.path", "path below the one to search", "string"))
        with closing(_Search(root, start, resume, query, limits, _Pace(ctx, limits.seconds))) as run:
            try:
                run.list_names(start)
            except NotADirectoryError:
                run.search_only_file(path)
            else:
                run.search_tree()
    return SearchResult(tuple(run.matches), run.next is not None, run.next, run.files, run.skipped)


@final
class _Pace:
    """Shares the machine: gives way to other threads, and ends a search that was cancelled or took too long."""

    def __init__(self, ctx: Cancellable, seconds: float) -> None:
        self._ctx = ctx
        self._latest = monotonic() + seconds
        self._next_pause = 0.0

    @property
    def exhausted(self) -> bool:
        """Whether the search should end at the next place from which it can go on."""
        return monotonic() >= self._latest

    def step(self) -> None:
        """Give way if it is time for it. Raises if the search was cancelled."""
        if monotonic() >= self._next_pause:
            self._ctx.check_cancelled()
            sleep(PAUSE_SECONDS)
            self._next_pause = monotonic() + STEP_SECONDS


@final
class _Search:
    """One search in progress: what it has found, and what is still to visit."""

    def __init__(
        self, root: Root, start: PathParts, resume: PathParts, query: SearchQuery, limits: SearchLimits, pace: _Pace
    ) -> None:
        self.matches: list[Match] = []
        self.files = self.skipped = 0
        self.next: SearchPlace | None = None
        self._root = root
        self._start = start
        self._resume = resume
        self._query = query
        self._limits = limits
        self._pace = pace
        self._glob = None if query.glob is None else _glob_matcher(query.glob)
        self._open: tuple[PathParts, Directory] | None = None
        # The next one last: an entry, or, with a name, the entries of a directory that sort after that name.
        self._pending: list[tuple[PathParts, str | None]] = []
        self._chars = 0

    def close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def search_only_file(self, path: str) -> None:
        with closing(self._root.open_directory(self._start[:-1])) as parent:
            data = self._content(parent, self._start[-1], path)
        self._search_text(data, self._start, path)

    def search_tree(self) -> None:
        """Visit what is pending, at least one entry that no search before has: so the last one comes to the end."""
        visited = False
        while self._pending and self.next is None:
            parts, after = self._pending[-1]
            if after is None and visited and self._pace.exhausted:
                self.next = SearchPlace("/".join(parts), 0)
                break
            del self._pending[-1]
            try:
                if after is not None:
                    self.list_names(parts, after)
                    continue
                visited = visited or parts == self._resume or parts != self._resume[: len(parts)]
                if self._visit(parts):
                    self.list_names(parts)
            except (OSError, FileTooLarge, NotText):  # or not permitted, removed or replaced since it was listed
                self.skipped += 1

    def list_names(self, parts: PathParts, after: str | None = None) -> None:
        """Make the entries of a directory pending. Raises `OSError` if it can't be listed.

        Of very many names only the first are kept; the directory is listed again for the others.
        """
        resume = self._resume
        first = resume[len(parts)] if len(resume) > len(parts) and resume[: len(parts)] == parts else None
        count = max(_FEWEST_NAMES, self._limits.names - len(self._pending))
        names, not_unicode = first_names(self._names_in(parts), count + 1, after=after, first=first)
        if after is None:
            self.skipped += not_unicode
        if len(names) > count:
            self._pending.append((parts, names[count - 1]))
        self._pending += [((*parts, name), None) for name in reversed(names[:count])]

    def _names_in(self, parts: PathParts) -> Iterator[str]:
        for name in self._directory(parts).list_names():
            self._pace.step()
            yield name

    def _directory(self, parts: PathParts) -> Directory:
        """The directory, open until another one is asked for."""
        if self._open is None or self._open[0] != parts:
            self.close()
            self._open = parts, self._root.open_directory(parts)
        return self._open[1]

    def _visit(self, parts: PathParts) -> bool:
        """Search the entry if it is a matching file. Returns whether it is a directory to be searched."""
        self._pace.step()
        if len("/".join(parts)) > MAX_PATH_CHARS:  # no request could name it
            self.skipped += 1
            return False
        directory, name = self._directory(parts[:-1]), parts[-1]
        info = directory.info(name)
        if info.kind == "file" and (self._glob is None or self._glob(parts[len(self._start) :])):
            data = self._content(directory, name, name)
            if b"\0" in data[:_BINARY_PROBE]:
                self.skipped += 1
            else:
                self._search_text(data, parts, name)
        return info.kind == "directory" and name not in VERSION_CONTROL_DIRECTORIES

    def _content(self, directory: Directory, name: str, path: str) -> bytes:
        fd = directory.open_file(name)
        try:
            size = os.fstat(fd).st_size
            if size > self._limits.file_bytes:
                raise FileTooLarge(path=path, size=size, limit=self._limits.file_bytes)
            return read_at(fd, 0, self._limits.file_bytes)
        finally:
            os.close(fd)

    def _search_text(self, data: bytes, parts: PathParts, path: str) -> None:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise NotText(path=path, offset=error.start) from error
        self.files += 1
        begin = 0
        if self._query.resume is not None and parts == self._resume:
            begin = len(data[: self._query.resume.offset].decode(errors="ignore"))
        found = "/".join(parts)
        done = offset = line_start = 0
        line = 1
        for at, is_match in _occurrences(text, begin, self._query, self._pace):
            passed = text[done:at]
            offset += len(passed.encode())
            if lines := passed.count("\n"):
                line += lines
                line_start = done + passed.rfind("\n") + 1
            done = at
            if not is_match or len(self.matches) == self._query.limit or self._chars > self._limits.result_chars:
                self.next = SearchPlace(found, offset)
                return
            match = Match(found, line, at - line_start + 1, offset, _excerpt(text, line_start, at))
            self.matches.append(match)
            self._chars += len(match.path) + len(match.text)


def _excerpt(text: str, line_start: int, at: int) -> str:
    begin = line_start if at - line_start <= LINE_CHARS // 2 else at - LINE_CHARS // 4
    end = text.find("\n", at, begin + LINE_CHARS)
    return text[begin : end if end >= 0 else begin + LINE_CHARS].removesuffix("\r")


def _occurrences(text: str, begin: int, query: SearchQuery, pace: _Pace) -> Iterator[tuple[int, bool]]:
    """The places from `begin` on where the text of a query stands. They do not overlap. Where time runs out, the last place is
    where to go on, with False.
    """
    needle, size = query.text, len(query.text)
    searched = text
    if query.ignore_case:
        needle, searched = _folded(needle), _folded(text)
    at = searched.find(needle, begin)
    while at >= 0:
        pace.step()
        if at - begin >= _FEWEST_CHARACTERS and pace.exhausted:
            yield at, False
            return
        if query.words and (_is_word(text, at - 1) or _is_word(text, at + size)):
            at = searched.find(needle, at + 1)
        else:
            yield at, True
            at = searched.find(needle, at + size)


def _folded(text: str) -> str:
    """The text without differences of case, and of the same length.

    Two characters need care: `lower` makes two of U+0130, and writes a sigma by its neighbours.
    """
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


def _is_word(text: str, at: int) -> bool:
    """Whether the character at `at` belongs to a word; False outside the text."""
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")


def _glob_matcher(glob: str) -> Callable[[PathParts], bool]:
    """Whether a file's path below the start matches, or its name if the pattern holds no slash."""
    matches = re.compile(translate(glob)).match
    by_path = "/" in glob
    return lambda below: matches("/".join(below) if by_path else below[-1]) is not None
