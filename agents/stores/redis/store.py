"""Stores tasks in a Redis server, or a cluster, which daemons of several machines may share. Committed tasks survive `kill -9` of
a daemon, and of the server as far as its settings say: the server's append-only file is what makes it durable.

One thread writes, one reads, one listens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, TypeAlias, final

import redis

from ....daemon.logs import log
from ....lazy import anyio
from ..change_feed import ChangeFeed
from ..checks import DEFAULT_RETENTION, RetainedTasks, Retention
from ..interface import Changes, OwnerRequest, StoreError
from ..server_link import WRITES_PATIENCE, ServerLink, close_threads
from ..threaded_store import ThreadedStore
from ..worker_thread import Job, WorkerThread, loop_caller
from . import reader, statements, writer
from .address import Address, read_address
from .connection import Server, Session
from .failures import translate_errors, why_not_connected
from .listener import Listener
from .reader import Source, expired_tasks
from .schema import check_settings, log_volatility, open_store
from .writer import AnyRequest, RedisWriter, Run, WriteRequest, delete_request, forget_request

# The three sessions of an open store, the links that open them again, and the listener. Reads no task.


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


# Deletes tasks that ended long ago, and soon after their end the events that their snapshots cover. A few at a time.
#
# Runs in the writer's thread. Touches no task that has not ended, and deletes none whose log is being read in this process.


INTERVAL_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

EVENTS_SECONDS: Final = 60.0
"""How long the events of a task that has ended are kept, for those who were cut off just before. Later they get the task."""

BATCH: Final = 200
"""Tasks deleted in one transaction. Commits may run between two of them."""


@final
class ExpiredTasks:
    """Deletes what `limits` does not keep. `clock` is in seconds since 1970; None is that of the server."""

    def __init__(
        self, address: Address, retained: RetainedTasks, limits: Retention, clock: Callable[[], float] | None
    ) -> None:
        self._address = address
        self._retained = retained
        self._limits = limits
        self._clock = clock

    def find(self, source: Source) -> list[bytes]:
        """The ids of one batch. Raises `redis.RedisError`."""
        now = None if self._clock is None else self._clock()
        found = expired_tasks(source, self._limits, now=now, limit=BATCH + len(self._retained))
        return [task_id for task_id in found if task_id.decode() not in self._retained][:BATCH]

    def forget_batch(self, link: ServerLink[Session], writer: RedisWriter) -> bool:
        """Delete the events of some tasks that ended a while ago, where their snapshots cover them. Returns whether there may be
        more. Raises `StoreError`."""
        (seen,) = writer.write(link, [forget_request(EVENTS_SECONDS, BATCH)])
        return seen == BATCH

    def delete_batch(self, link: ServerLink[Session], writer: RedisWriter) -> bool:
        """Delete one batch. Returns whether there may be more. Raises `StoreError`."""
        with translate_errors(self._address.label):
            ids = link.run(lambda session: self.find(Source(session, self._address)))
        if ids:
            writer.write(link, [delete_request(ids)])
        return len(ids) == BATCH


ReadRequest: TypeAlias = Callable[[Source], object]

HEARTBEAT_SECONDS: Final = 1.0
"""How often a daemon says that it is alive, and finds out whether the server is."""


@final
class RedisStore(ThreadedStore["_OpenStore", Source, Run]):
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons; by default that of the
    server.

    It is durable as all stores that outlive their process are. Whether the server outlives a crash of its own, it says in the
    log, as `store.volatile`. Raises `StoreError` for an address that is wrong.
    """

    def __init__(
        self, url: str, retention: Retention = DEFAULT_RETENTION, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._address = read_address(url)
        super().__init__(self._address.label, reader, statements)
        self._expired_tasks = ExpiredTasks(self._address, self._retained, retention, clock)
        self._clock = clock

    def _open(self) -> _OpenStore:
        return _OpenStore(self._address, Sessions(self._address, self._clock), self._expired_tasks)

    async def probe(self) -> None:
        self.check_reachable()
        await self._open_store.writer_thread.run(writer.PROBE)

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        ids = await self._read(self._expired_tasks.find)
        if ids:
            await self._open_store.writer_thread.run(writer.delete_request(ids))
        return len(ids) == BATCH

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        owner_id = self.owner_id
        return await self._read(lambda source: reader.list_orphans(source, owner_id, writer.LEASE_MS))

    def lease_end(self) -> float:
        return math.inf if self._opened is None else self._opened.sessions.writing.reached_at + writer.SURE_SECONDS

    def check_reachable(self) -> None:
        if self._opened is not None:
            self._opened.sessions.writing.check()

    def _claim_request(self, limit: int) -> WriteRequest:
        return writer.claim_request(limit)

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda source: reader.has_owner_requests(source, owner_id)):
            return ()
        taken: Sequence[OwnerRequest] = await self._receive(writer.TAKE)
        return taken

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        if self._opened is None:
            await anyio.sleep_forever()
        return await self._open_store.sessions.inbox.wait()


