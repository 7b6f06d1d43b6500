"""Tasks in an SQLite file, which many daemons of one machine share, and which stays when they are killed.

The event loop never waits for the disk: one thread writes, another reads, and the loop itself only asks SQLite whether
somebody else has written.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import TypeAlias, TypeVar, final

from ..checks import KEEP_ENDED, KEEP_SECONDS, check, number_below
from ..interface import Change, Listed, Logged, PushTarget, Query, Refusal, Stored, StoreError, UnstorableError
from ..serialization import Packed, pack, pack_change
from ..worker_thread import Job, WorkerThread
from . import reader
from . import statements as requests
from .owner_locks import Claim, is_alive
from .retention import Retention
from .schema import connect, open_writer, told
from .writer import Commit, SqliteWriter, Write

T = TypeVar("T")
Read: TypeAlias = Callable[[sqlite3.Connection], object]


@final
class SqliteStore:
    """A `TaskStore` and its `EventLog`. `clock` is in seconds since 1970, and the same for all daemons.

    Keeps `keep_ended` tasks that have ended, for `keep_seconds` at most, and a few more for a while.
    """

    def __init__(
        self,
        path: str,
        *,
        keep_ended: int = KEEP_ENDED,
        keep_seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = os.path.realpath(path)
        self._keep_ended = keep_ended
        self._keep_seconds = keep_seconds
        self._clock = clock
        self._opened: _Opened | None = None

    @property
    def durable(self) -> bool:
        return True

    @property
    def events(self) -> SqliteStore:
        return self

    @property
    def owner(self) -> str:
        return self._open_one.files.claim.owner

    @property
    def _open_one(self) -> _Opened:
        if self._opened is None:
            raise StoreError(f"{self._path} is not open")
        return self._opened

    def verify(self) -> None:
        """Open the file, make it or bring it up to date, and close it. Blocks. Raises `StoreError` where `open` would."""
        _Files(self._path).close()

    # -- its life ----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        from anyio import to_thread  # late: the first replies leave without an event loop

        files = await to_thread.run_sync(_Files, self._path)
        writer = SqliteWriter(files.writing, files.claim.owner, self._clock)
        tidier = Retention(writer, keep=self._keep_ended, seconds=self._keep_seconds, clock=self._clock)
        self._opened = _Opened(files, writer, tidier)

    async def close(self) -> None:
        import anyio  # late, as above

        opened, self._opened = self._opened, None
        if opened is not None:
            with anyio.CancelScope(shield=True):  # as long as it takes to write what was asked for
                await opened.close()

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        result: T = await self._open_one.reads.do(read)
        return result

    async def _write(self, write: Callable[[sqlite3.Connection], T]) -> T:
        result: T = await self._open_one.writes.do(write)
        return result

    # -- tasks -------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> Sequence[Refusal | None]:
        check(changes)
        packed = [(change, pack_change(change, covered=True)) for change in changes]
        good = [(change, pack) for change, pack in packed if isinstance(pack, Packed)]
        results = iter(await self._open_one.writes.do(Commit(good)) if good else ())
        return [pack if isinstance(pack, UnstorableError) else next(results) for _, pack in packed]

    async def load(self, task_id: str) -> Stored | None:
        return await self._read(lambda connection: reader.load(connection, task_id))

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[Logged]:
        return await self._read(lambda connection: reader.read(connection, task_id, after, limit))

    async def list(self, query: Query) -> Listed:
        below = number_below(query)
        return await self._read(lambda connection: reader.list_tasks(connection, query, below))

    async def tidy(self) -> bool:
        """One step of what is done in the background anyway: whether there may be more to do."""
        return await self._write(self._open_one.tidier.step)

    # -- what belongs to a task --------------------------------------------------------------------------------

    async def put_target(self, task_id: str, target: PushTarget) -> bool:
        body = pack(target)
        return await self._write(lambda connection: requests.put_target(connection, task_id, target, body))

    async def targets(self, task_id: str) -> Sequence[PushTarget]:
        return await self._read(lambda connection: reader.targets(connection, task_id))

    async def drop_target(self, task_id: str, config_id: str) -> bool:
        return await self._write(lambda connection: requests.drop_target(connection, task_id, config_id))

    # -- other daemons -----------------------------------------------------------------------------------------

    async def orphans(self) -> Sequence[str]:
        found, dead = await self._read(self._find_orphans)
        if dead:
            await self._write(lambda connection: requests.forget_daemons(connection, dead))
        return found

    def _find_orphans(self, connection: sqlite3.Connection) -> tuple[Sequence[str], set[str]]:
        """What the dead have left, and those of them who are still said to be there. In the reader's thread."""
        there, working = reader.owners(connection)
        dead = {owner for owner in there | working if owner != self.owner and not is_alive(self._path, owner)}
        return [task_id for owner in working & dead for task_id in reader.owned(connection, owner)], there & dead

    async def ask_owner(self, task_id: str, what: str) -> bool:
        return await self._write(lambda connection: requests.ask_owner(connection, task_id, what))

    async def asked(self) -> Sequence[tuple[str, str]]:
        owner = self.owner
        if not await self._read(lambda connection: reader.is_asked(connection, owner)):
            return ()
        return await self._take_asked(owner)

    async def _take_asked(self, owner: str) -> Sequence[tuple[str, str]]:
        """What is taken out of the file must reach whoever asked for it."""
        import anyio  # late, as above

        taken: list[tuple[str, str]] = []
        with anyio.CancelScope(shield=True):  # for one write
            taken += await self._write(lambda connection: requests.take_asked(connection, owner))
        return taken

    def moves(self) -> int:
        return 0 if self._opened is None else self._opened.moves()


