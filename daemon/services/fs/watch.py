"""Tells what changes below a directory of the root, by looking at it again and again and comparing.

The comparison is the truth on every system; `waiting` only says when to look. So a change is told as long as its effect
lasts, however many happen at once and however slowly events are read, and nothing outside the root is ever looked at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from time import monotonic
from typing import TypeAlias, final

from .change_signal import Waiting, best_waiting
from .directory import Directory, Facts, is_text
from .root import Root, os_errors_as
from .types import (
    DEFAULT_WATCH_SECONDS,
    MAX_EVENT_CHANGES,
    MAX_PATH_CHARS,
    MAX_WATCH_ENTRIES,
    Cancellable,
    Change,
    Changes,
    PathText,
    TooManyEntries,
    WatchInterval,
)

MAX_WATCHES = 16
"""Watches at the same time. Each may keep a worker thread busy, and remembers up to 50,000 names."""

SHARE_OF_WAITING = 4
"""A look is followed by a pause of at least so many times what it took: large trees don't keep a processor busy."""

Names: TypeAlias = tuple[str, ...]
Snapshot: TypeAlias = dict[Names, Facts]


@final
class Watching:
    """The watches of one root, which must outlive them. `waiting` chooses how a watch waits for the next look.

    `most` is how many names one watch takes.
    """

    def __init__(
        self, root: Root, *, waiting: Callable[[str], Waiting] = best_waiting, most: int = MAX_WATCH_ENTRIES
    ) -> None:
        self._root = root
        self._most = most
        self._waiting = waiting

    async def watch(
        self,
        ctx: Cancellable,
        path: PathText = ".",
        recursive: bool = True,
        interval: WatchInterval = DEFAULT_WATCH_SECONDS,
    ) -> AsyncIterator[Changes]:
        """Tell what is created, modified and deleted in a directory, with `recursive` also below it.

        The first event holds no changes: watching has begun. Symbolic links are watched as such and not followed; the
        stores of version control are passed over unless `path` names one. It ends with an error when the directory goes
        away or holds more names than can be watched.
        """
        import anyio  # late: the first replies leave without an event loop

        with os_errors_as(path):
            start = self._root.names(path)
            look = _Look(self._root, ctx, path, start, most=self._most, recursive=recursive)
            waiting = self._waiting(self._root.path)
            try:
                await anyio.to_thread.run_sync(look.snapshot)
                await waiting.watch(look.directories)
                before = await anyio.to_thread.run_sync(look.snapshot)  # what came before the waiting could see it
                await waiting.watch(look.directories)
                yield Changes(())
                while True:
                    await waiting.wait(max(interval, look.seconds * SHARE_OF_WAITING))
                    after = await anyio.to_thread.run_sync(look.snapshot)
                    for changes in _events(before, after):
                        yield changes
                    await waiting.watch(look.directories)
                    before = after
            finally:
                await waiting.close()


@final
class _Look:
    """Takes snapshots of one directory. `seconds` is what the last one took, `directories` are those it looked into."""

    def __init__(self, root: Root, ctx: Cancellable, path: str, start: Names, *, most: int, recursive: bool) -> None:
        self._root = root
        self._ctx = ctx
        self._path = path
        self._start = start
        self._most = most
        self._recursive = recursive
        self.seconds = 0.0
        self.directories: frozenset[Names] = frozenset()
        from .search import VERSION_STORES  # late: the first search or watch pays for it, not the start

        self._stores = VERSION_STORES

    def snapshot(self) -> Snapshot:
        """What is there now. Runs in a worker thread. Raises the `OSError` of the directory itself, and TooManyEntries."""
        began = monotonic()
        found: Snapshot = {}
        entered = {self._start}
        with self._root.enter(self._start) as top:
            pending = self._take(top, self._start, found)
        while pending:
            names = pending.pop()
            try:
                with self._root.enter(names) as directory:
                    pending += self._take(directory, names, found)
                    entered.add(names)
            except OSError:  # closed to us, or removed or swapped for something else: it holds nothing for callers
                continue
        self.seconds = monotonic() - began
        self.directories = frozenset(entered)
        return found

    def _take(self, directory: Directory, names: Names, found: Snapshot) -> list[Names]:
        """Add what is in one directory to `found`; the directories in it that are to be looked into."""
        self._ctx.check_cancelled()
        below: list[Names] = []
        for name in directory.names():
            here = (*names, name)
            if not is_text(name) or len("/".join(here)) > MAX_PATH_CHARS:  # nobody could ask for it
                continue
            if len(found) == self._most:
                raise TooManyEntries(path=self._path, limit=self._most)
            try:
                facts = found[here] = directory.facts(name)
            except OSError:  # removed since it was listed
                continue
            if self._recursive and facts.kind == "directory" and name not in self._stores:
                below.append(here)
        return below


def _events(before: Snapshot, after: Snapshot) -> Iterator[Changes]:
    """The difference, in events of a bounded size."""
    changes = [change for names in sorted(before.keys() | after.keys()) for change in _changes(names, before, after)]
    for first in range(0, len(changes), MAX_EVENT_CHANGES):
        yield Changes(tuple(changes[first : first + MAX_EVENT_CHANGES]))


def _changes(names: Names, before: Snapshot, after: Snapshot) -> Iterator[Change]:
    old, new = before.get(names), after.get(names)
    if old == new:
        return
    path = "/".join(names)
    if old is not None and new is not None and old.kind == new.kind:
        if new.kind != "directory":  # a directory's time tells what its entries tell better
            yield Change("modified", path, new.kind)
        return
    if old is not None:
        yield Change("deleted", path, old.kind)
    if new is not None:
        yield Change("created", path, new.kind)
