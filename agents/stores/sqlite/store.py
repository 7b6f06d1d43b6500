"""Stores tasks in a SQLite file, which several daemons of one machine may share. Committed tasks survive `kill -9`.

One thread writes, one reads, and the event loop itself only asks SQLite whether anyone has written.
"""

from __future__ import annotations

import ctypes
import math
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from time import monotonic
from typing import Final, TypeAlias, final

from ....lazy import anyio
from ..checks import DEFAULT_RETENTION, Retention
from ..failures import DamagedRecordError, damaged_task_error, log_failure
from ..interface import Changes, OwnerRequest, StoreError, StoreUnavailableError
from ..threaded_store import ThreadedStore
from ..worker_thread import Job, WorkerThread
from . import reader, statements
from .busy import BusyWait
from .files import StoreFiles
from .owner_locks import Heartbeat, HeartbeatMonitor, OwnerLock, is_alive
from .retention import ExpiredTasks
from .schema import check_tables, connect, open_writer, translate_errors
from .writer import SqliteWriter, WriteRequest

# The open file: its connections, the lock of this daemon, and what watches that the file stays the same. Reads no task.


@final
class Connections:
    """Opens the file. Raises `StoreError`, and then leaves nothing open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.busy = BusyWait()
        with translate_errors(path), ExitStack() as stack:
            self.writer = stack.enter_context(closing(open_writer(path)))
            self.reader = stack.enter_context(closing(connect(path)))
            self.loop_reader = stack.enter_context(closing(connect(path, busy_seconds=0)))
            self.reader.execute("PRAGMA query_only = ON")
            self.owner_lock = OwnerLock(path)
            stack.callback(self.owner_lock.release)
            self.busy.run(lambda: statements.insert_daemon(self.writer, self.owner_lock.owner_id))
            self._files = StoreFiles(path)
            self._stack = stack.pop_all()

    def check_files(self) -> None:
        """Before a commit. Raises `StoreError` if a file was removed or replaced."""
        try:
            self._files.check()
        except StoreError:
            self._save_log()
            raise

    def check_commit(self) -> None:
        """After a commit, before it is acknowledged. Raises `StoreError` if it would be lost with this process."""
        try:
            self._files.check_commit()
        except StoreError:
            self._save_log()
            raise

    def _save_log(self) -> None:
        """If only the log was removed, bring what it holds into the store's file: all of it was acknowledged."""
        if self._files.only_log_removed:
            with suppress(sqlite3.Error):
                self.writer.execute("PRAGMA wal_checkpoint(FULL)")

    def close(self) -> None:
        """Waits for other processes as long as `busy` says. If they take longer, they find out that this daemon is gone."""
        with self._stack, translate_errors(self.path):
            self.busy.run(lambda: statements.delete_own_daemon(self.writer, self.owner_lock.owner_id))


# Tells when another process may have written to the store's file, so that an idle daemon need not look all the time.
#
# Linux's inotify hears each write to SQLite's log, before the commit can be seen. Other systems have nothing as cheap:
# there the file is looked at now and then.


AWAKE_SECONDS: Final = 0.5
"""How long after a write the commit is looked for. The disk takes its time in between."""

LOOK_SECONDS: Final = 0.02
"""Between two looks then."""

_IN_MODIFY: Final = 2
_EVENT_BYTES: Final = 4096


@final
class ChangeWatch:
    """Watches the log of the store at this path. Used on the event loop, by one task at a time."""

    def __init__(self, path: str) -> None:
        self._fd = _watch(f"{path}-wal")
        self._awake_until = 0.0

    async def wait(self, poll_seconds: float, idle_seconds: float) -> None:
        """Wait until something may have been written, and at most `idle_seconds`. Where that can't be heard, wait for
        `poll_seconds`."""
        if self._fd is None:
            return await anyio.sleep(poll_seconds)
        if monotonic() < self._awake_until:
            return await anyio.sleep(LOOK_SECONDS)
        with anyio.move_on_after(idle_seconds):
            await anyio.wait_readable(self._fd)
            with suppress(OSError):
                os.read(self._fd, _EVENT_BYTES)
            self._awake_until = monotonic() + AWAKE_SECONDS

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _watch(file: str) -> int | None:
    """A descriptor that can be read when the file was written to; None where the system has no such thing, or no more of it."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return None
    if fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(file), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd if fd >= 0 else None


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
