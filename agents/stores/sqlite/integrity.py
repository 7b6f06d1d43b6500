"""Checks the pages of the store's file when it is opened: a damaged index would hide tasks. Repairs nothing."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ....daemon.logs import ConfiguredPath, log
from ..interface import StoreError
from .busy import is_error

CHECK_SECONDS: Final = 1.0
"""How long the check may take. It reads some hundred megabytes in this time; of a larger file the rest is not checked."""

_CHECKS: Final = (
    "PRAGMA integrity_check(tasks)",  # first: these few pages, indexes included, decide which tasks there are
    "PRAGMA quick_check(1)",
)


def check_pages(connection: sqlite3.Connection, path: str, seconds: float = CHECK_SECONDS) -> None:
    """Raises `StoreError` for a damaged page, and `sqlite3.Error`."""
    deadline = time.monotonic() + seconds
    try:
        with _interrupted_after(connection, seconds):
            for check in _CHECKS:
                if time.monotonic() >= deadline:
                    return _log_unchecked(path, seconds)
                if connection.execute(check).fetchone() != ("ok",):
                    raise StoreError(f"{path} is a damaged database")
    except sqlite3.OperationalError as exc:
        if not is_error(exc, sqlite3.SQLITE_INTERRUPT):
            raise
        _log_unchecked(path, seconds)


def _log_unchecked(path: str, seconds: float) -> None:
    log.info("store.unchecked", path=ConfiguredPath(path), seconds=seconds)


@contextmanager
def _interrupted_after(connection: sqlite3.Connection, seconds: float) -> Iterator[None]:
    """Interrupts the connection from a thread: a progress handler is not called within the check of one table."""
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