@final
class _Files:
    """The connections, and this daemon's name. Raises `StoreError`, and then leaves nothing open."""

    def __init__(self, path: str) -> None:
        with told(path), ExitStack() as stack:
            self.writing = stack.enter_context(closing(open_writer(path)))
            self.reading = stack.enter_context(closing(connect(path)))
            self.watching = stack.enter_context(closing(connect(path, busy_seconds=0)))
            self.reading.execute("PRAGMA query_only = ON")
            self.claim = Claim(path)
            stack.callback(self.claim.release)
            requests.register_daemon(self.writing, self.claim.owner)
            self._identity = _identity(path)
            self._stack = stack.pop_all()
        self.path = path

    def check(self) -> None:
        """What is written into a file that has been removed is lost. Raises `StoreError`, or `OSError`."""
        if _identity(self.path) != self._identity:
            raise StoreError(f"{self.path} is another file than the one that was opened")

    def close(self) -> None:
        with self._stack, told(self.path):
            requests.leave(self.writing, self.claim.owner)


@final
class _Opened:
    """The store while it is open."""

    def __init__(self, files: _Files, writer: SqliteWriter, tidier: Retention) -> None:
        self.files = files
        self.tidier = tidier
        self._writer = writer
        self._seen = -1
        self._moves = 0
        self.writes: WorkerThread[Write] = WorkerThread("discreet-store-writer", self._do_writes, tidier.pause)
        self.reads: WorkerThread[Read] = WorkerThread("discreet-store-reader", self._do_reads)

    def _do_writes(self, jobs: Sequence[Job[Write]]) -> None:
        with told(self.files.path):
            self.files.check()
            self._writer.work(jobs)

    def _do_reads(self, jobs: Sequence[Job[Read]]) -> None:
        for job in jobs:
            job.fill(self._do_read)

    def _do_read(self, read: Read) -> object:
        with told(self.files.path):
            return read(self.files.reading)

    def moves(self) -> int:
        """How often others have written. Asks for the number only when somebody has, this daemon perhaps."""
        watching = self.files.watching
        try:
            (version,) = watching.execute("PRAGMA data_version").fetchone()
            if version != self._seen:
                self._moves = reader.writes_of_others(watching, self.files.claim.owner)
                self._seen = version
        except sqlite3.Error:  # somebody has the file to himself just now
            pass
        return self._moves

    async def close(self) -> None:
        from anyio import to_thread  # late, as above

        await self.reads.close()
        await self.writes.close()
        await to_thread.run_sync(self.files.close)


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino
