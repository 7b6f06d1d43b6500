"""Notices that a process whose end ends the daemon has gone, even when another process keeps stdin open.

A pidfd becomes readable when its process ends (Linux 5.3 and later); elsewhere the process is looked for once a second.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, final

from ...lazy import anyio

POLL_SECONDS: Final = 1.0

MOST_WATCHED: Final = 16
"""Processes that are watched at a time: each takes a descriptor and a task. Clients name one, or their parent too."""

INIT_PIDS: Final = (0, 1)
"""What `getppid` returns when the parent has gone already or is outside our pid namespace."""


@final
class ProcessWatch:
    """One process. `alive()` tells whether it runs, `ended()` waits for its end.

    `pidfd` becomes readable when it has ended; None where there is no such thing.
    """

    def __init__(self, pid: int, *, is_parent: bool) -> None:
        self.pid = pid
        self._is_parent = is_parent
        self.pidfd = _open_pidfd(pid)

    def alive(self) -> bool:
        if self._is_parent and sys.platform != "win32":
            return os.getppid() == self.pid  # a zombie counts as gone, a reused number too
        return exists(self.pid)

    async def ended(self, on_end: Callable[[], None]) -> None:
        """Wait until the process has ended, then call `on_end`."""
        while self.alive():  # asked before the wait too: the number may have changed hands before the pidfd was open
            if self.pidfd is not None:
                await anyio.wait_readable(self.pidfd)
                break
            await anyio.sleep(POLL_SECONDS)
        on_end()


@final
class ProcessWatches:
    """The processes whose end ends the daemon. `on_end()` is called on the loop when one of them has ended."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._watches: dict[int, ProcessWatch] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(self._watches)

    @property
    def full(self) -> bool:
        """True once as many processes are watched as may be."""
        return len(self._watches) >= MOST_WATCHED

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Wait in this task group from now on, for those that were added before too."""
        self._tasks = tasks
        for watch in self._watches.values():
            tasks.start_soon(watch.ended, self._on_end)

    def add(self, watch: ProcessWatch) -> None:
        """End with this process. Adding one twice changes nothing."""
        if watch.pid in self._watches:
            return
        self._watches[watch.pid] = watch
        if self._tasks is not None:
            self._tasks.start_soon(watch.ended, self._on_end)

    def add_client(self, pid: int) -> bool:
        """End with the process that a client names as its own; False where there is no such process here, or if `full`."""
        if pid in self._watches:
            return True
        watch = None if self.full else watch_client(pid)
        if watch is None:
            return False
        self.add(watch)
        return True


def watch_parent() -> ProcessWatch | None:
    """The process that spawned us; None where it has gone already or can't be seen."""
    pid = os.getppid()
    return None if pid in INIT_PIDS else ProcessWatch(pid, is_parent=True)


def parent_has_gone() -> bool:
    """Whether the process that started us had ended before we could look, so that init has adopted us. POSIX.

    Init as the starter (systemd, a container's entry point) gives us a process group of our own, or its own one. A shell or
    an editor that has gone leaves its group.
    """
    if sys.platform == "win32" or os.getppid() != 1:
        return False
    return os.getpgid(0) not in (os.getpid(), 0, 1)


def watch_client(pid: int) -> ProcessWatch | None:
    """A process that the client named as its own (`initialize.processId`, `--parent-pid`).

    None where there is no such process here: a client in another container or on another machine names a number that
    means nothing to us.
    """
    return ProcessWatch(pid, is_parent=pid == os.getppid()) if pid > 0 and exists(pid) else None


def exists(pid: int) -> bool:
    """Whether a process of this number runs, ours to signal or not."""
    if sys.platform == "win32":
        return _exists_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return pid < 2**31
    return True


def _open_pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # an old kernel, a sandbox, or gone already: the poll finds out
        return None


def _exists_on_windows(pid: int) -> bool:
    import ctypes  # late: Windows only

    if pid >= 2**32:
        return False
    synchronize, timed_out, access_denied = 0x00100000, 0x102, 5
    kernel = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009 - unknown to type checkers elsewhere
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(synchronize, False, pid)
    if not handle:  # a process with more rights than ours can't be opened, and runs
        return bool(getattr(ctypes, "get_last_error")() == access_denied)  # noqa: B009 - likewise
    handle = ctypes.c_void_p(handle)
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == timed_out)
    finally:
        kernel.CloseHandle(handle)
