"""The three sessions of an open store, the links that open them again, and the listener. Reads no task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import final

import psycopg

from ..change_feed import ChangeFeed
from ..interface import StoreError
from ..server_link import WRITES_PATIENCE
from .address import Address
from .failures import translate_errors, why_not_connected
from .link import link_to
from .listener import Listener
from .notices import name_of
from .schema import AnyConnection, migrate
from .session import OwnerNames, backend_pid, check_own_sessions, keep_plans, open_session, take_name
from .writer import CHANNEL, PostgresWriter


@final
class Sessions:
    """One that writes and holds the daemon's name, one that reads, one that listens. Raises `StoreError`, and then leaves
    nothing open, and `RuntimeError` if the system provides no thread."""

    def __init__(self, address: Address, clock: Callable[[], float] | None) -> None:
        self._address = address
        self._names = OwnerNames()
        self.inbox = ChangeFeed(name_of)
        with ExitStack() as stack:
            with _connecting(address.label):
                writing, reading, listening = (_open(stack, address) for _ in range(3))
            with translate_errors(address.label):
                check_own_sessions((writing, reading, listening), address.label)
                migrate(writing, address.label)
                keep_plans(writing)
                name = self._names.new()
                take_name(writing, name)
                listening.execute(f"LISTEN {CHANNEL}")
                self.writer = PostgresWriter(address.label, self._names, name, backend_pid(writing), clock)
            self.writing = link_to(address.label, writing, self._reopen_writing, WRITES_PATIENCE)
            self.reading = link_to(address.label, reading, lambda: open_session(address))
            links = (self.writing, self.reading)
            self.listener = Listener(listening, self._reopen_listening, self.inbox, self._names.base, links)
            stack.pop_all()

    def _reopen_writing(self) -> AnyConnection:
        with ExitStack() as stack:
            connection = _open(stack, self._address)
            migrate(connection, self._address.label)
            keep_plans(connection)
            self.writer.take_new_name(connection, backend_pid(connection))
            stack.pop_all()
        self.inbox.add_everything()  # also requests that this daemon gave back to itself
        return connection

    def _reopen_listening(self) -> AnyConnection:
        with ExitStack() as stack:
            connection = _open(stack, self._address)
            connection.execute(f"LISTEN {CHANNEL}")
            stack.pop_all()
        return connection

    def stop(self, *, at_once: bool = False) -> None:
        """Wait for the server no longer if it is away; with `at_once` not at all."""
        self.writing.stop(at_once=at_once)
        self.reading.stop(at_once=at_once)


def _open(stack: ExitStack, address: Address) -> AnyConnection:
    """A session that is closed with the stack."""
    connection = open_session(address)
    stack.callback(connection.close)
    return connection


@contextmanager
def _connecting(label: str) -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as exc:
        raise StoreError(f"{label} can't be reached: {why_not_connected(exc)}") from None
    except psycopg.Error as exc:  # a parameter that libpq does not take
        raise StoreError(f"{label} can't be reached: {type(exc).__name__}") from None
