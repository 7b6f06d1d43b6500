"""Says in the log that a handler keeps the event loop from everybody else, and where it stands.

Handlers mark each of their steps on the loop. A thread looks at the marks four times an interval while there are steps, and
ends a second after the last one: an idle daemon has no such thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from os.path import basename
from time import monotonic
from types import FrameType
from typing import Final, final

from ..logs import log

LOOKS: Final = 4
"""How many times an interval the thread looks."""

LINGER_SECONDS: Final = 1.0
"""How long the thread looks on after the last step."""

MAX_FRAMES: Final = 16

_MARKERS: Final = ("run_now", "in_context")
"""The functions of this package that mark steps: the frames outside of theirs are the loop's."""


@final
class LoopWatch:
    """One per event loop. A step of more than `seconds` is logged, once; with None nothing is watched.

    `start_thread` starts a function in a thread of its own, or raises `RuntimeError`.
    """

    def __init__(
        self, seconds: float | None, *, start_thread: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        self._seconds = seconds
        self._start_thread = start_thread or _start_thread
        self._looking = seconds is None
        self._method: str | None = None
        self._steps = 0
        self._blocked_since: float | None = None
        self._loop_thread = 0

    # No clock in these two, which run at every step of every handler: the thread has one.

    def enter(self, method: str) -> str | None:
        """A handler's step begins on the loop, in this thread. Pass what is returned to `leave`."""
        before, self._method = self._method, method
        self._steps += 1
        if not self._looking:
            self._look()
        return before

    def leave(self, before: str | None) -> None:
        """The step has ended: the handler has returned, or waits. `before` is the operation that this was a step of."""
        if self._blocked_since is not None:
            seconds, self._blocked_since = round(monotonic() - self._blocked_since, 2), None
            log.warning("loop.resumed", method=self._method, seconds=seconds)
        self._method = before
        self._steps += 1

    def _look(self) -> None:
        self._looking = True
        self._loop_thread = threading.get_ident()
        try:
            self._start_thread(self._watch)
        except RuntimeError:  # the system has no thread: the next step tries again
            self._looking = False

    def _watch(self) -> None:
        while self._looking:
            seen = self._watch_until_idle()
            self._looking = False
            if self._steps != seen:  # one that came since did not start a thread
                self._looking = True

    def _watch_until_idle(self) -> int:
        """Look until there is no step for a while; how many there were."""
        assert self._seconds is not None
        pause, seen, since = threading.Event(), self._steps, monotonic()
        while self._method is not None or monotonic() - since < LINGER_SECONDS:
            pause.wait(self._seconds / LOOKS)
            if self._steps != seen:
                seen, since = self._steps, monotonic()
            elif self._method is not None and self._blocked_since is None and monotonic() - since >= self._seconds:
                self._tell(seen, self._method, since)
        return seen

    def _tell(self, seen: int, method: str, since: float) -> None:
        at = _stack(sys._current_frames().get(self._loop_thread))
        if seen == self._steps:  # so the frames are this step's
            self._blocked_since = since
            log.warning("loop.blocked", method=method, seconds=self._seconds, at=at)


def _start_thread(run: Callable[[], None]) -> None:
    threading.Thread(target=run, name="discreet-loop-watch", daemon=True).start()


def _stack(frame: FrameType | None) -> str:
    """The frames of the program, innermost first: `app.py:12 function < app.py:30 handler`."""
    from ...errors.redaction.tracebacks import is_ours  # late: what is never blocked never needs it

    found: list[str] = []
    while frame is not None and len(found) < MAX_FRAMES:
        ours = is_ours(frame.f_code)
        if ours and frame.f_code.co_name in _MARKERS:
            break
        if not ours:
            found.append(f"{basename(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_qualname}")
        frame = frame.f_back
    return " < ".join(found)
