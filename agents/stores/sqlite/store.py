"""Stores tasks in a SQLite file, which several daemons of one machine may share. Committed tasks survive `kill -9`.

One thread writes, one reads, and the event loop itself only asks SQLite whether anyone has written.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, final

from ....lazy import anyio
from ..checks import DEFAULT_RETENTION, Retention
from ..failures import DamagedRecordError, damaged_task_error, log_failure
from ..interface import Changes, OwnerRequest, StoreUnavailableError
from ..threaded_store import ThreadedStore
from ..worker_thread import Job, WorkerThread
from . import reader, statements
from .change_watch import ChangeWatch
from .connections import Connections
from .owner_locks import Heartbeat, HeartbeatMonitor, is_alive
from .retention import ExpiredTasks
from .schema import check_tables, translate_errors
from .writer import SqliteWriter, WriteRequest

ReadRequest: TypeAlias = Callable[[sqlite3.Connection], object]

IDLE_SECONDS: Final = 1.0
"""How often it is asked whether others have written, where nothing was heard of that."""

RETRY_MS: Final = 1000
"""How long callers are told to wait for this daemon's next look at the others."""

CLOSE_SECONDS: Final = 0.5
"""How long closing waits for other processes that lock the file."""


@final
class SqliteStore(ThreadedStore["_OpenStore", sqlite3.Connection, sqlite3.Connection]):
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970, `monotonic` any that tells how long a daemon has been
    silent."""

    def __init__(
        self,
        path: str,
        retention: Retention = DEFAULT_RETENTION,
        *,
        clock: Callable[[], float] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(os.path.realpath(path), reader, statements)
        self._retention = retention
        self._clock = clock or time.time
        self._monotonic = monotonic
        self._monitor = HeartbeatMonitor(self._label, monotonic)

    def _open(self) -> _OpenStore:
        connections = Connections(self._label)
        try:
            writer = SqliteWriter(connections.writer, connections.owner_lock.owner_id, self._clock, connections.busy)
            expired_tasks = ExpiredTasks(writer, self._retained, self._retention, connections.owner_lock, self._clock)
            return _OpenStore(connections, writer, expired_tasks, self._clock, self._monotonic)
        except BaseException:
            connections.close()
            raise

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        return await self._write(self._open_store.expired_tasks.delete_batch)

    async def probe(self) -> None:
        await super().probe()
        await self._read(check_tables)

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        orphans, dead_daemons = await self._read(self._find_orphans)
        if dead_daemons:
            await self._write(lambda connection: statements.delete_daemons(connection, dead_daemons))
        return orphans

    def _find_orphans(self, connection: sqlite3.Connection) -> tuple[Sequence[str], set[str]]:
        """The tasks of dead owners, and the dead daemons that still have a row. In the reader's thread."""
        daemons, owners = reader.list_owners(connection)
        others = (daemons | owners) - {self.owner_id}
        gone = {owner for owner in others if not is_alive(self._label, owner)}
        dead = gone | self._monitor.find_silent(others - gone)
        orphans = [task_id for owner in owners & dead for task_id in reader.list_owned_tasks(connection, owner)]
        return orphans, daemons & gone

    def _claim_request(self, limit: int) -> Callable[[sqlite3.Connection], Sequence[str]]:
        owner_id = self.owner_id
        return lambda connection: statements.claim(connection, owner_id, limit)

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda connection: reader.has_owner_requests(connection, owner_id)):
            return ()
        taken: list[OwnerRequest]
        damaged: list[DamagedRecordError]
        taken, damaged = await self._receive(partial(statements.take_owner_requests, owner_id=owner_id))
        for exc in damaged:
            log_failure(damaged_task_error(self._label, exc))
        return taken

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        while self._opened is None or not self._opened.has_news():
            if self._opened is None:
                await anyio.sleep(poll_seconds)
            else:
                await self._opened.watch.wait(poll_seconds, IDLE_SECONDS)
        return Changes(lambda _: True)

    def lease_end(self) -> float:
        return math.inf if self._opened is None else self._opened.heartbeat.fence

    def check_reachable(self) -> None:
        """Raises `StoreUnavailableError` where this daemon was stopped for so long that others may have taken over its tasks, and
        it has not looked yet."""
        if self._opened is not None and self._opened.heartbeat.is_late:
            raise StoreUnavailableError(f"{self._label} may have changed hands", retry_after_ms=RETRY_MS, repeated=True)


@final
class _OpenStore:
    """What exists while the store is open: the connections and the two threads. Raises `RuntimeError` if there is no thread."""

    def __init__(
        self,
        connections: Connections,
        writer: SqliteWriter,
        expired_tasks: ExpiredTasks,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self.connections = connections
        self.expired_tasks = expired_tasks
        self.heartbeat = Heartbeat(connections.owner_lock, clock, monotonic)
        self.watch = ChangeWatch(connections.path)
        self._writer = writer
        self._sqlite_data_version = -1
        self._writes_of_others = 0
        self.has_news()
        self.heartbeat.start()
        self.reader_thread: WorkerThread[ReadRequest] = WorkerThread("discreet-store-reader", self._process_reads)
        try:
            self.writer_thread: WorkerThread[WriteRequest] = WorkerThread(
                "discreet-store-writer", self._process_writes, maintain=expired_tasks.run, finish=connections.close
            )
        except RuntimeError:
            self.reader_thread.close_unattached()
            self._stop_watching()
            raise

    @property
    def owner_id(self) -> str:
        return self.connections.owner_lock.owner_id

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
            self.heartbeat.beat_if_due()
            if self.heartbeat.take_was_late():
                return True
            if version == self._sqlite_data_version:
                return False
            writes = reader.count_writes_of_others(connection, self.owner_id)
        except (sqlite3.Error, UnicodeDecodeError):  # another process holds the file exclusively, or it is damaged
            return False
        self._sqlite_data_version = version
        before, self._writes_of_others = self._writes_of_others, writes
        return writes != before

    async def close(self) -> None:
        """Within `CLOSE_SECONDS`, and as long as the disk takes for queued writes."""
        self.connections.busy.shorten(CLOSE_SECONDS)
        self._stop_watching()
        await self.reader_thread.close()
        await self.writer_thread.close()

    def _stop_watching(self) -> None:
        self.heartbeat.stop()
        self.watch.close()

    def close_unattached(self) -> None:
        self.connections.busy.shorten(CLOSE_SECONDS)
        self._stop_watching()
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()
