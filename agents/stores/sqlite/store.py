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
from time import monotonic
from typing import Any, Final, TypeVar, final

from ....daemon.logs import log
from ....lazy import anyio
from ..checks import DEFAULT_RETENTION, RetainedTasks, Retention
from ..interface import ANNOUNCED, Changes, StoreError, StoreUnavailableError
from ..threaded_store import OpenStore, ThreadedStore, WriteJobs
from . import reader
from .files import StoreFiles
from .owner_locks import Heartbeat, HeartbeatMonitor, OwnerLock, clock_of, is_alive
from .schema import BusyWait, check_tables, connect, open_read_only, open_writer, transaction, translate_errors
from .writer import SqliteWriter, delete_daemons, insert_daemon

T = TypeVar("T")

IDLE_SECONDS: Final = 1.0
"""How often it is asked whether others have written, where nothing was heard of that."""

RETRY_MS: Final = 1000
"""How long callers are told to wait for this daemon's next look at the others."""

CLOSE_SECONDS: Final = 0.5
"""How long closing waits for other processes that lock the file."""

EXPIRY_SECONDS: Final = 10.0
"""Between two looks for expired tasks."""


@final
class SqliteStore(ThreadedStore["_OpenStore", sqlite3.Connection]):
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
        super().__init__(os.path.realpath(path), reader, retention)
        self._clock = clock or time.time
        self._monotonic = monotonic
        self._monitor = HeartbeatMonitor(self._label, monotonic)

    def _open(self) -> _OpenStore:
        connections = Connections(self._label)
        try:
            return _OpenStore(connections, self._retained, self._retention, self._clock, self._monotonic)
        except BaseException:
            connections.close()
            raise

    def _connect(self) -> tuple[Callable[[Callable[[sqlite3.Connection], Any]], Any], Callable[[], None]]:
        connection, busy = open_read_only(self._label), BusyWait()

        def run(read: Callable[[sqlite3.Connection], Any]) -> Any:  # Any: as there
            with translate_errors(self._label):
                return busy.run(lambda: read(connection))

        return run, connection.close

    async def probe(self) -> None:
        await super().probe()
        await self._read(check_tables)

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_orphans(self) -> Sequence[str]:
        orphans, dead_daemons = await self._read(self._find_orphans)
        if dead_daemons:
            await self._write(lambda connection: delete_daemons(connection, dead_daemons))
        return orphans

    def _find_orphans(self, connection: sqlite3.Connection) -> tuple[Sequence[str], set[str]]:
        """The tasks of dead owners, and the dead daemons that still have a row. In the reader's thread."""
        daemons, owners = reader.list_owners(connection)
        others = (daemons | owners) - {self.owner_id}
        gone = {owner for owner in others if not is_alive(self._label, owner)}
        dead = gone | self._monitor.find_silent(others - gone)
        orphans = [task_id for owner in owners & dead for task_id in reader.list_owned_tasks(connection, owner)]
        return orphans, daemons & gone

    async def wait_for_changes(self, poll_seconds: float) -> Changes:
        while self._opened is None or not self._opened.has_news():
            if self._opened is None:
                await anyio.sleep(poll_seconds)
            else:
                await self._opened.watch.wait(poll_seconds, IDLE_SECONDS)
        return Changes(self._opened.may_concern())

    def lease_end(self) -> float:
        return math.inf if self._opened is None else self._opened.heartbeat.fence

    def check_reachable(self) -> None:
        """Raises `StoreUnavailableError` where this daemon was stopped for so long that others may have taken over its tasks, and
        it has not looked yet."""
        if self._opened is not None and self._opened.heartbeat.is_late:
            raise StoreUnavailableError(f"{self._label} may have changed hands", retry_after_ms=RETRY_MS, repeated=True)


