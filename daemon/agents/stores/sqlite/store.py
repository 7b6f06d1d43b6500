"""Stores tasks in a SQLite file, which several daemons of one machine may share. Committed tasks survive `kill -9`.

The event loop never waits for the disk: one thread writes, one reads, and the loop itself only asks SQLite whether anyone
has written.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, final

from .....lazy import anyio
from ...model.types import TaskState
from ..checks import Retention, check_changes, page_bound
from ..failures import log_failure
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
from ..worker_thread import Job, WorkerThread
from . import reader, statements
from .connections import Connections
from .owner_locks import is_alive
from .retention import ExpiredTasks
from .schema import damaged_row_error, translate_errors
from .writer import CommitRequest, SqliteWriter, WriteRequest

T = TypeVar("T")
ReadRequest: TypeAlias = Callable[[sqlite3.Connection], object]

_DEFAULT_RETENTION: Final = Retention()

CLOSE_SECONDS: Final = 0.5
"""How long closing waits for other processes that lock the file."""


@final
class SqliteStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons."""

    def __init__(
        self, path: str, retention: Retention = _DEFAULT_RETENTION, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = os.path.realpath(path)
        self._retention = retention
        self._clock = clock
        self._retained = RetainedTasks()
        self._opened: _OpenStore | None = None

    @property
    def durable(self) -> bool:
        return True

    @property
    def event_log(self) -> SqliteStore:
        return self

    @property
    def owner_id(self) -> str:
        return self._open_store.connections.owner_lock.owner_id

    @property
    def _open_store(self) -> _OpenStore:
        if self._opened is None:
            raise StoreError(f"{self._path} is not open")
        return self._opened

    # -- open and close ----------------------------------------------------------------------------------------

    def open_early(self) -> None:
        try:
            connections = Connections(self._path)
            try:
                self._opened = self._start(connections)
            except BaseException:
                connections.close()
                raise
        except RuntimeError as exc:
            raise StoreError(f"{self._path} needs threads, which the system does not provide") from exc

    def close_early(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close_unattached()

    async def open(self) -> None:
        if self._opened is None:
            await anyio.to_thread.run_sync(self.open_early)
        self._open_store.attach()

    def _start(self, connections: Connections) -> _OpenStore:
        writer = SqliteWriter(connections.writer, connections.owner_lock.owner_id, self._clock, connections.busy)
        return _OpenStore(connections, writer, ExpiredTasks(writer, self._retained, self._retention, self._clock))

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with anyio.CancelScope(shield=True):  # for `CLOSE_SECONDS`, and as long as the disk takes for queued writes
                await opened.close()

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        result: T = await self._open_store.reader_thread.run(read)
        return result

    async def _write(self, write: Callable[[sqlite3.Connection], T]) -> T:
        result: T = await self._open_store.writer_thread.run(write)
        return result

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
        return await self._write(self._open_store.expired_tasks.delete_batch)

    # -- push targets ------------------------------------------------------------------------------------------

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        body = encode(target)
        return await self._write(lambda connection: statements.put_push_target(connection, task_id, target, body))

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        return await self._read(lambda connection: reader.load_push_targets(connection, task_id))

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        return await self._write(lambda connection: statements.delete_push_target(connection, task_id, config_id))

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        orphans, dead_daemons = await self._read(self._find_orphans)
        if dead_daemons:
            await self._write(lambda connection: statements.delete_daemons(connection, dead_daemons))
        return orphans

    def _find_orphans(self, connection: sqlite3.Connection) -> tuple[Sequence[str], set[str]]:
        """The tasks of dead owners, and the dead daemons that still have a row. In the reader's thread."""
        daemons, owners = reader.list_owners(connection)
        dead = {owner for owner in daemons | owners if owner != self.owner_id and not is_alive(self._path, owner)}
        orphans = [task_id for owner in owners & dead for task_id in reader.list_owned_tasks(connection, owner)]
        return orphans, daemons & dead

    async def claim(self, limit: int) -> Sequence[str]:
        if limit < 1 or not await self._read(reader.has_queued):  # an idle daemon never writes
            return ()
        owner_id, claimed = self.owner_id, list[str]()
        with anyio.CancelScope(shield=True):  # for one write: what became this daemon's must reach the caller
            claimed += await self._write(lambda connection: statements.claim(connection, owner_id, limit))
        return claimed

    async def list_owned(self) -> Sequence[str]:
        owner_id = self.owner_id
        return await self._read(lambda connection: reader.list_owned_tasks(connection, owner_id))

    async def count_queued(self) -> int:
        return await self._read(reader.count_queued)

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        return await self._write(lambda connection: statements.insert_owner_request(connection, request))

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id, taken = self.owner_id, list[OwnerRequest]()
        if not await self._read(lambda connection: reader.has_owner_requests(connection, owner_id)):
            return ()
        with anyio.CancelScope(shield=True):  # for one write: what is deleted from the file must reach the caller
            intact, damaged = await self._write(lambda connection: statements.take_owner_requests(connection, owner_id))
            taken += intact
        for exc in damaged:
            log_failure(damaged_row_error(self._path, exc))
        return taken

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        while self._opened is None or not self._opened.has_news():
            await anyio.sleep(poll_seconds)
        return Changes(lambda _: True)

    def free(self, size: int) -> None:
        """Nothing: no task is in memory."""


@final
class _OpenStore:
    """What exists while the store is open: the connections and the two threads. Raises `RuntimeError` if there is no thread."""

    def __init__(self, connections: Connections, writer: SqliteWriter, expired_tasks: ExpiredTasks) -> None:
        self.connections = connections
        self.expired_tasks = expired_tasks
        self._writer = writer
        self._sqlite_data_version = -1
        self._writes_of_others = 0
        self.has_news()
        self.reader_thread: WorkerThread[ReadRequest] = WorkerThread("discreet-store-reader", self._process_reads)
        try:
            self.writer_thread: WorkerThread[WriteRequest] = WorkerThread(
                "discreet-store-writer", self._process_writes, maintain=expired_tasks.run, finish=connections.close
            )
        except RuntimeError:
            self.reader_thread.close_unattached()
            raise

    def attach(self) -> None:
        """Take jobs from this event loop."""
        self.reader_thread.attach()
        self.writer_thread.attach()

    def _process_writes(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        connections = self.connections
        with translate_errors(connections.path):
            connections.check_files()
            self._writer.process(jobs)
            connections.check_commit()

    def _process_reads(self, jobs: Sequence[Job[ReadRequest]]) -> None:
        for job in jobs:
            job.run(self._read)

    def _read(self, read: ReadRequest) -> object:
        connections = self.connections
        with translate_errors(connections.path):
            return connections.busy.run(lambda: read(connections.reader))

    def has_news(self) -> bool:
        """Whether other daemons have written since the last call. SQLite tells cheaply whether anyone has; only then is it
        counted."""
        connection = self.connections.loop_reader
        try:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version == self._sqlite_data_version:
                return False
            writes = reader.count_writes_of_others(connection, self.connections.owner_lock.owner_id)
        except (sqlite3.Error, UnicodeDecodeError):  # another process holds the file exclusively, or it is damaged
            return False
        self._sqlite_data_version = version
        before, self._writes_of_others = self._writes_of_others, writes
        return writes != before

    async def close(self) -> None:
        self.connections.busy.shorten(CLOSE_SECONDS)
        await self.reader_thread.close()
        await self.writer_thread.close()

    def close_unattached(self) -> None:
        self.connections.busy.shorten(CLOSE_SECONDS)
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()
