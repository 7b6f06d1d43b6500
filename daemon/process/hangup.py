"""Notices, while a handler blocks the event loop, that the parent has gone or that the client has hung up.

A thread of its own, asleep in the kernel. While the loop runs, the daemon sees both by itself: end of input is read like any
input.
"""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Callable
from typing import Final, final

from .liveness import POLL_SECONDS, ProcessWatch

POLLHUP, POLLERR = 0x10, 0x08
"""What poll(2) reports unasked, spelled out because Windows has no names for them."""

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


def has_hung_up(fd: int) -> bool:
    """Whether the other end of a pipe or socket is closed; False where that can't be asked."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(fd, 0)  # what says that is reported unasked
    return any(mask & (POLLHUP | POLLERR) for _, mask in poll.poll(0))


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