@final
class _OpenStore(OpenStore[sqlite3.Connection]):
    def __init__(
        self,
        connections: Connections,
        retained: RetainedTasks,
        retention: Retention,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self.connections = connections
        self.time = CheckedTime(connections.writer, connections.owner_lock, clock)
        self.heartbeat = Heartbeat(connections.owner_lock, clock, monotonic)
        self.heartbeat.start()
        self.watch = ChangeWatch(connections.path)
        self._retained = retained
        self._retention = retention
        self._writer = SqliteWriter(
            connections.writer, self.owner_id, clock, connections.busy, self._find_expired, connections.path
        )
        self._sqlite_data_version = -1
        self._writes_of_others = 0
        self._last_announcement = 0
        self._announced: set[str] | None = set()
        self.has_news()
        self._announced = set()

    @property
    def owner_id(self) -> str:
        return self.connections.owner_lock.owner_id

    def start(self) -> None:
        try:
            super().start()
        except RuntimeError:
            self._stop_watching()
            raise

    # -- in the threads ----------------------------------------------------------------------------------------

    def read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        connections = self.connections
        with translate_errors(connections.path):
            return connections.busy.run(lambda: read(connections.reader))

    def write(self, jobs: WriteJobs) -> None:
        connections = self.connections
        with translate_errors(connections.path):
            connections.check_files()
            self._writer.process(jobs)
            connections.check_commit()

    def _find_expired(self) -> Sequence[int]:
        now = self.time.read(self._retention)
        return reader.expired_tasks(
            self.connections.writer,
            self._retained,
            ended_before_ms=-1.0 if now is None else max(self._retention.ended_before(now) * 1000, -1.0),
            max_tasks=self._retention.max_tasks,
        )

    def maintain(self) -> float:
        try:
            return 0.0 if self._writer.delete_expired() else EXPIRY_SECONDS
        except (sqlite3.Error, UnicodeDecodeError):  # a damaged text; the next run makes up for this one
            return EXPIRY_SECONDS

    def finish(self) -> None:
        self.connections.close()

    # -- on the event loop -------------------------------------------------------------------------------------

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
            last, announced = reader.announced_by_others(connection, self.owner_id, self._last_announcement)
        except (sqlite3.Error, UnicodeDecodeError):  # another process holds the file exclusively, or it is damaged
            return False
        self._sqlite_data_version = version
        self._last_announcement = last
        self._announced = None if announced is None or self._announced is None else self._announced | announced
        before, self._writes_of_others = self._writes_of_others, writes
        return writes != before

    def may_concern(self) -> Callable[[str], bool]:
        """What the changes since the last call may concern: every task, and the names that were announced."""
        announced, self._announced = self._announced, set()
        return lambda name: announced is None or name in announced or not name.startswith(ANNOUNCED)

    async def close(self) -> None:
        """Within `CLOSE_SECONDS`, and as long as the disk takes for queued writes."""
        self._stop()
        await self.reader_thread.close()
        await self.writer_thread.close()

    def close_unattached(self) -> None:
        self._stop()
        super().close_unattached()

    def _stop(self) -> None:
        self.connections.busy.shorten(CLOSE_SECONDS)
        self._stop_watching()

    def _stop_watching(self) -> None:
        self.heartbeat.stop()
        self.watch.close()


# -- the open file ----------------------------------------------------------------------------------------------


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
            self.busy.run(lambda: insert_daemon(self.writer, self.owner_lock.owner_id))
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
            self.busy.run(self._leave)

    def _leave(self) -> None:
        with transaction(self.writer):
            delete_daemons(self.writer, [self.owner_lock.owner_id])


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


# -- the time --------------------------------------------------------------------------------------------------

MAX_JUMP_SECONDS: Final = 600.0
"""How far a clock may be ahead of what is known of the time."""

HOLD_SECONDS: Final = 3600.0
"""How long no task is deleted for its age after the clock looked wrong: time to set it right."""


@final
class CheckedTime:
    """The time by which ages are measured, where nothing speaks against it."""

    def __init__(self, connection: sqlite3.Connection, owner_lock: OwnerLock, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._owner_lock = owner_lock
        self._clock = clock
        self._last: tuple[float, float] | None = None
        self._held_until = 0.0

    def read(self, limits: Retention) -> float | None:
        """In seconds since 1970. None for `HOLD_SECONDS` from the last moment at which the clock looked wrong."""
        now, steady = self._clock(), time.monotonic()
        ahead = self._seconds_ahead(now, steady, limits)
        self._last = now, steady
        if ahead > MAX_JUMP_SECONDS:
            if steady >= self._held_until:
                log.warning("store.clock_ahead", seconds=round(ahead), held=HOLD_SECONDS)
            self._held_until = steady + HOLD_SECONDS
        return None if steady < self._held_until else now

    def _seconds_ahead(self, now: float, steady: float, limits: Retention) -> float:
        """How far this clock is ahead: of its own time before, of the furthest of the other daemons' clocks, and at the start of
        a file whose last task to end would be deleted at once."""
        if self._last is None:
            last_end = reader.last_end_ms(self._connection)
            ahead = 0.0
            if last_end is not None and last_end / 1000 < limits.ended_before(now):
                ahead = now - last_end / 1000
        else:
            before, steady_before = self._last
            ahead = (now - before) - (steady - steady_before)
        daemons, _ = reader.list_owners(self._connection)
        clocks = [clock_of(self._owner_lock.store_path, owner) for owner in daemons - {self._owner_lock.owner_id}]
        known = [clock for clock in clocks if clock is not None]
        return max(ahead, now - max(known)) if known else ahead
