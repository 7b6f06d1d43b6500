"""Defers Python's signal handlers for the moment in which an exception of theirs would lose a child that has just begun.

Knows nothing of children.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias

_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Those whose handlers commonly raise: Ctrl-C does by default."""

_Handler: TypeAlias = Callable[[int, FrameType | None], Any]  # Any: what a handler returns is ignored


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Have the handlers of signals that come during the block called right behind it, so that only there they may raise.

    Only the main thread runs handlers; elsewhere this does nothing. What a signal does without a handler stays as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers: dict[int, _Handler] = {}

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    try:
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            handler = signal.getsignal(number)
            if callable(handler):
                handlers[number] = handler  # before it is replaced, so that it is put back in any case
                signal.signal(number, note)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in came:
        handlers[number](number, None)
