"""Stores tasks in a Redis server, or a cluster, which daemons of several machines may share. Committed tasks survive `kill -9` of
a daemon, and of the server as far as its settings say: the server's append-only file is what makes it durable.

The event loop never waits for the server: one thread writes, one reads, one listens. So both event loops run the same code,
which they also do for the other stores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, final

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
from ..serialization import EncodedChange, encode_change
from ..worker_thread import Job, WorkerThread, loop_caller
from . import reader, writer
from .address import Address, read_address
from .connection import Session
from .failures import translate_errors
from .retention import BATCH, INTERVAL_SECONDS, ExpiredTasks
from .sessions import Sessions
from .writer import WriteRequest

T = TypeVar("T")
ReadRequest: TypeAlias = Callable[[Session, Address], object]

_DEFAULT_RETENTION: Final = Retention()

CLOSE_SECONDS: Final = 0.4
"""How long closing waits for what is queued, and then for the threads to notice that they wait in vain."""

HEARTBEAT_SECONDS: Final = 1.0
"""How often a daemon says that it is alive, and finds out whether the server is."""


@final
class RedisStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons.

    Raises `StoreError` for an address that is wrong.
    """

    def __init__(
        self, url: str, retention: Retention = _DEFAULT_RETENTION, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._address = read_address(url)
        self._retained = RetainedTasks()
        self._expired_tasks = ExpiredTasks(self._address, self._retained, retention, clock)
        self._clock = clock
        self._opened: _OpenStore | None = None

    @property
    def durable(self) -> bool:
        """True: what is committed survives this process. Whether it survives the server, `store.volatile` in the log says."""
        return True

    @property
    def event_log(self) -> RedisStore:
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
        try:
            sessions = Sessions(self._address, self._clock)
            self._opened = _OpenStore(self._address, sessions, self._expired_tasks)
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

    async def _read(self, read: Callable[[Session, Address], T]) -> T:
        result: T = await self._open_store.reader_thread.run(read)
        return result

    async def _write(self, request: WriteRequest) -> Any:  # Any: the result of the request
        return await self._open_store.writer_thread.run(request)

    # -- tasks -------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        check_changes(changes)
        encoded = [(change, encode_change(change)) for change in changes]
        valid = [(change, each) for change, each in encoded if isinstance(each, EncodedChange)]
        results = iter(await self._write(writer.commit_request(valid)) if valid else ())
        return [each if isinstance(each, Unserializable) else next(results) for _, each in encoded]

    async def load(self, task_id: str) -> StoredTask | None:
        return await self._read(lambda session, address: reader.load_task(session, address, task_id))

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        return await self._read(
            lambda session, address: reader.read_events(session, address, task_id, after=after, limit=limit)
        )

    def retain(self, task_id: str) -> None:
        self._retained.add(task_id)

    def release(self, task_id: str) -> None:
        self._retained.remove(task_id)

    async def list(self, query: TaskQuery) -> TaskPage:
        bound = page_bound(query)
        return await self._read(lambda session, address: reader.list_tasks(session, address, query, bound))

    async def count(self) -> Mapping[TaskState, int]:
        return await self._read(reader.count_states)

    async def probe(self) -> None:
        await self._write(writer.PROBE)

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        ids = await self._read(self._expired_tasks.find)
        if ids:
            await self._write(writer.delete_request(ids))
        return len(ids) == BATCH

    # -- push targets ------------------------------------------------------------------------------------------

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        done: bool = await self._write(writer.put_target_request(task_id, target))
        return done

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        return await self._read(lambda session, address: reader.load_push_targets(session, address, task_id))

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        done: bool = await self._write(writer.delete_target_request(task_id, config_id))
        return done

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        owner_id = self.owner_id
        return await self._read(
            lambda session, address: reader.list_orphans(session, address, owner_id, writer.LEASE_MS)
        )

    async def claim(self, limit: int) -> Sequence[str]:
        if limit < 1 or not await self.count_queued():
            return ()
        return await self._receive(writer.claim_request(limit))

    async def count_queued(self) -> int:
        return await self._read(reader.count_queued)

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        done: bool = await self._write(writer.send_request(request))
        return done

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda session, address: reader.has_owner_requests(session, address, owner_id)):
            return ()
        return await self._receive(writer.TAKE)

    async def _receive(self, request: WriteRequest) -> Sequence[Any]:  # Any: what the server gives to this daemon
        received: list[Any] = []
        with anyio.CancelScope(shield=True):  # for one write: what the server no longer has must reach the caller
            received += await self._write(request)
        return received

    async def wait_for_changes(self, poll_seconds: float) -> Changes:  # noqa: ARG002 - the server tells of changes
        return await self._open_store.sessions.inbox.wait()

    def free(self, size: int) -> None:
        """Nothing: no task is in memory."""


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
            self.writer_thread: WorkerThread[WriteRequest] = WorkerThread(
                "discreet-store-writer", self._process_writes, maintain=self._maintain, finish=self._leave
            )
        except RuntimeError:
            self.reader_thread.close_unattached()
            sessions.close()
            raise

    def attach(self) -> None:
        """Take jobs from this event loop."""
        self.reader_thread.attach()
        self.writer_thread.attach()
        self.sessions.inbox.attach(loop_caller())

    # -- in the threads ----------------------------------------------------------------------------------------

    def _process_writes(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        self.sessions.writer.process(self.sessions.writing, jobs)

    def _process_reads(self, jobs: Sequence[Job[ReadRequest]]) -> None:
        for job in jobs:
            job.run(self._read)

    def _read(self, read: ReadRequest) -> object:
        with translate_errors(self._address.label):
            return self.sessions.reading.run(lambda session: read(session, self._address))

    def _ping(self) -> float:
        """Find out whether the session is still there, before a caller has to."""
        link = self.sessions.reading
        try:
            self._read(lambda session, _: session.call("PING"))
        except StoreError:
            pass  # whoever reads is told
        return link.seconds_to_next_try if link.away else HEARTBEAT_SECONDS

    def _maintain(self) -> float:
        """Stay alive, and delete expired tasks. What fails is made up for later."""
        link = self.sessions.writing
        try:
            self.sessions.writer.write(link, [writer.NOTHING])
            if time.monotonic() >= self._next_retention:
                if not self._expired_tasks.delete_batch(link, self.sessions.writer):
                    self._next_retention = time.monotonic() + INTERVAL_SECONDS
        except StoreError:
            self._next_retention = time.monotonic() + INTERVAL_SECONDS
        if link.away:
            return link.seconds_to_next_try
        return HEARTBEAT_SECONDS if time.monotonic() < self._next_retention else 0.0

    def _leave(self) -> None:
        """The last thing in the writer's thread: be dead at once, not when the lease has run out."""
        link = self.sessions.writing
        try:
            if not link.away:
                self.sessions.writer.write(link, [writer.LEAVE])
        except StoreError:
            pass  # the lease runs out
        finally:
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
        self.sessions.stop()
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()
        self.sessions.listener.close()
