"""Notices that a process whose end ends the daemon has gone, even when another process keeps stdin open.

A pidfd becomes readable when its process ends (Linux 5.3 and later); elsewhere the process is looked for once a second.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import Final, final

from ...lazy import anyio

# Notices, while a handler blocks the event loop, that the parent has gone or that the client has hung up.
#
# A thread of its own, asleep in the kernel. While the loop runs, the daemon sees both by itself: end of input is read like any
# input.


POLLHUP, POLLERR = 0x10, 0x08
"""Events that poll(2) reports unasked, spelled out because Windows has no names for them."""

HUNG_UP: Final = POLLHUP | POLLERR | (select.POLLRDHUP if sys.platform == "linux" else 0)


@final
class HangupWatch:
    """Calls `on_parent_gone()` when the parent has ended, and `on_hung_up()` when the input's other end is closed and
    `pulse()` has not changed for `grace` seconds since. Each once, in a thread of its own.
    """

    def __init__(
        self,
        parent: ProcessWatch | None,
        stdin: int,
        *,
        grace: float,
        pulse: Callable[[], int],
        on_parent_gone: Callable[[], None],
        on_hung_up: Callable[[], None],
    ) -> None:
        self._parent = parent
        self._stdin = stdin
        self._grace = grace
        self._pulse = pulse
        self._on_parent_gone = on_parent_gone
        self._on_hung_up = on_hung_up

    def start(self) -> None:
        threading.Thread(target=self._watch, name="discreet-hangup-watch", daemon=True).start()

    def _watch(self) -> None:
        waiting = _Waiting(self._stdin, None if self._parent is None else self._parent.pidfd)
        beat: int | None = None
        while True:
            interval = max(self._grace, 0.05) if beat is not None else None
            if self._parent is not None and self._parent.pidfd is None:
                interval = min(POLL_SECONDS, interval or POLL_SECONDS)
            hung_up = waiting.wait(interval)
            if self._parent is not None and not self._parent.alive():
                return self._on_parent_gone()
            if hung_up:
                beat = self._pulse()
            elif beat is not None and beat == self._pulse():
                return self._on_hung_up()
            elif beat is not None:
                beat = self._pulse()


@final
class _Waiting:
    """Sleeps until the input is hung up (told once), a pidfd is readable, or the time is over."""

    def __init__(self, stdin: int, pidfd: int | None) -> None:
        self._poll = select.poll() if hasattr(select, "poll") else None
        self._stdin = stdin
        if self._poll is not None:
            self._poll.register(stdin, HUNG_UP)
            if pidfd is not None:
                self._poll.register(pidfd, select.POLLIN)

    def wait(self, seconds: float | None) -> bool:
        """Whether the input was found hung up, the first time that it was."""
        if self._poll is None:  # Windows: only sockets can be polled
            threading.Event().wait(POLL_SECONDS if seconds is None else seconds)
            return False
        events = self._poll.poll(None if seconds is None else seconds * 1000)
        mask = dict(events).get(self._stdin, 0)
        if mask:  # or POLLNVAL: closed, or a device that macOS can't poll; it would be told for ever
            self._poll.unregister(self._stdin)
        return bool(mask & HUNG_UP)


POLL_SECONDS: Final = 1.0

MOST_WATCHED: Final = 16
"""Processes that are watched at a time: each takes a descriptor and a task. Clients name one, or their parent too."""

INIT_PIDS: Final = (0, 1)
"""The result of `getppid` when the parent has gone already or is outside our pid namespace."""


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
