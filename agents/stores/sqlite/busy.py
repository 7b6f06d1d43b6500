"""How long this daemon waits while other processes lock the store's file: long while it runs, briefly when it closes."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable
from typing import Final, TypeVar, final

T = TypeVar("T")

BUSY_SECONDS: Final = 30.0
"""How long a writer waits for the writers of other daemons, each of which takes milliseconds."""

STATEMENT_SECONDS: Final = 0.1
"""How long SQLite itself waits in one statement. It can't be told to stop sooner."""

_PAUSE_SECONDS: Final = 0.01


def is_error(exc: sqlite3.Error, code: int) -> bool:
    """Whether it is an error of this primary code. Errors of the module `sqlite3` itself have none."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF == code


@final
class BusyWait:
    """Used by the store's threads, and shortened by any."""

    def __init__(self) -> None:
        self._end = math.inf

    def shorten(self, seconds: float) -> None:
        """Let no wait last longer than until this time from now."""
        self._end = time.monotonic() + seconds

    def run(self, function: Callable[[], T]) -> T:
        """What the function returns. It is called again while it raises SQLITE_BUSY."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return function()
            except sqlite3.OperationalError as exc:
                if not is_error(exc, sqlite3.SQLITE_BUSY) or time.monotonic() > min(deadline, self._end):
                    raise
                time.sleep(_PAUSE_SECONDS)
