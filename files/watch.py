"""Reports what changes below a directory of the root: scans it repeatedly and compares.

A report of the system (the extra `watch`) is only a reason to scan. So a change is reported as long as its
effect lasts, however many happen together and however slowly the events are read. Never looks outside the root.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from functools import partial
from sys import getsizeof
from time import monotonic
from typing import Any, NamedTuple, TypeAlias, final  # Any: watchfiles may not be installed

from ..errors import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio
from . import types
from .root import Directory, FileInfo, PathParts, Root, is_unicode, os_errors_as
from .types import MAX_EVENT_CHANGES, MAX_PATH_CHARS, Change, Changes

MAX_WATCHES = 16
"""Watches at the same time. Each may keep a worker thread busy, and remembers up to 50,000 names, counted as memory."""

_LISTINGS_HELD = 2
"""A scan makes a second listing beside the one that it is compared with."""

_ENTRY_BYTES = 200
"""Bytes that an entry of a listing takes besides its name (CPython, 64 bit): measured, not exact."""

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

    def __init__(self, root: Root, *, native: bool | None = None, max_entries: int = types.MAX_WATCH_ENTRIES) -> None:
        self._root = root
        self._max_entries = max_entries
        self._native = native

    async def watch(
        self,
        ctx: types.Holder,
        path: types.PathText = ".",
        recursive: bool = True,
        interval: types.WatchInterval = types.DEFAULT_WATCH_SECONDS,
    ) -> AsyncIterator[Changes]:
        """Report what is created, modified and deleted in a directory, with `recursive` also below it.

        The first event is empty: watching has begun. Symbolic links are watched as such and not followed. The
        directories of version control are left out unless `path` names one. The subscription ends with an error when
        the directory goes away or holds more names than can be watched.
        """
        from importlib.util import find_spec  # late: only a watch needs it

        with os_errors_as(path):
            start = self._root.parse_path(path)
            native = find_spec("watchfiles") is not None if self._native is None else self._native
            signal = _ChangeSignal(self._root.path, native=native)
            held = 0

            async def scan() -> _Scan:
                nonlocal held
                scan = partial(_scan, self._root, ctx, path, start, recursive=recursive, max_entries=self._max_entries)
                found = await _in_thread(scan)
                more = _LISTINGS_HELD * found.size - held
                ctx.hold_memory(more)
                held += more
                await signal.watch(found.directories)
                return found

            try:
                await scan()
                before = await scan()  # changes from before the signal was in place
                yield Changes(())
                while True:
                    await signal.wait(max(interval, before.seconds * PAUSE_FACTOR))
                    after = await scan()
                    for changes in _events(before.tree, after.tree):
                        yield changes
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


class _Scan(NamedTuple):
    """A directory as it was: its entries, the directories that were read, the scan's duration, and about its size in bytes."""

    tree: _Tree
    directories: frozenset[PathParts]
    seconds: float
    size: int


async def _in_thread(scan: Callable[[], _Scan]) -> _Scan:
    """The result of `scan()` in a thread. Fails as OVERLOADED where the system has no thread left."""
    begun = False

    def run() -> _Scan:
        nonlocal begun
        begun = True
        return scan()

    try:
        return await anyio.to_thread.run_sync(run)
    except (RuntimeError, MemoryError) as exc:
        if begun:
            raise
        raise FailureError(Overloaded()) from exc


def _scan(
    root: Root, ctx: types.Cancellable, path: str, start: PathParts, *, recursive: bool, max_entries: int
) -> _Scan:
    """All entries below `start` as they are now. Raises the `OSError` of this directory itself, and `TooManyEntries`."""
    from .search import VERSION_CONTROL_DIRECTORIES  # late: loaded by the first search or watch, not at the start

    began = monotonic()
    tree: _Tree = {}
    read: set[PathParts] = set()
    pending = [start]
    while pending:
        above = pending.pop()
        ctx.check_cancelled()
        try:
            with closing(root.open_directory(above)) as directory:
                for parts, info in _entries(directory, above):
                    if len(tree) == max_entries:
                        raise types.TooManyEntries(path=path, limit=max_entries)
                    tree[parts] = info
                    if recursive and info.kind == "directory" and parts[-1] not in VERSION_CONTROL_DIRECTORIES:
                        pending.append(parts)
                read.add(above)
        except OSError:  # not permitted, removed, or replaced by something else
            if above == start:
                raise
    size = sum(_ENTRY_BYTES + getsizeof(parts[-1]) for parts in tree)
    return _Scan(tree, frozenset(read), monotonic() - began, size)


def _entries(directory: Directory, above: PathParts) -> Iterator[tuple[PathParts, FileInfo]]:
    for name in directory.list_names():
        parts = (*above, name)
        if is_unicode(name) and len("/".join(parts)) <= MAX_PATH_CHARS:  # no request could name others
            try:
                info = directory.info(name)
            except OSError:  # removed since it was listed
                continue
            yield parts, info


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
