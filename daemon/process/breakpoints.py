"""Handles `breakpoint()`: with `--debug` it waits for `discreet attach`, without it is logged and goes on.

If PYTHONBREAKPOINT is set, it chooses the debugger, or none, as always in Python.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, Protocol

from msgspec.structs import replace

from .. import plugins
from ..logs import log
from ..settings import Settings
from .loop_watch import place_of

NO_FRAME_TIMEOUT: Final = 86_400.0
"""In seconds: the longest that the setting allows."""


class Debugger(Protocol):
    """Stops the thread that calls `breakpoint()` until a client attaches and lets it go on. Callable from any thread."""

    @property
    def standing(self) -> bool:
        """Whether a handler stands at a breakpoint."""
        ...

    def stop(self, *args: Any, **options: Any) -> None:  # Any: arguments for other debuggers
        """The `sys.breakpointhook`."""

    def end(self) -> None:
        """Let go on what stands at a breakpoint, now and from now on. Also in a signal handler."""

    def close(self) -> None:
        """Refuse further clients."""


def without_time_limits(settings: Settings) -> Settings:
    """The settings for someone who looks at a handler for as long as that takes, and may keep the event loop meanwhile."""
    return replace(settings, request_timeout=None, blocked_after=None, frame_timeout=NO_FRAME_TIMEOUT)


def take_breakpoints(*, debug: bool) -> Debugger | None:
    """Take the calls of `breakpoint()`, before any code of users is imported. Returns the debugger that `debug` asks for.

    Raises `AppError` where there can be none.
    """
    debugger: Debugger | None = plugins.load("debugger", "pdb")() if debug else None
    chosen = "" if sys.flags.ignore_environment else os.environ.get("PYTHONBREAKPOINT", "")
    if chosen in ("", "pdb.set_trace"):
        sys.breakpointhook = _ignore if debugger is None else debugger.stop
    return debugger


def _ignore(*_: object, **__: object) -> None:
    log.warning("breakpoint.ignored", at=place_of(sys._getframe(1)), hint="start the daemon with --debug")
