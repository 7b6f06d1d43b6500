"""Stores tasks in a PostgreSQL database, which daemons of several machines may share. Committed tasks survive `kill -9` of a
daemon, and of the server.

The event loop never waits for the server: one thread writes, one reads, one listens. psycopg's own asynchronous connections
work with asyncio alone; with threads both event loops run the same code, which they also do for SQLite.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar, final

import psycopg

from .....lazy import anyio
from ...model.types import TaskState
from ..checks import Retention, check_changes, page_bound
from ..interface import (
    Changes,
    CommitRefusal,
    LoggedEvent,
    OwnerRequest,
    PushTarget,
    StoredTask,
    StoreError,
    TaskChange,
    TaskPage,
    TaskQuery,
    Unserializable,
)
from ..retained_tasks import RetainedTasks
from ..serialization import EncodedChange, encode, encode_change
from ..worker_thread import Job, WorkerThread, loop_caller
from . import reader, statements
from .address import read_address
from .batch import Batch
from .failures import translate_errors
from .schema import AnyConnection
from .session import release_names
from .sessions import Sessions
from .writer import ClaimRequest, CommitRequest, TakeRequest, WriteRequest

T = TypeVar("T")
ReadRequest: TypeAlias = Callable[[AnyConnection], object]

CLOSE_SECONDS: Final = 0.4
"""How long closing waits for what is queued, and then for the threads to notice that they wait in vain."""

EXPIRY_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""

HEARTBEAT_SECONDS: Final = 1.0
"""How often an idle daemon finds out whether it still has its session, and so its name."""


@final
class PostgresStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons.

    Raises `StoreError` for an address that libpq can't read.
    """

    def __init__(
        self,
        url: str,
        retention: Retention = Retention(),  # noqa: B008 - frozen
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._address = read_address(url)
        self._limits = retention
        self._retained = RetainedTasks()
        self._clock = clock
        self._opened: _OpenStore | None = None

    @property
    def durable(self) -> bool:
        return True

    @property
    def event_log(self) -> PostgresStore:
        return self

    @property
    def owner_id(self) -> str:
        return self._open_store.sessions.writer.owner_id

    @property
    def _open_store(self) -> _OpenStore:
        if self._opened is None:
            raise StoreError(f"{self._address.label} is not open")
        return self._opened

    # -- open and close ----------------------------------------------------------------------------------------

    def open_early(self) -> None:
        if not psycopg.Pipeline.is_supported():
            raise StoreError("psycopg needs libpq 14 or later; pip install 'discreet[postgres]' has one")
        try:
            sessions = Sessions(self._address, self._clock)
            self._opened = _OpenStore(self._address.label, sessions, self._delete_expired)
        except RuntimeError as exc:
            raise StoreError(f"{self._address.label} needs threads, which the system does not provide") from exc

    def close_early(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close_unattached()

    async def open(self) -> None:
        if self._opened is None:
            await anyio.to_thread.run_sync(self.open_early)
        self._open_store.attach()

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with anyio.CancelScope(shield=True):  # for `CLOSE_SECONDS`, twice
                await opened.close()

    async def _read(self, read: Callable[[AnyConnection], T]) -> T:
        result: T = await self._open_store.reader_thread.run(read)
        return result

    async def _write(self, write: Callable[[Batch], T]) -> T:
        result: T = await self._open_store.writer_thread.run(write)
        return result

    async def _write_and_hear(self, request: ClaimRequest | TakeRequest) -> Any:  # Any: its type depends on the request
        """Cancelled only when the answer is known: what is taken from the store must reach the caller."""
        with anyio.CancelScope(shield=True):  # for one write
            return await self._open_store.writer_thread.run(request)

    # -- tasks -------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        check_changes(changes)
        encoded = [(change, encode_change(change)) for change in changes]
        valid = [(change, each) for change, each in encoded if isinstance(each, EncodedChange)]
        results = iter(await self._open_store.writer_thread.run(CommitRequest(valid)) if valid else ())
        return [each if isinstance(each, Unserializable) else next(results) for _, each in encoded]

    async def load(self, task_id: str) -> StoredTask | None:
        return await self._read(lambda connection: reader.load_task(connection, task_id))

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        return await self._read(lambda connection: reader.read_events(connection, task_id, after, limit))

    def retain(self, task_id: str) -> None:
        self._retained.add(task_id)

    def release(self, task_id: str) -> None:
        self._retained.remove(task_id)

    async def list(self, query: TaskQuery) -> TaskPage:
        bound = page_bound(query)
        return await self._read(lambda connection: reader.list_tasks(connection, query, bound))

    async def count(self) -> Mapping[TaskState, int]:
        return await self._read(reader.count_states)

    async def probe(self) -> None:
        await self._write(lambda _: None)  # a transaction with nothing in it but its own mark, which goes to the disk

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        return await self._write(self._delete_expired)

    def _delete_expired(self, batch: Batch) -> bool:
        return statements.delete_expired(batch, self._limits, self._retained, self._clock())

    # -- push targets ------------------------------------------------------------------------------------------

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        body = encode(target)
        return await self._write(lambda batch: statements.put_push_target(batch, task_id, target, body))

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        return await self._read(lambda connection: reader.load_push_targets(connection, task_id))

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        return await self._write(lambda batch: statements.delete_push_target(batch, task_id, config_id))

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        return await self._read(lambda connection: reader.list_orphans(connection, self.owner_id))

    async def claim(self, limit: int) -> Sequence[str]:
        if limit < 1 or not await self._read(reader.has_queued):  # an idle daemon never writes
            return ()
        claimed: list[str] = await self._write_and_hear(ClaimRequest(limit))
        return claimed

    async def count_queued(self) -> int:
        return await self._read(reader.count_queued)

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        return await self._write(lambda batch: statements.insert_owner_request(batch, request))

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda connection: reader.has_owner_requests(connection, owner_id)):
            return ()
        taken: list[OwnerRequest] = await self._write_and_hear(TakeRequest())
        return taken

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        if self._opened is None:
            await anyio.sleep_forever()
        return await self._open_store.sessions.inbox.wait()

    def free(self, size: int) -> None:
        """Nothing: no task is in memory."""


@final
class _OpenStore:
    """What exists while the store is open: the sessions, and the threads that read and write. Raises `RuntimeError` if there is
    no thread, and then closes the sessions."""

    def __init__(self, label: str, sessions: Sessions, delete_expired: Callable[[Batch], bool]) -> None:
        self.sessions = sessions
        self._label = label
        self._delete_expired = delete_expired
        self._next_expiry = 0.0
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
            return self.sessions.reading.run(read)

    def _maintain(self) -> float:
        """Find out whether the session is still there, and delete expired tasks. What fails is made up for later."""
        link = self.sessions.writing
        try:
            if time.monotonic() < self._next_expiry:
                link.run(lambda connection: connection.execute("SELECT"))
            elif not link.run(lambda connection: self.sessions.writer.run_alone(connection, self._delete_expired)):
                self._next_expiry = time.monotonic() + EXPIRY_SECONDS
        except (StoreError, psycopg.Error):
            self._next_expiry = time.monotonic() + EXPIRY_SECONDS
        if link.away:
            return link.seconds_to_next_try
        return HEARTBEAT_SECONDS if time.monotonic() < self._next_expiry else 0.0

    def _finish(self) -> None:
        """Give the name back before the session ends, which the server may notice later than others look for orphans."""
        link = self.sessions.writing
        with suppress(StoreError, psycopg.Error):
            link.run(release_names)
        link.close()

    # -- the end -----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        self.sessions.stop()
        with anyio.move_on_after(CLOSE_SECONDS) as in_time:
            await self._close_threads()
        if in_time.cancelled_caught:
            self.sessions.stop(at_once=True)
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._close_threads()
        await anyio.to_thread.run_sync(self.sessions.listener.close)

    async def _close_threads(self) -> None:
        await self.reader_thread.close()
        await self.writer_thread.close()

    def close_unattached(self) -> None:
        self.sessions.stop(at_once=True)
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()
        self.sessions.listener.close()
