"""Reports what changes below a directory of the root: scans it repeatedly and compares.

A report of the system (the extra `watch`) is only a reason to scan. So a change is reported as long as its
effect lasts, however many happen together and however slowly the events are read. Never looks outside the root.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from sys import getsizeof
from time import monotonic
from typing import Any, TypeAlias, final  # Any: watchfiles may not be installed

from ..errors import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio
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

FALLBACK_SECONDS = 10.0
"""Time to the next scan if the system reports nothing. Network file systems never report."""

_NATIVE_THREADS = 2
"""Threads of one watcher of `watchfiles`, with one to spare for whatever else starts at this moment. It ends the whole
process if the system refuses it one."""

_DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS = 50, 20, 200

_Tree: TypeAlias = dict[PathParts, FileInfo]


@final
class FileWatcher:
    """The watches of one root, which must outlive them.

    `max_entries` is how many names one watch takes. `native` says whether the system reports changes, which needs the
    package `watchfiles`; None: if that is installed.
    """

    def __init__(self, root: Root, *, native: bool | None = None, max_entries: int = MAX_WATCH_ENTRIES) -> None:
        self._root = root
        self._max_entries = max_entries
        self._native = native

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
        from importlib.util import find_spec  # late: only a watch needs it

        with os_errors_as(path):
            start = self._root.parse_path(path)
            scanner = _TreeScanner(self._root, ctx, path, start, max_entries=self._max_entries, recursive=recursive)
            native = find_spec("watchfiles") is not None if self._native is None else self._native
            signal = _ChangeSignal(self._root.path, native=native)
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


@final
class _ChangeSignal:
    """Says when to scan again: after an interval, or if `native`, when the system has reported a change.

    `watchfiles` watches each directory by itself and none recursively: it would follow symbolic links out of the root.
    """

    def __init__(self, root: str, *, native: bool) -> None:
        self._root = root
        self._native = native
        self._directories: frozenset[PathParts] = frozenset()
        self._watcher: Any = None  # a `RustNotify`
        self._just_started = False  # something may have changed before the new watches were in place

    async def watch(self, directories: frozenset[PathParts]) -> None:
        """From now on, wait for changes of the entries in these directories."""
        if not self._native or directories == self._directories:
            return
        await self.close()
        self._directories = directories
        await self._next()  # the watches are in place when the first report, or its time-out, has come
        self._just_started = True

    async def wait(self, interval: float) -> None:
        """Return when it is time to scan again: `interval` seconds from now or later."""
        earliest = monotonic() + interval
        if self._native:
            latest = monotonic() + (0 if self._just_started else max(FALLBACK_SECONDS, interval))
            self._just_started = False
            while not await self._next() and monotonic() < latest:
                pass
        await anyio.sleep(max(0.0, earliest - monotonic()))

    async def close(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    async def _next(self) -> bool:
        """Whether a change was reported, waiting 200 ms at most."""
        try:
            if self._watcher is None:
                self._watcher = self._open()
            watcher = self._watcher
            reports = await anyio.to_thread.run_sync(watcher.watch, _DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS, None)
            return isinstance(reports, set)
        except (OSError, RuntimeError):  # a directory has gone, or the system has no watches or threads left
            await self.close()
            self._directories = frozenset()  # they are watched anew after the next scan
            return True

    def _open(self) -> Any:
        """Begin to watch. Raises `OSError`, and `RuntimeError` if there may be no thread for it."""
        from importlib import import_module  # late, and by name: an extra, unknown to type checkers without it

        from ..daemon.process.children import starting, threads_to_spare

        paths = [os.path.join(self._root, *parts) for parts in self._directories]
        with starting:
            if not threads_to_spare(_NATIVE_THREADS):
                raise RuntimeError("no thread to spare")
            debug, polling, poll_delay_ms, recursive, ignore_denied = False, False, 0, False, True
            notify = import_module("watchfiles._rust_notify").RustNotify
            return notify(paths, debug, polling, poll_delay_ms, recursive, ignore_denied)


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
