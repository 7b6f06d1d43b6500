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
from typing import Final, TypeAlias, final

from ..logs import log

LOOKS: Final = 4
"""How many times an interval the thread looks."""

LINGER_SECONDS: Final = 1.0
"""How long the thread looks on after the last step."""

MAX_FRAMES: Final = 16

_MARKERS: Final = ("run_now", "in_context")
"""The functions of this package that mark steps: the frames outside of theirs are the loop's."""

Step: TypeAlias = tuple[str, float]
"""The operation's name, and when its handler began to run."""


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
        self._step: Step | None = None
        self._last = 0.0
        self._told = False
        self._thread = 0

    def enter(self, method: str) -> Step | None:
        """A handler's step begins on the loop, in this thread. Pass what is returned to `leave`."""
        before, self._step = self._step, (method, monotonic())
        if not self._looking:
            self._look()
        return before

    def leave(self, before: Step | None) -> None:
        """The step has ended: the handler has returned, or waits. `before` is the step that it was part of."""
        assert self._step is not None
        method, self._last = self._step
        self._step = before
        if self._told:
            self._told = False
            log.warning("loop.resumed", method=method, seconds=round(monotonic() - self._last, 3))

    def _look(self) -> None:
        self._looking = True
        self._thread = threading.get_ident()
        try:
            self._start_thread(self._watch)
        except RuntimeError:  # the system has no thread: the next step tries again
            self._looking = False

    def _watch(self) -> None:
        assert self._seconds is not None
        pause = threading.Event()
        while self._step is not None or monotonic() < self._last + LINGER_SECONDS:
            pause.wait(self._seconds / LOOKS)
            step = self._step
            if step is not None and not self._told and monotonic() - step[1] >= self._seconds:
                at = _stack(sys._current_frames().get(self._thread))
                if step is self._step:  # so the frames are this step's
                    self._told = True
                    log.warning("loop.blocked", method=step[0], seconds=self._seconds, at=at)
        self._looking = False


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
