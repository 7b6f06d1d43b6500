"""A connection that is opened again when it is lost, and ended when its server does not answer. Sends nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, TypeAlias, TypeVar, final

import psycopg

from ..server_link import ServerLink
from .failures import why_not_connected
from .schema import AnyConnection

T = TypeVar("T")

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


class _NoAnswerError(psycopg.OperationalError):
    """The session was ended because its server did not answer."""


@final
class LinkedConnection:
    """The connection of a link. Used by one thread, but for `end_if_stuck` and `shut_down`."""

    def __init__(self, connection: AnyConnection) -> None:
        self.connection = connection
        self._busy_since: float | None = None
        self._stuck = False

    @property
    def closed(self) -> bool:
        return self.connection.closed

    def run(self, work: Callable[[AnyConnection], T]) -> T:
        """What `work(connection)` returns. Raises what it raises; the connection is closed if it was lost with that."""
        self._stuck = False
        self._busy_since = monotonic()
        try:
            return work(self.connection)
        except psycopg.Error as exc:
            if self.connection.closed or isinstance(exc, _ENDED):
                self.close()
                if self._stuck:
                    raise _NoAnswerError from exc
            raise
        finally:
            self._busy_since = None

    def close(self) -> None:
        with suppress(psycopg.Error):
            self.connection.close()

    def end_if_stuck(self) -> None:
        """End a session whose server has not answered for too long."""
        since = self._busy_since
        if since is not None and monotonic() > since + ANSWER_SECONDS:
            self._stuck = True
            self.shut_down()

    def shut_down(self) -> None:
        """Have the thread that waits for the server hear that the connection is over."""
        with suppress(psycopg.Error, OSError):
            duplicate = socket.fromfd(self.connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
            with duplicate:
                duplicate.shutdown(socket.SHUT_RDWR)


Link: TypeAlias = ServerLink[LinkedConnection]


def link_to(label: str, connection: AnyConnection, reopen: Callable[[], AnyConnection], patience: float = 1.0) -> Link:
    """A link that begins with this connection. `reopen()` gives another one, and raises `StoreError` or `psycopg.Error`."""
    return ServerLink(
        label,
        LinkedConnection(connection),
        lambda: LinkedConnection(reopen()),
        errors=psycopg.Error,
        is_stuck=lambda exc: isinstance(exc, _NoAnswerError),
        why=_why,
        patience=patience,
    )


def _why(exc: Exception) -> str:
    return why_not_connected(exc) if isinstance(exc, psycopg.Error) else str(exc)
