"""Reports what changes below a directory of the root: scans it repeatedly and compares.

The comparison decides on every system; `change_signal` only says when to scan. So a change is reported as long as its
effect lasts, however many happen together and however slowly the events are read. Never looks outside the root.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from sys import getsizeof
from time import monotonic
from typing import TypeAlias, final

from ..errors import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio
from .change_signal import ChangeSignal, best_change_signal
from .directory import Directory, FileInfo, PathParts, is_unicode
from .root import Root, os_errors_as
from .types import (
    DEFAULT_WATCH_SECONDS,
    MAX_EVENT_CHANGES,
    MAX_PATH_CHARS,
    MAX_WATCH_ENTRIES,
    Cancellable,
    Change,
    Changes,
    Holder,
    PathText,
    TooManyEntries,
    WatchInterval,
)

MAX_WATCHES = 16
"""Watches at the same time. Each may keep a worker thread busy, and remembers up to 50,000 names, counted as memory."""

_LISTINGS_HELD = 2
"""A scan makes a second listing beside the one that it is compared with."""

_ENTRY_BYTES = 200
"""What an entry of a listing takes besides its name (CPython, 64 bit): measured, not exact."""

PAUSE_FACTOR = 4
"""The pause after a scan is at least this many times as long as the scan, so that a large tree leaves the CPU free."""

_Tree: TypeAlias = dict[PathParts, FileInfo]


@final
class FileWatcher:
    """The watches of one root, which must outlive them.

    `change_signal` makes the signal of each watch from the root's path. `max_entries` is how many names one watch takes.
    """

    def __init__(
        self,
        root: Root,
        *,
        change_signal: Callable[[str], ChangeSignal] = best_change_signal,
        max_entries: int = MAX_WATCH_ENTRIES,
    ) -> None:
        self._root = root
        self._max_entries = max_entries
        self._change_signal = change_signal

    async def watch(
        self,
        ctx: Holder,
        path: PathText = ".",
        recursive: bool = True,
        interval: WatchInterval = DEFAULT_WATCH_SECONDS,
    ) -> AsyncIterator[Changes]:
        """Report what is created, modified and deleted in a directory, with `recursive` also below it.

        The first event is empty: watching has begun. Symbolic links are watched as such and not followed. The
        directories of version control are left out unless `path` names one. The subscription ends with an error when
        the directory goes away or holds more names than can be watched.
        """
        with os_errors_as(path):
            start = self._root.parse_path(path)
            scanner = _TreeScanner(self._root, ctx, path, start, max_entries=self._max_entries, recursive=recursive)
            signal = self._change_signal(self._root.path)
            held = 0

            def hold() -> None:
                nonlocal held
                more = _LISTINGS_HELD * scanner.size - held
                ctx.hold_memory(more)
                held += more

            try:
                await _in_thread(scanner.scan)
                hold()
                await signal.watch(scanner.directories)
                before = await _in_thread(scanner.scan)  # changes from before the signal was in place
                await signal.watch(scanner.directories)
                yield Changes(())
                while True:
                    await signal.wait(max(interval, scanner.seconds * PAUSE_FACTOR))
                    after = await _in_thread(scanner.scan)
                    hold()
                    for changes in _events(before, after):
                        yield changes
                    await signal.watch(scanner.directories)
                    before = after
            finally:
                ctx.hold_memory(-held)
                await signal.close()


async def _in_thread(work: Callable[[], _Tree]) -> _Tree:
    """The result of `work()` in a thread. Fails as OVERLOADED where the system has no thread left."""
    begun = False

    def run() -> _Tree:
        nonlocal begun
        begun = True
        return work()

    try:
        return await anyio.to_thread.run_sync(run)
    except (RuntimeError, MemoryError) as exc:
        if begun:
            raise
        raise FailureError(Overloaded()) from exc


@final
class _TreeScanner:
    """Scans one directory. After a scan, `seconds` is its duration, `size` about what its listing takes in bytes, and
    `directories` are those that it has read.
    """

    def __init__(
        self, root: Root, ctx: Cancellable, path: str, start: PathParts, *, max_entries: int, recursive: bool
    ) -> None:
        self._root = root
        self._ctx = ctx
        self._path = path
        self._start = start
        self._max_entries = max_entries
        self._recursive = recursive
        self.seconds = 0.0
        self.size = 0
        self.directories: frozenset[PathParts] = frozenset()
        from .search import VERSION_CONTROL_DIRECTORIES  # late: loaded by the first search or watch, not at the start

        self._excluded = VERSION_CONTROL_DIRECTORIES

    def scan(self) -> _Tree:
        """All entries as they are now. Runs in a worker thread.

        Raises the `OSError` of the start directory itself, and `TooManyEntries`.
        """
        began = monotonic()
        tree: _Tree = {}
        read = {self._start}
        with self._root.open_directory(self._start) as top:
            pending = self._add_entries(top, self._start, tree)
        while pending:
            parts = pending.pop()
            try:
                with self._root.open_directory(parts) as directory:
                    pending += self._add_entries(directory, parts, tree)
                    read.add(parts)
            except OSError:  # not permitted, removed, or replaced by something else
                continue
        self.seconds = monotonic() - began
        self.size = sum(_ENTRY_BYTES + getsizeof(parts[-1]) for parts in tree)
        self.directories = frozenset(read)
        return tree

    def _add_entries(self, directory: Directory, parts: PathParts, tree: _Tree) -> list[PathParts]:
        """Add the entries of one directory to `tree`. Returns the directories among them that are to be scanned."""
        self._ctx.check_cancelled()
        below: list[PathParts] = []
        for name in directory.list_names():
            entry = (*parts, name)
            if not is_unicode(name) or len("/".join(entry)) > MAX_PATH_CHARS:  # no request could name it
                continue
            if len(tree) == self._max_entries:
                raise TooManyEntries(path=self._path, limit=self._max_entries)
            try:
                info = tree[entry] = directory.info(name)
            except OSError:  # removed since it was listed
                continue
            if self._recursive and info.kind == "directory" and name not in self._excluded:
                below.append(entry)
        return below


def _events(before: _Tree, after: _Tree) -> Iterator[Changes]:
    """The differences, in events of at most `MAX_EVENT_CHANGES` changes."""
    changes = [change for parts in sorted(before.keys() | after.keys()) for change in _changes(parts, before, after)]
    for first in range(0, len(changes), MAX_EVENT_CHANGES):
        yield Changes(tuple(changes[first : first + MAX_EVENT_CHANGES]))


def _changes(parts: PathParts, before: _Tree, after: _Tree) -> Iterator[Change]:
    old, new = before.get(parts), after.get(parts)
    if old == new:
        return
    path = "/".join(parts)
    if old is not None and new is not None and old.kind == new.kind:
        if new.kind != "directory":  # a directory's time changes with its entries, which are reported themselves
            yield Change("modified", path, new.kind)
        return
    if old is not None:
        yield Change("deleted", path, old.kind)
    if new is not None:
        yield Change("created", path, new.kind)
