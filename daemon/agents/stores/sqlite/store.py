"""Stores tasks in a SQLite file, which several daemons of one machine may share. Committed tasks survive `kill -9`.

The event loop never waits for the disk: one thread writes, one reads, and the loop itself only asks SQLite whether anyone
has written.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import TypeAlias, TypeVar, final

from ..checks import ENDED_TASK_SECONDS, MAX_ENDED_TASKS, check_changes, page_bound
from ..interface import (
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
from ..serialization import EncodedChange, encode, encode_change
from ..worker_thread import Job, WorkerThread
from . import reader, statements
from .owner_locks import OwnerLock, is_alive
from .retention import Retention
from .schema import connect, open_writer, translate_errors
from .writer import CommitRequest, SqliteWriter, WriteRequest

T = TypeVar("T")
ReadRequest: TypeAlias = Callable[[sqlite3.Connection], object]


@final
class SqliteStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970 and the same for all daemons.

    Keeps at most `max_ended_tasks` tasks that have ended, each for at most `ended_task_seconds`, and for a while some more.
    """

    def __init__(
        self,
        path: str,
        *,
        max_ended_tasks: int = MAX_ENDED_TASKS,
        ended_task_seconds: float = ENDED_TASK_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = os.path.realpath(path)
        self._max_ended_tasks = max_ended_tasks
        self._ended_task_seconds = ended_task_seconds
        self._clock = clock
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

    def verify(self) -> None:
        """Open the file, create or migrate it if needed, and close it. Blocks. Raises `StoreError` if `open` would."""
        _Connections(self._path).close()

    # -- open and close ----------------------------------------------------------------------------------------

    async def open(self) -> None:
        from anyio import to_thread  # late: the first replies leave without an event loop

        connections = await to_thread.run_sync(_Connections, self._path)
        writer = SqliteWriter(connections.writer, connections.owner_lock.owner_id, self._clock)
        retention = Retention(
            writer, max_tasks=self._max_ended_tasks, max_seconds=self._ended_task_seconds, clock=self._clock
        )
        self._opened = _OpenStore(connections, writer, retention)

    async def close(self) -> None:
        import anyio  # late, as above

        opened, self._opened = self._opened, None
        if opened is not None:
            with anyio.CancelScope(shield=True):  # for as long as the queued writes take
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
        encoded = [(change, encode_change(change, keep_covered_events=True)) for change in changes]
        valid = [(change, each) for change, each in encoded if isinstance(each, EncodedChange)]
        results = iter(await self._open_store.writer_thread.run(CommitRequest(valid)) if valid else ())
        return [each if isinstance(each, Unserializable) else next(results) for _, each in encoded]

    async def load(self, task_id: str) -> StoredTask | None:
        return await self._read(lambda connection: reader.load_task(connection, task_id))

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        return await self._read(lambda connection: reader.read_events(connection, task_id, after, limit))

    async def list(self, query: TaskQuery) -> TaskPage:
        bound = page_bound(query)
        return await self._read(lambda connection: reader.list_tasks(connection, query, bound))

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        return await self._write(self._open_store.retention.delete_batch)

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

    async def send_owner_request(self, task_id: str, kind: str) -> bool:
        return await self._write(lambda connection: statements.insert_owner_request(connection, task_id, kind))

    def free(self, size: int) -> None:
        """Nothing: no task is in memory."""

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda connection: reader.has_owner_requests(connection, owner_id)):
            return ()
        return await self._take_owner_requests(owner_id)

    async def _take_owner_requests(self, owner_id: str) -> Sequence[OwnerRequest]:
        import anyio  # late, as above

        taken: list[OwnerRequest] = []
        with anyio.CancelScope(shield=True):  # for one write: what is deleted from the file must reach the caller
            taken += await self._write(lambda connection: statements.take_owner_requests(connection, owner_id))
        return taken

    def data_version(self) -> int:
        return 0 if self._opened is None else self._opened.data_version()


@final
class _Connections:
    """The open file: its connections and the lock of this daemon. Raises `StoreError`, and then leaves nothing open."""

    def __init__(self, path: str) -> None:
        with translate_errors(path), ExitStack() as stack:
            self.writer = stack.enter_context(closing(open_writer(path)))
            self.reader = stack.enter_context(closing(connect(path)))
            self.loop_reader = stack.enter_context(closing(connect(path, busy_seconds=0)))
            self.reader.execute("PRAGMA query_only = ON")
            self.owner_lock = OwnerLock(path)
            stack.callback(self.owner_lock.release)
            statements.insert_daemon(self.writer, self.owner_lock.owner_id)
            self._file_id = _file_id(path)
            self._stack = stack.pop_all()
        self.path = path

    def check_file(self) -> None:
        """Raises `StoreError` or `OSError` if the file was removed or replaced: writes to it would be lost."""
        if _file_id(self.path) != self._file_id:
            raise StoreError(f"{self.path} is another file than the one that was opened")

    def close(self) -> None:
        with self._stack, translate_errors(self.path):
            statements.delete_own_daemon(self.writer, self.owner_lock.owner_id)


@final
class _OpenStore:
    """What exists while the store is open: the connections and the two threads."""

    def __init__(self, connections: _Connections, writer: SqliteWriter, retention: Retention) -> None:
        self.connections = connections
        self.retention = retention
        self._writer = writer
        self._sqlite_data_version = -1
        self._data_version = 0
        self.writer_thread: WorkerThread[WriteRequest] = WorkerThread(
            "discreet-store-writer", self._process_writes, retention.run
        )
        self.reader_thread: WorkerThread[ReadRequest] = WorkerThread("discreet-store-reader", self._process_reads)

    def _process_writes(self, jobs: Sequence[Job[WriteRequest]]) -> None:
        with translate_errors(self.connections.path):
            self.connections.check_file()
            self._writer.process(jobs)

    def _process_reads(self, jobs: Sequence[Job[ReadRequest]]) -> None:
        for job in jobs:
            job.run(self._read)

    def _read(self, read: ReadRequest) -> object:
        with translate_errors(self.connections.path):
            return read(self.connections.reader)

    def data_version(self) -> int:
        """How many transactions other daemons wrote. SQLite tells cheaply whether anyone wrote; only then is it counted."""
        connection = self.connections.loop_reader
        try:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._sqlite_data_version:
                self._data_version = reader.count_writes_of_others(connection, self.connections.owner_lock.owner_id)
                self._sqlite_data_version = version
        except sqlite3.Error:  # another process holds the file exclusively at the moment
            pass
        return self._data_version

    async def close(self) -> None:
        from anyio import to_thread  # late, as above

        await self.reader_thread.close()
        await self.writer_thread.close()
        await to_thread.run_sync(self.connections.close)


def _file_id(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
