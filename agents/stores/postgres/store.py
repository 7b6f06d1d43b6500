"""Stores tasks in a PostgreSQL database, which daemons of several machines may share. Committed tasks survive `kill -9` of a
daemon, and of the server.

One thread writes, one reads, one listens. psycopg's own asynchronous connections work with asyncio alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, final

import psycopg

from ....lazy import anyio
from ..checks import DEFAULT_RETENTION, Retention
from ..interface import Changes, OwnerRequest, StoreError
from ..server_link import close_threads
from ..threaded_store import ThreadedStore
from ..worker_thread import Job, WorkerThread, loop_caller
from . import reader, statements
from .address import read_address
from .batch import Batch
from .failures import translate_errors
from .schema import AnyConnection, check_tables
from .session import release_names
from .sessions import Sessions
from .writer import ClaimRequest, TakeRequest, WriteRequest

ReadRequest: TypeAlias = Callable[[AnyConnection], object]

EXPIRY_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

SETTLE_SECONDS: Final = 3.0
"""How long a daemon that had lost its session takes no others for dead: they may have lost theirs with it."""

GRACE_SECONDS: Final = 5.0
"""For how long a daemon without its session is left its tasks: a session may end while the daemon lives."""

LEASE_SECONDS: Final = 4.0
"""How long after its last transaction a daemon may be sure that it has its tasks: less than the others wait."""

HEARTBEAT_SECONDS: Final = 1.0
"""How often an idle daemon finds out whether it still has its session, and so its name."""


@final
class PostgresStore(ThreadedStore["_OpenStore", AnyConnection, Batch]):
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons; by default that of the
    server.

    Raises `StoreError` for an address that libpq can't read.
    """

    def __init__(
        self, url: str, retention: Retention = DEFAULT_RETENTION, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._address = read_address(url)
        super().__init__(self._address.label, reader, statements)
        self._retention = retention
        self._clock = clock

    def _open(self) -> _OpenStore:
        if not psycopg.Pipeline.is_supported():
            raise StoreError("psycopg needs libpq 14 or later; pip install 'discreet[postgres]' has one")
        return _OpenStore(self._label, Sessions(self._address, self._clock), self._delete_expired)

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        return await self._write(self._delete_expired)

    def _delete_expired(self, batch: Batch) -> bool:
        return statements.delete_expired(batch, self._retention, self._retained)

    async def probe(self) -> None:
        await super().probe()
        await self._read(check_tables)

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        owner_id = self.owner_id
        if self._open_store.sessions.writing.seconds_since_reopened < SETTLE_SECONDS:
            return ()  # the server was away, and others may not be back yet
        return await self._read(lambda connection: reader.list_orphans(connection, owner_id))

    @property
    def grace_seconds(self) -> float:
        return GRACE_SECONDS

    def lease_end(self) -> float:
        return math.inf if self._opened is None else self._opened.sessions.writing.reached_at + LEASE_SECONDS

    def check_reachable(self) -> None:
        if self._opened is not None:
            self._opened.sessions.writing.check()

    def _claim_request(self, limit: int) -> ClaimRequest:
        return ClaimRequest(limit)

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda connection: reader.has_owner_requests(connection, owner_id)):
            return ()
        taken: Sequence[OwnerRequest] = await self._receive(TakeRequest())
        return taken

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        if self._opened is None:
            await anyio.sleep_forever()
        return await self._open_store.sessions.inbox.wait()


@final
class _OpenStore:
    """What exists while the store is open: the sessions, and the threads that read and write. Raises `RuntimeError` if there is
    no thread, and then closes the sessions."""

    def __init__(self, label: str, sessions: Sessions, delete_expired: Callable[[Batch], bool]) -> None:
        self.sessions = sessions
        self._label = label
        self._delete_expired = delete_expired
        self._next_expiry = time.monotonic() + EXPIRY_SECONDS
        try:
            self.reader_thread: WorkerThread[ReadRequest] = WorkerThread(
                "discreet-store-reader", self._process_reads, finish=sessions.reading.close
            )
        except RuntimeError:
            self._close_sessions()
            raise
        try:
            self.writer_thread: WorkerThread[WriteRequest] = WorkerThread(
                "discreet-store-writer", self._process_writes, maintain=self._maintain, finish=self._finish
            )
        except RuntimeError:
            self.reader_thread.close_unattached()
            self._close_sessions()
            raise

    def _close_sessions(self) -> None:
        self.sessions.listener.close()
        self.sessions.reading.close()
        self.sessions.writing.close()

    @property
    def owner_id(self) -> str:
        return self.sessions.writer.owner_id

    def attach(self) -> None:
        """Take jobs from this event loop."""
        self.reader_thread.attach()
        self.writer_thread.attach()
        self.sessions.inbox.attach(loop_caller())

    # -- in the threads ----------------------------------------------------------------------------------------

    def _process_writes(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        with translate_errors(self._label):
            self.sessions.writer.process(self.sessions.writing, jobs)

    def _process_reads(self, jobs: Sequence[Job[ReadRequest]]) -> None:
        for job in jobs:
            job.run(self._read)

    def _read(self, read: ReadRequest) -> object:
        with translate_errors(self._label):
            return self.sessions.reading.run(lambda session: session.run(read))

    def _maintain(self) -> float:
        """Find out whether the session is still there, and delete expired tasks. What fails is made up for later."""
        link = self.sessions.writing
        try:
            if time.monotonic() < self._next_expiry:
                link.run(lambda session: session.run(lambda connection: connection.execute("SELECT")))
            elif not link.run(lambda session: session.run(self._delete_expired_alone)):
                self._next_expiry = time.monotonic() + EXPIRY_SECONDS
        except (StoreError, psycopg.Error):
            self._next_expiry = time.monotonic() + EXPIRY_SECONDS
        if link.away:
            return link.seconds_to_next_try
        return HEARTBEAT_SECONDS if time.monotonic() < self._next_expiry else 0.0

    def _delete_expired_alone(self, connection: AnyConnection) -> bool:
        return self.sessions.writer.run_alone(connection, self._delete_expired)

    def _finish(self) -> None:
        """Give the name back before the session ends, which the server may notice later than others look for orphans."""
        link = self.sessions.writing
        with suppress(StoreError, psycopg.Error):
            link.run(lambda session: session.run(release_names))
        link.close()

    # -- the end -----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        await close_threads(self.sessions.stop, self.reader_thread, self.writer_thread)
        await anyio.to_thread.run_sync(self.sessions.listener.close)

    def close_unattached(self) -> None:
        self.sessions.stop(at_once=True)
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()
        self.sessions.listener.close()
