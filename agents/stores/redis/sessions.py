"""The three sessions of an open store, the links that open them again, and the listener. Reads no task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import final

import redis

from ....daemon.logs import log
from ..change_feed import ChangeFeed
from ..interface import StoreError
from ..server_link import WRITES_PATIENCE, ServerLink
from .address import Address
from .connection import Server, Session
from .failures import translate_errors, why_not_connected
from .listener import Listener
from .schema import check_settings, log_volatility, open_store
from .writer import RedisWriter


@final
class Sessions:
    """One that writes, one that reads, one that listens. Raises `StoreError`, and then leaves nothing open, and `RuntimeError` if
    the system provides no thread."""

    def __init__(self, address: Address, clock: Callable[[], float] | None) -> None:
        self._server = Server(address)
        self._address = address
        with ExitStack() as stack:
            with _connecting(address.label):
                writing, reading, listening = (self._open(stack) for _ in range(3))
            with translate_errors(address.label):
                settings = check_settings(writing, address)
                open_store(writing, address)
                self.writer = RedisWriter(address, clock)
                self.writer.begin(writing)
                log_volatility(settings, address)  # last: a store that is refused says one line
                self.inbox = ChangeFeed()
                self.writing = self._link(writing, self._reopen_writing, WRITES_PATIENCE)
                self.reading = self._link(reading, self._server.open)
                self.listener = Listener(listening, self._server.open, address, self.writer.owner_id, self.inbox)
            stack.pop_all()

    def _open(self, stack: ExitStack) -> Session:
        """A session that is closed with the stack."""
        session = self._server.open()
        stack.callback(session.close)
        return session

    def _reopen_writing(self) -> Session:
        session = self._server.open()
        try:
            if open_store(session, self._address):
                log.error("store.forgotten", server=self._address.label)
        except BaseException:
            session.close()
            raise
        return session

    def _link(self, session: Session, reopen: Callable[[], Session], patience: float = 1.0) -> ServerLink[Session]:
        return ServerLink(
            self._address.label,
            session,
            reopen,
            errors=redis.RedisError,
            is_stuck=lambda exc: isinstance(exc, redis.TimeoutError),
            why=why_not_connected,
            patience=patience,
        )

    def stop(self, *, at_once: bool = False) -> None:
        """Wait for the server no longer if it is away; with `at_once` not at all."""
        self.writing.stop(at_once=at_once)
        self.reading.stop(at_once=at_once)

    def close(self) -> None:
        """Without threads that use them."""
        self.listener.close()
        self.reading.close()
        self.writing.close()


@contextmanager
def _connecting(label: str) -> Iterator[None]:
    try:
        yield
    except redis.RedisError as exc:
        raise StoreError(f"{label} can't be reached: {why_not_connected(exc)}") from None