@final
class _OpenStore:
    """What exists while the store is open: the sessions, and the threads that read and write. Raises `RuntimeError` if there is
    no thread, and then closes the sessions."""

    def __init__(self, address: Address, sessions: Sessions, expired_tasks: ExpiredTasks) -> None:
        self.sessions = sessions
        self._address = address
        self._expired_tasks = expired_tasks
        self._next_retention = 0.0
        try:
            self.reader_thread: WorkerThread[ReadRequest] = WorkerThread(
                "discreet-store-reader", self._process_reads, maintain=self._ping, finish=sessions.reading.close
            )
        except RuntimeError:
            sessions.close()
            raise
        try:
            self.writer_thread: WorkerThread[AnyRequest] = WorkerThread(
                "discreet-store-writer", self._process_writes, maintain=self._maintain, finish=self._leave
            )
        except RuntimeError:
            self.reader_thread.close_unattached()
            sessions.close()
            raise

    @property
    def owner_id(self) -> str:
        return self.sessions.writer.owner_id

    def attach(self) -> None:
        """Take jobs from this event loop."""
        self.reader_thread.attach()
        self.writer_thread.attach()
        self.sessions.inbox.attach(loop_caller())

    # -- in the threads ----------------------------------------------------------------------------------------

    def _process_writes(self, jobs: Sequence[Job[AnyRequest]]) -> None:
        self.sessions.writer.process(self.sessions.writing, jobs)

    def _process_reads(self, jobs: Sequence[Job[ReadRequest]]) -> None:
        for job in jobs:
            job.run(self._read)

    def _read(self, read: ReadRequest) -> object:
        with translate_errors(self._address.label):
            return self.sessions.reading.run(lambda session: read(Source(session, self._address)))

    def _ping(self) -> float:
        """Find out whether the session is still there, before a caller has to."""
        link = self.sessions.reading
        with suppress(StoreError):  # whoever reads is told
            self._read(lambda source: source.session.call("PING"))
        return link.seconds_to_next_try if link.away else HEARTBEAT_SECONDS

    def _maintain(self) -> float:
        """Stay alive, and delete expired tasks. What fails is made up for later."""
        link = self.sessions.writing
        try:
            self.sessions.writer.write(link, [writer.NOTHING])
            due = time.monotonic() >= self._next_retention
            if due and not self._delete_some(link):
                self._next_retention = time.monotonic() + INTERVAL_SECONDS
        except StoreError:
            self._next_retention = time.monotonic() + INTERVAL_SECONDS
        if link.away:
            return link.seconds_to_next_try
        return HEARTBEAT_SECONDS if time.monotonic() < self._next_retention else 0.0

    def _delete_some(self, link: ServerLink[Session]) -> bool:
        """Whether there may be more."""
        more = self._expired_tasks.delete_batch(link, self.sessions.writer)
        return self._expired_tasks.forget_batch(link, self.sessions.writer) or more

    def _leave(self) -> None:
        """The last thing in the writer's thread: be dead at once, not when the lease has run out."""
        link = self.sessions.writing
        with suppress(StoreError):  # the lease runs out
            if not link.away:
                self.sessions.writer.write(link, [writer.LEAVE])
        link.close()

    # -- the end -----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        await close_threads(self.sessions.stop, self.reader_thread, self.writer_thread)
        await anyio.to_thread.run_sync(self.sessions.listener.close)

    def close_unattached(self) -> None:
        self.sessions.stop()
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()
        self.sessions.listener.close()
