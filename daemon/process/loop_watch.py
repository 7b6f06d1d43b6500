"""Logs that code of the app blocks the event loop, and the line at which it does.

Handlers mark each of their steps on the loop. A thread looks at the marks four times an interval while there are steps, and
ends a second after the last one: an idle daemon has no such thread.
"""

from __future__ import annotations

import sys
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from os import _exit as exit_process  # here, as all that is needed at the end: an app may patch its module
from os.path import basename
from sys import setswitchinterval
from time import monotonic, sleep
from types import FrameType
from typing import Final, TypeVar, final

from ..lifecycle import EXIT_FAILED
from ..logs import log
from ..logs.logger import BOUND, Bound, bind

# Ends the process when the drain window has passed, whatever still runs.


GRACE_SECONDS: Final = 0.25
"""How much longer an orderly end may take on a busy machine."""

LOADING_SECONDS: Final = 10.0
"""How much later the window ends at most, where the event loop is still being loaded when the daemon is to end."""

LOADING_LOOK_SECONDS: Final = 0.02

SWITCH_SECONDS: Final = 0.0005
"""The interpreter's switch interval while the daemon ends: handlers that spin must not use up the window."""


@final
class Watchdog:
    """Once armed, ends the process `window` seconds later with the status that `last_words()` returns.

    Its thread stands from `start` on: at the end there may be none left to start. `last_words()` runs in it and flushes
    what it can within its own bound. While `is_loading()` the window does not begin, for at most `LOADING_SECONDS`: on a busy
    machine the event loop, which gives the last answers, may take longer to load than the window is.
    """

    def __init__(self, window: float, last_words: Callable[[], int], is_loading: Callable[[], bool]) -> None:
        self._window = window
        self._last_words = last_words
        self._is_loading = is_loading
        self._ends_at: float | None = None
        self._armed = allocate_lock()
        self._armed.acquire()

    def start(self) -> None:
        """Start the thread. Raises `RuntimeError` where none can be had."""
        start_new_thread(self._wait, ())

    def arm(self) -> None:
        """Start the clock. Later calls change nothing. May be called in a signal handler."""
        if self._ends_at is not None:
            return
        self._ends_at = monotonic() + self._window + GRACE_SECONDS
        setswitchinterval(SWITCH_SECONDS)
        self._armed.release()

    def _wait(self) -> None:
        self._armed.acquire()
        assert self._ends_at is not None
        latest = self._ends_at + LOADING_SECONDS
        while (now := monotonic()) < self._ends_at:
            if now < latest and self._is_loading():  # it may begin after the end did
                self._ends_at = now + self._window + GRACE_SECONDS
            sleep(min(LOADING_LOOK_SECONDS, self._ends_at - now))
        status = EXIT_FAILED
        try:
            status = self._last_words()
        finally:
            exit_process(status)


T = TypeVar("T")

LOOKS: Final = 4
"""How many times an interval the thread looks."""

LINGER_SECONDS: Final = 1.0
"""How long the thread looks on after the last step."""

MAX_FRAMES: Final = 16

_MARKERS: Final = ("run_now", "in_context", "marked")
"""The functions of this package that mark steps: the frames outside of theirs are the loop's."""

_DISPATCH: Final = __name__.replace("process.loop_watch", "dispatch.")


@final
class LoopWatch:
    """One per event loop. A step of more than `seconds` is logged, once; with None nothing is watched.

    Who runs code of the app sets `step` to a new tuple of the operation's name, or of what else it is (`agent.execute`), calls
    `look()` if the watch is `asleep`, and sets `step` back afterwards. These are plain attributes, because this happens at
    every step of every handler.

    `start_thread` starts a function in a thread of its own, or raises `RuntimeError`.
    """

    def __init__(
        self, seconds: float | None, *, start_thread: Callable[[Callable[[], None]], object] | None = None
    ) -> None:
        self.step: tuple[str] | None = None
        self.asleep = seconds is not None
        self.blocked = 0
        """How many steps were logged."""
        self._seconds = seconds
        self._start_thread = start_thread or _start_thread
        self._loop_thread = 0
        self._told: tuple[str, float, Bound | None] | None = None  # the step that was logged, since when, and for what
        self._telling = threading.Lock()

    def look(self) -> None:
        """Look at the steps from now on, until there are none for a while. Called in the loop's thread."""
        self.asleep = False
        self._loop_thread = threading.get_ident()
        try:
            self._start_thread(self._watch)
        except RuntimeError:  # the system has no thread: the next step tries again
            self.asleep = True

    def marked(self, name: str, work: Callable[[], T]) -> T:
        """Run this as one step of that name."""
        before, self.step = self.step, (name,)
        if self.asleep:
            self.look()
        try:
            return work()
        finally:
            self.step = before

    def close(self) -> None:
        """Log that the step which was logged has ended, if that is still to be said. Called when no step runs any more."""
        with self._telling:
            told, self._told = self._told, None
            if told is not None:
                name, since, found = told
                with bind(found):
                    log.warning("loop.resumed", method=name, seconds=round(monotonic() - since, 2))

    def _watch(self) -> None:
        assert self._seconds is not None
        pause = threading.Event()
        seen, since = self.step, monotonic()
        while seen is not None or monotonic() - since < LINGER_SECONDS:
            pause.wait(self._seconds / LOOKS)
            step = self.step
            if step is not seen:
                self.close()
                seen, since = step, monotonic()
            elif step is not None and self._told is None and monotonic() - since >= self._seconds:
                self._tell(step, since)
        self.asleep = True  # a step that began just now may go unwatched; the next one is not

    def _tell(self, step: tuple[str], since: float) -> None:
        at, found = _stack(sys._current_frames().get(self._loop_thread))
        with self._telling:
            if step is self.step:  # else the frames are of another one
                with bind(found):
                    log.warning("loop.blocked", method=step[0], seconds=self._seconds, at=at)
                self._told = step[0], since, found
                self.blocked += 1


def _start_thread(run: Callable[[], None]) -> None:
    threading.Thread(target=run, name="discreet-loop-watch", daemon=True).start()


def place_of(frame: FrameType) -> str:
    """Return the place of a frame: `app.py:12 function`."""
    return f"{basename(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_qualname}"


def _stack(frame: FrameType | None) -> tuple[str, Bound | None]:
    """The frames of the program, innermost first, `app.py:12 function < app.py:30 handler`; and what its step works for."""
    from ...errors.redaction.tracebacks import is_ours  # late: what is never blocked never needs it

    found: list[str] = []
    while frame is not None and len(found) < MAX_FRAMES:
        ours = is_ours(frame.f_code)
        if ours and frame.f_code.co_name in _MARKERS:
            break
        if not ours:
            found.append(place_of(frame))
        frame = frame.f_back
    return " < ".join(found), _bound_in(frame)


def _bound_in(frame: FrameType | None) -> Bound | None:
    """Return what the step of a marking frame works for. Read here, so that steps which block nothing cost nothing."""
    while frame is not None:
        name, ours = frame.f_code.co_name, frame.f_globals.get("__name__", "").startswith(_DISPATCH)
        if ours and name in ("run_now", "in_context"):
            request: Bound | None = frame.f_locals.get("request")
            return request or frame.f_locals["variables"].get(BOUND)
        frame = frame.f_back
    return None
