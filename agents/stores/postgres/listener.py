"""Hears what other daemons have committed, on a session of its own. Reads no task.

While that session is lost, anything may have happened: it says so once a second.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final, final

import psycopg

from ..change_feed import ChangeFeed
from ..interface import StoreError
from .link import Link
from .notices import add_notice
from .schema import AnyConnection

POLL_SECONDS: Final = 1.0
"""How often the daemon looks for changes while nobody tells it of them, and how often the links are looked after."""


@final
class Listener:
    """One thread. Begins with a connection that listens; `reopen()` gives another one, and raises as that of a link.

    What it hears goes to the inbox, but for what this daemon says, whose names begin with `base`. Raises `RuntimeError` if
    the system provides no thread.
    """

    def __init__(
        self,
        connection: AnyConnection,
        reopen: Callable[[], AnyConnection],
        inbox: ChangeFeed,
        base: str,
        links: Sequence[Link],
    ) -> None:
        self._connection: AnyConnection | None = connection
        self._reopen = reopen
        self._inbox = inbox
        self._base = base
        self._links = links
        self._closing = False
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._main, name="discreet-store-listener", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._wake.close()
            self._woken.close()
            raise

    def close(self) -> None:
        """End the thread. An attempt to connect may take until its time-out: it is not waited for."""
        self._closing = True
        with suppress(OSError):
            self._wake.send(b"x")
        self._thread.join(POLL_SECONDS / 2)

    def _main(self) -> None:
        while not self._closing:
            connection = self._connection
            try:
                if connection is None:
                    self._sleep()
                    self._connection = self._reopen()
                else:
                    self._listen(connection)
            except (psycopg.Error, StoreError, OSError):
                if connection is not None:
                    with suppress(psycopg.Error):
                        connection.close()
                    self._connection = None
            if self._connection is not connection:  # what happened before it listened again, nobody has told
                self._inbox.add_everything()
        if self._connection is not None:
            self._connection.close()
        self._wake.close()
        self._woken.close()

    def _sleep(self) -> None:
        self._wait_for(self._woken)
        self._inbox.add_everything()
        self._look_after_links()

    def _listen(self, connection: AnyConnection) -> None:
        last_looked = monotonic()
        while not self._closing:
            self._wait_for(self._woken, connection)
            for notify in connection.notifies(timeout=0):
                add_notice(self._inbox, notify.payload, self._base)
            if monotonic() - last_looked >= POLL_SECONDS:
                last_looked = monotonic()
                self._look_after_links()

    def _wait_for(self, *sources: socket.socket | AnyConnection) -> None:
        with selectors.DefaultSelector() as selector:
            for source in sources:
                selector.register(source.fileno(), selectors.EVENT_READ)
            selector.select(POLL_SECONDS)

    def _look_after_links(self) -> None:
        for link in self._links:
            if (session := link.session) is not None:
                session.end_if_stuck()
