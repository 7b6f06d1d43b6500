"""One session of a daemon, opened again when it is lost, with growing pauses. A short outage is waited for; during a longer
one whoever uses the session is told at once when to try again.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, TypeVar, final

import psycopg

from .....errors.backoff import exponential_backoff
from ....logs import log
from ..interface import StoreError, StoreUnavailableError
from .failures import why_not_connected
from .schema import AnyConnection

T = TypeVar("T")

BRIDGED_SECONDS: Final = 5.0
"""How long callers wait for the server from the moment that it is lost: about as long as a restart or a fail-over takes."""

FIRST_PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 5.0
"""Between two attempts to connect."""

MIN_RETRY_MS: Final = 500
"""The least that callers are told to wait."""

MAX_LOSSES: Final = 8
"""How many sessions may be lost over one and the same piece of work."""

ANSWER_SECONDS: Final = 15.0
"""How long the server may take for what it is asked before the session counts as lost."""

_ENDED: Final = (
    psycopg.errors.ReadOnlySqlTransaction,  # the server is a standby now
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.IdleInTransactionSessionTimeout,
)
"""After these a session is of no use, even if it is still open."""


@final
class Link:
    """Used by one thread. `reopen()` gives a new connection, and raises `StoreError` or `psycopg.Error`."""

    def __init__(self, label: str, connection: AnyConnection, reopen: Callable[[], AnyConnection]) -> None:
        self._label = label
        self._connection: AnyConnection | None = connection
        self._reopen = reopen
        self._closing = threading.Event()
        self._lost_at = 0.0
        self._failures = 0
        self._next_try = 0.0
        self._busy_since: float | None = None
        self._told = False
        self._stuck = False

    @property
    def away(self) -> bool:
        """Whether there is no session."""
        return self._connection is None

    @property
    def seconds_to_next_try(self) -> float:
        return max(self._next_try - monotonic(), 0.0)

    def run(self, work: Callable[[AnyConnection], T]) -> T:
        """What `work(connection)` returns. It is called again, with another connection, where one was lost.

        Raises `StoreUnavailableError`, and what it raises for other reasons.
        """
        losses = 0
        while True:
            connection = self._open()
            self._stuck = False
            self._busy_since = monotonic()
            try:
                return work(connection)
            except psycopg.Error as exc:
                if not (connection.closed or isinstance(exc, _ENDED)):
                    raise
                self._lose(connection)
            finally:
                self._busy_since = None
            losses += 1
            if self._stuck or losses == MAX_LOSSES:  # what has ended that many sessions would end the next one, too
                raise self._unavailable("does not answer")

    def _lose(self, connection: AnyConnection) -> None:
        with suppress(psycopg.Error):
            connection.close()
        self._connection = None
        self._lost_at = monotonic()
        self._failures = 0
        self._next_try = 0.0
        self._told = False

    def _open(self) -> AnyConnection:
        while self._connection is None:
            self._closing.wait(min(self.seconds_to_next_try, max(self._lost_at + BRIDGED_SECONDS - monotonic(), 0.0)))
            if self._closing.is_set() or monotonic() < self._next_try:
                raise self._unavailable("does not answer")
            self._busy_since = monotonic()
            try:
                self._connection = self._reopen()
            except (psycopg.Error, StoreError) as exc:
                pause = exponential_backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, self._failures)
                self._failures += 1
                self._next_try = monotonic() + pause
                if monotonic() > self._lost_at + BRIDGED_SECONDS:
                    why = why_not_connected(exc) if isinstance(exc, psycopg.Error) else str(exc)
                    raise self._unavailable(f"can't be reached: {why}") from None
            else:
                log.warning("store.reconnected", seconds=round(monotonic() - self._lost_at, 3))
            finally:
                self._busy_since = None
        return self._connection

    def _unavailable(self, why: str) -> StoreUnavailableError:
        repeated, self._told = self._told, True
        retry_after_ms = max(int(self.seconds_to_next_try * 1000), MIN_RETRY_MS)
        return StoreUnavailableError(f"{self._label} {why}", retry_after_ms=retry_after_ms, repeated=repeated)

    # -- from other threads ------------------------------------------------------------------------------------

    def end_if_stuck(self) -> None:
        """End a session whose server has not answered for too long."""
        since, connection = self._busy_since, self._connection
        if connection is not None and since is not None and monotonic() > since + ANSWER_SECONDS:
            self._stuck = True
            shut_down(connection)

    def stop(self, *, at_once: bool = False) -> None:
        """Wait for no server any more; with `at_once` not even for the answer to what it was asked."""
        self._closing.set()
        if at_once and self._busy_since is not None and self._connection is not None:
            shut_down(self._connection)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def shut_down(connection: AnyConnection) -> None:
    """Have the thread that waits for the server hear that the connection is over. Any thread may."""
    with suppress(psycopg.Error, OSError):
        duplicate = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)
