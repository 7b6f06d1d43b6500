"""What `breakpoint()` does: with `--debug` it waits for `discreet attach`, without it is logged and goes on.

Whoever sets PYTHONBREAKPOINT has chosen a debugger, or none; then Python does as always.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from msgspec.structs import replace

from ..apps import AppError
from ..logs import log
from ..settings import Settings

if TYPE_CHECKING:
    from .debugger import Debugger

NO_FRAME_TIMEOUT: Final = 86_400.0
"""In seconds: the longest that the setting allows."""


def without_time_limits(settings: Settings) -> Settings:
    """The settings for someone who looks at a handler for as long as that takes, and may keep the event loop meanwhile."""
    return replace(settings, request_timeout=None, blocked_after=None, frame_timeout=NO_FRAME_TIMEOUT)


@final
class Breakpoints:
    """One per process. Call `install` before any code of users is imported."""

    def __init__(self, *, debug: bool) -> None:
        self._debug = debug
        self._debugger: Debugger | None = None

    def install(self) -> None:
        """Take the calls of `breakpoint()`. Raises `AppError` where there can be no debugger."""
        hook: Callable[..., None] = _ignore
        if self._debug:
            from .debugger import Debugger  # late: for those who debug
            from .sockets import SocketUnusable

            try:
                self._debugger = Debugger()
            except SocketUnusable as exc:
                raise AppError(f"--debug: {exc}") from None
            hook = self._debugger.stop
        if _chosen() is None:
            sys.breakpointhook = hook

    @property
    def standing(self) -> bool:
        """Whether a handler stands at a breakpoint."""
        return self._debugger is not None and self._debugger.standing

    def end(self) -> None:
        """The daemon is ending: whatever waits for a debugger, or stands in one, goes on. From any thread or signal handler."""
        if self._debugger is not None:
            self._debugger.end()

    def close(self) -> None:
        """Let nobody attach any more."""
        if self._debugger is not None:
            self._debugger.close()


def _chosen() -> str | None:
    """What the user has chosen with PYTHONBREAKPOINT, if it is not Python's default."""
    chosen = "" if sys.flags.ignore_environment else os.environ.get("PYTHONBREAKPOINT", "")
    return None if chosen in ("", "pdb.set_trace") else chosen


def _ignore(*_: object, **__: object) -> None:
    from .debugger import place_of  # late: for those who debug

    log.warning("breakpoint.ignored", at=place_of(sys._getframe(1)), hint="start the daemon with --debug")
