"""Stores tasks in a PostgreSQL database, which daemons of several machines may share. Committed tasks survive `kill -9` of a
daemon, and of the server.

psycopg's own asynchronous connections work with asyncio alone.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final, TypeVar, final

import psycopg

from ....a2a.types import TaskEvent
from ..checks import DEFAULT_RETENTION, Retention
from ..interface import ClaimedTask, News, StoredTask, StoreError
from ..server_store import LISTEN_SECONDS, OpenServerStore, ServerStore
from ..threaded_store import ClaimRequest, WriteJobs
from . import reader
from .schema import AnyConnection, check_store, check_tables, create
from .session import (
    Address,
    NoAnswerError,
    Session,
    backend_pid,
    check_own_sessions,
    connect,
    keep_plans,
    read_address,
    release_names,
    shown_names,
    translate_errors,
    why_not_connected,
)
from .writer import CHANNEL, PostgresWriter, add_notice, name_of

T = TypeVar("T")

SETTLE_SECONDS: Final = 3.0
"""How long a daemon that had lost its session takes no others for dead: they may have lost theirs with it."""

GRACE_SECONDS: Final = 5.0
"""For how long a daemon without its session is left its tasks: a session may end while the daemon lives."""


@final
class PostgresStore(ServerStore["_OpenStore", AnyConnection]):
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons; by default that of the
    server.

    Raises `StoreError` for an address that libpq can't read.
    """

    SURE_SECONDS = 4.0  # less than the others wait

    def __init__(
        self, url: str, retention: Retention = DEFAULT_RETENTION, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._address = read_address(url)
        super().__init__(self._address.label, reader, retention)
        self._clock = clock

    def _open(self) -> _OpenStore:
        if not psycopg.Pipeline.is_supported():
            raise StoreError("psycopg needs libpq 14 or later; pip install 'discreet[postgres]' has one")
        return _OpenStore(self._address, PostgresWriter(self._label, self._retention, self._retained, self._clock))

    def _connect(self) -> tuple[Callable[[Callable[[AnyConnection], Any]], Any], Callable[[], None]]:
        label = self._address.label
        try:
            session = Session(connect(self._address))
        except psycopg.Error as exc:
            raise StoreError(f"{label} can't be reached: {why_not_connected(exc)}") from None

        def run(read: Callable[[AnyConnection], Any]) -> Any:  # Any: as there
            with translate_errors(label):
                return session.run(read)

        with ExitStack() as stack:
            stack.callback(session.close)
            run(lambda connection: connection.execute("SET default_transaction_read_only = on"))
            run(lambda connection: check_store(connection, label))
            stack.pop_all()
        return run, session.close

    async def probe(self) -> None:
        await super().probe()
        await self._read(check_tables)

    async def list_orphans(self) -> Sequence[str]:
        owner_id = self.owner_id
        if self._open_store.writing.seconds_since_reopened < SETTLE_SECONDS:
            return ()  # the server was away, and others may not be back yet
        return await self._read(lambda connection: reader.list_orphans(connection, owner_id))

    async def read_news(self, after: Mapping[str, int]) -> Mapping[str, News]:
        return await self._read(lambda connection: reader.read_news(connection, after))

    async def claim_begun(
        self, limit: int, begin: Callable[[StoredTask], TaskEvent | None], *, told: bool
    ) -> Sequence[ClaimedTask]:
        if not (told or self._open_store.writer.has_claims or await self._read(reader.has_queued)):
            return ()
        claimed: Sequence[ClaimedTask] = await self._receive(ClaimRequest(limit, begin))
        return claimed

    @property
    def grace_seconds(self) -> float:
        return GRACE_SECONDS


@final
class _OpenStore(OpenServerStore[Session, AnyConnection]):
    errors = psycopg.Error

    def __init__(self, address: Address, writer: PostgresWriter) -> None:
        self._address = address
        self.writer = writer
        self._alive: frozenset[str] = frozenset()
        super().__init__(address.label, name_of)

    @property
    def owner_id(self) -> str:
        return self.writer.owner_id

    # -- sessions ----------------------------------------------------------------------------------------------

    def open_session(self) -> Session:
        return Session(connect(self._address))

    def begin(self, writing: Session, reading: Session, listening: Session) -> None:
        connection = writing.connection
        check_own_sessions([session.connection for session in (writing, reading, listening)], self.label)
        create(connection, self.label)
        keep_plans(connection)
        self.writer.take_first_name(connection, backend_pid(connection))
        self._alive = shown_names(connection)
        self.begin_listening(listening)

    def reopen_writing(self) -> Session:
        with ExitStack() as stack:
            session = self._opened(stack)
            connection = session.connection
            create(connection, self.label)
            keep_plans(connection)
            self.writer.take_new_name(connection, backend_pid(connection))
            stack.pop_all()
        self.inbox.add_everything()  # also requests that this daemon gave back to itself
        return session

    def is_stuck(self, exc: Exception) -> bool:
        return isinstance(exc, NoAnswerError)

    def why(self, exc: psycopg.Error) -> str:
        return why_not_connected(exc)

    def translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.label)

    # -- in the threads ----------------------------------------------------------------------------------------

    def read(self, read: Callable[[AnyConnection], T]) -> T:
        with self.translate_errors():
            return self.reading.run(lambda session: session.run(read))

    def write(self, jobs: WriteJobs) -> None:
        with self.translate_errors():
            self.writer.process(self.writing, jobs)

    def beat(self) -> None:
        """Look also at every task if a daemon has gone: it may have ended between a commit and the notification of that."""
        self.writing.run(lambda session: session.run(self.writer.tell_deferred))
        before, self._alive = self._alive, self.writing.run(lambda session: session.run(shown_names))
        if before - self._alive:
            self.inbox.add_everything()

    def delete_expired(self) -> bool:
        return self.writing.run(lambda session: session.run(self.writer.delete_expired))

    def leave(self) -> None:
        """Others may look for orphans before the server notices that the session has ended."""
        self.writing.run(lambda session: session.run(release_names))

    # -- in the listener's thread ------------------------------------------------------------------------------

    def begin_listening(self, session: Session) -> None:
        session.connection.execute(f"LISTEN {CHANNEL}")

    def listen(self, session: Session) -> None:
        server = session.connection.pgconn
        poll = select.poll()
        poll.register(server.socket, select.POLLIN)
        poll.poll(LISTEN_SECONDS * 1000)
        server.consume_input()
        while (notify := server.notifies()) is not None:
            add_notice(self.inbox, notify.extra.decode(), self.writer.names.base)

    def look_after_sessions(self) -> None:
        for link in (self.writing, self.reading):
            if (session := link.session) is not None:
                session.end_if_stuck()
