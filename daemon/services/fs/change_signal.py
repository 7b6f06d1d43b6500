"""Tells a watch when to scan again: after an interval, or when the system reports a change (the extra `watch`).

A report is only a reason to scan: it is never passed on, and without any report a scan follows after a longer time.
"""

from __future__ import annotations

import os
from _thread import LockType
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import Any, Protocol, final  # Any: watchfiles may not be installed

from .directory import PathParts

FALLBACK_SECONDS = 10.0
"""Time to the next scan if the system reports nothing. Network file systems never report."""


_NATIVE_THREADS = 2
"""Threads of one watcher of `watchfiles`, with one to spare for whatever else starts at this moment. It ends the whole
process if the system refuses it one."""


def threads_to_spare(count: int) -> bool:
    """Whether the system lets this process have so many more threads. Has them for a moment, to find out."""
    from _thread import allocate_lock, start_new_thread  # not `threading`, which waits for each to begin

    ended = [allocate_lock() for _ in range(count)]
    begun = 0
    gate = allocate_lock()
    gate.acquire()

    def wait(lock: LockType) -> None:
        with gate:
            lock.release()

    try:
        for lock in ended:
            lock.acquire()
            start_new_thread(wait, (lock,))
            begun += 1
    except (RuntimeError, MemoryError):
        pass
    gate.release()
    for lock in ended[:begun]:
        lock.acquire(timeout=_PROBE_SECONDS)
    return begun == count


_PROBE_SECONDS = 1.0
"""How long a thread may take to end. It ends at once; the bound is for a machine that has no memory left."""


class ChangeSignal(Protocol):
    """One per watch."""

    async def watch(self, directories: frozenset[PathParts]) -> None:
        """From now on, wait for changes of the entries in these directories."""
        ...

    async def wait(self, interval: float) -> None:
        """Return when it is time to scan again: `interval` seconds from now or later."""
        ...

    async def close(self) -> None: ...


def best_change_signal(root: str) -> ChangeSignal:
    """The better signal that this installation has. `root` is the path of the root."""
    from importlib.util import find_spec  # late: only a watch needs it

    return WatchfilesSignal(root) if find_spec("watchfiles") else PollingSignal(root)


@final
class PollingSignal:
    """Time to scan after every interval."""

    def __init__(self, root: str) -> None:
        pass

    async def watch(self, directories: frozenset[PathParts]) -> None:
        pass

    async def wait(self, interval: float) -> None:
        import anyio  # late: the first replies leave without an event loop

        await anyio.sleep(interval)

    async def close(self) -> None:
        pass


@final
class WatchfilesSignal:
    """Time to scan when the system has reported a change, through the package `watchfiles`.

    Each directory is watched by itself and none recursively: `watchfiles` would follow symbolic links out of the root.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._directories: frozenset[PathParts] = frozenset()
        self._reports: AsyncGenerator[set[Any], None] | None = None
        self._just_started = False  # something may have changed before the new watches were in place

    async def watch(self, directories: frozenset[PathParts]) -> None:
        if directories == self._directories:
            return
        await self.close()
        self._directories = directories
        await self._next()  # the watches are in place when the first report, or its time-out, has come
        self._just_started = True

    async def wait(self, interval: float) -> None:
        import anyio  # late: the first replies leave without an event loop

        earliest = monotonic() + interval
        latest = monotonic() + (0 if self._just_started else max(FALLBACK_SECONDS, interval))
        self._just_started = False
        while not await self._next() and monotonic() < latest:
            pass
        await anyio.sleep(max(0.0, earliest - monotonic()))

    async def close(self) -> None:
        if self._reports is not None:
            await self._reports.aclose()
            self._reports = None

    async def _next(self) -> bool:
        """Whether a change was reported, waiting 200 ms at most."""
        if self._reports is None:
            if not threads_to_spare(_NATIVE_THREADS):
                self._directories = frozenset()  # tried again after the next scan, which comes after an interval
                return True
            self._reports = self._open()
        try:
            return bool(await anext(self._reports))
        except (OSError, RuntimeError, ExceptionGroup):  # a directory has gone, or the system has no watches left
            await self.close()
            self._directories = frozenset()  # they are watched anew after the next scan
            return True

    def _open(self) -> AsyncGenerator[set[Any], None]:
        from importlib import import_module  # late, and by name: an extra, unknown to type checkers without it

        awatch: Callable[..., AsyncGenerator[set[Any], None]] = import_module("watchfiles").awatch
        return awatch(
            *(os.path.join(self._root, *parts) for parts in self._directories),
            watch_filter=None,
            debounce=50,
            step=20,
            rust_timeout=200,
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        )
