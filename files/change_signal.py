"""Tells a watch when to scan again: after an interval, or when the system reports a change (the extra `watch`).

A report is only a reason to scan: it is never passed on, and without any report a scan follows after a longer time.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import Any, Protocol, final  # Any: watchfiles may not be installed

from ..daemon.process.forks import starting, threads_to_spare
from ..lazy import anyio
from .directory import PathParts

FALLBACK_SECONDS = 10.0
"""Time to the next scan if the system reports nothing. Network file systems never report."""


_NATIVE_THREADS = 2
"""Threads of one watcher of `watchfiles`, with one to spare for whatever else starts at this moment. It ends the whole
process if the system refuses it one."""


_DEBOUNCE_MS, _STEP_MS, _TIMEOUT_MS = 50, 20, 200


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
        self._watcher: Any = None  # a `RustNotify`
        self._just_started = False  # something may have changed before the new watches were in place

    async def watch(self, directories: frozenset[PathParts]) -> None:
        if directories == self._directories:
            return
        await self.close()
        self._directories = directories
        await self._next()  # the watches are in place when the first report, or its time-out, has come
        self._just_started = True

    async def wait(self, interval: float) -> None:
        earliest = monotonic() + interval
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

        paths = [os.path.join(self._root, *parts) for parts in self._directories]
        with starting:
            if not threads_to_spare(_NATIVE_THREADS):
                raise RuntimeError("no thread to spare")
            debug, polling, poll_delay_ms, recursive, ignore_denied = False, False, 0, False, True
            notify = import_module("watchfiles._rust_notify").RustNotify
            return notify(paths, debug, polling, poll_delay_ms, recursive, ignore_denied)
