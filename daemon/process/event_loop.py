"""Provides asyncio's event loop so that it goes on, whatever a callback raises or stops. Imported late: it imports asyncio.

asyncio ends its loop for a `SystemExit` or a `KeyboardInterrupt` of any task or callback, and for `loop.stop()`. In a daemon
they come from the apps alone: its signals have handlers of their own.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Literal

from ..logs import log

if TYPE_CHECKING:
    _Loop = asyncio.SelectorEventLoop
else:
    _Loop = object


class LastingLoop(_Loop):
    """Extends a class of loops, for `open_loop`. From `begin` on it runs until the task that called it is done.

    `is_own` says that nothing but a daemon runs on it.
    """

    is_own = True
    _main: asyncio.Task[Any] | None = None

    def begin(self) -> None:
        self._main = asyncio.current_task()

    def run_forever(self) -> None:
        while True:
            try:
                super().run_forever()
            except (SystemExit, KeyboardInterrupt) as exc:
                if self._is_over:
                    raise
                log.error("loop.exception", message="the app tried to end the event loop", exc=exc)
            if self._is_over:
                return

    @property
    def _is_over(self) -> bool:
        return self._main is None or self._main.done()


def open_loop(backend: Literal["asyncio", "uvloop"]) -> LastingLoop:
    """Make the loop of this backend. Raises `ImportError` where uvloop is asked for and not installed."""
    kind: Any  # a class of event loops
    if backend == "uvloop":
        import uvloop  # late: an extra

        kind = uvloop.Loop
    else:
        kind = getattr(asyncio, "ProactorEventLoop" if sys.platform == "win32" else "SelectorEventLoop")
    loop: LastingLoop = type("LastingLoop", (LastingLoop, kind), {})()
    return loop
