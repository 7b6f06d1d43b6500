"""Runs the calls of a store as jobs of two threads, one that reads and one that writes. Knows no SQL and no server.

The event loop never waits for a disk or a server; asyncio and trio run the same code. A thread takes what is queued as one
batch, and wakes the loop once for it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from time import monotonic, sleep, thread_time
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from ...a2a.types import TaskEvent, TaskPage, TaskQuery, TaskState
from ...daemon.logs import log
from ...lazy import anyio
from .checks import ReadPage, RetainedTasks, Retention, page_bound
from .failures import damaged_task_error, log_failure
from .interface import (
    CommitRefusal,
    LoggedEvent,
    OwnerRequest,
    PushTarget,
    StoredTask,
    StoreError,
    TaskChange,
    Unserializable,
)
from .serialization import EncodedChange, check_changes, encode, encode_change

R = TypeVar("R")
"""The argument of a read, such as a connection."""

R_contra = TypeVar("R_contra", contravariant=True)
T = TypeVar("T")

MAX_BATCH: Final = 512
"""Jobs in one batch."""

MAX_TOLD: Final = 1024
"""Damaged tasks that the log tells of when they are listed. Each is told once."""

RETRY_SECONDS: Final = 60.0
"""How long after a run of `maintain` that has failed the next one is."""

SWITCH_SECONDS: Final = 0.005
"""A thread that waits for the interpreter lock asks for it only after 5 ms in which it was not released
(`sys.getswitchinterval`). A busy loop releases it for microseconds at each poll, so the thread may wait for ever."""

IDLE_LOOK_SECONDS: Final = 0.08
"""How long at most one who waits for the thread does not look whether the loop is busy."""

YIELD_SECONDS: Final = 0.0002
"""How long a busy loop therefore sleeps to let the thread run."""


@final
class Job(Generic[R]):
    """A request to the thread. The thread sets `result` or `failure`; only the loop touches `done`."""

    __slots__ = ("done", "failure", "request", "result")

    def __init__(self, request: R, done: anyio.Event) -> None:
        self.request = request
        self.result: Any = None  # Any: its type depends on the request
        self.failure: Exception | None = None
        self.done = done

    def run(self, function: Callable[[R], object]) -> None:
        """Set `result` to what the function returns, or `failure` to what it raises."""
        try:
            self.result = function(self.request)
        except Exception as exc:  # noqa: BLE001 - raised again in `WorkerThread.run`, inside the caller's boundary
            self.failure = exc


@final
class WorkerThread(Generic[R]):
    """Runs `process(jobs)` in the thread for each batch; what it raises becomes the failure of every job of the batch.

    `maintain()`, if given, runs in the thread between batches. It returns the seconds until its next run. `finish()`, if given,
    is the last thing that runs in the thread. The thread starts at once, and needs no event loop before the first job. Raises
    `RuntimeError` if the system provides no thread.
    """

    def __init__(
        self,
        name: str,
        process: Callable[[Sequence[Job[R]]], None],
        *,
        maintain: Callable[[], float] | None = None,
        finish: Callable[[], None] | None = None,
    ) -> None:
        self._process = process
        self._maintain = maintain
        self.finish = finish
        self._failure: Exception | None = None
        self._queue: SimpleQueue[Job[R] | None] = SimpleQueue()
        self._call_on_loop: Callable[[Callable[[], None]], None] | None = None
        self._new_event: Callable[[], anyio.Event]
        self._ended: anyio.Event
        self._last_yield = 0.0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def attach(self) -> None:
        """Take jobs from this event loop from now on. Call it on the loop, once."""
        self._new_event = anyio.Event
        self._ended = anyio.Event()
        self._call_on_loop = loop_caller()

    async def run(self, request: R) -> Any:  # Any: its type depends on the request
        """Queue a request and return its result, or raise its failure. Call it on the loop.

        Cancelling this does not cancel the request.
        """
        job = Job(request, self._new_event())
        self._queue.put(job)
        seconds = SWITCH_SECONDS
        while not job.done.is_set():
            seconds = await self._wait(job.done, seconds)
        if job.failure is not None:
            raise job.failure
        return job.result

    async def _wait(self, done: anyio.Event, seconds: float) -> float:
        """Wait for so long. If the loop was busy meanwhile, let the thread run. Returns how long to wait the next time: a loop
        that is idle need not look often."""
        began, busy = monotonic(), thread_time()
        with anyio.move_on_after(seconds):
            await done.wait()
        if done.is_set() or thread_time() - busy <= (monotonic() - began) / 2:
            return min(2 * seconds, IDLE_LOOK_SECONDS)
        self._yield_interpreter()
        return SWITCH_SECONDS

    def _yield_interpreter(self) -> None:
        """Sleep for a moment, at most once per switch interval."""
        if monotonic() > self._last_yield + SWITCH_SECONDS:
            sleep(YIELD_SECONDS)
            self._last_yield = monotonic()

    async def close(self) -> None:
        """Finish the queued jobs and end the thread. No job may be queued after this call. Raises what `finish` raises."""
        self._queue.put(None)
        await self._ended.wait()
        self._join()

    def close_unattached(self) -> None:
        """Close a thread that never got a job, without an event loop. Blocks."""
        self._queue.put(None)
        self._join()

    def _join(self) -> None:
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _main(self) -> None:
        due = 0.0
        running = True
        while running:
            if self._maintain is not None and monotonic() >= due:
                due = monotonic() + self._attempt(self._maintain)
            jobs, running = self._next_batch(None if self._maintain is None else max(due - monotonic(), 0.0))
            if jobs:
                self._run_batch(jobs)
        try:
            if self.finish is not None:
                self.finish()
        except Exception as exc:  # noqa: BLE001 - raised again in `close`
            self._failure = exc
        if self._call_on_loop is not None:
            self._call_on_loop(self._ended.set)

    @staticmethod
    def _attempt(maintain: Callable[[], float]) -> float:
        """The thread goes on in any case: without it, no caller would ever get an answer."""
        try:
            return maintain()
        except Exception as exc:  # noqa: BLE001 - a boundary: no caller waits for it
            log.error("store.failed", exc=exc)
            return RETRY_SECONDS

    def _next_batch(self, timeout: float | None) -> tuple[list[Job[R]], bool]:
        """The queued jobs, none after `timeout` seconds; and False once the queue is closed."""
        jobs: list[Job[R]] = []
        try:
            job = self._queue.get(timeout=timeout)
            while job is not None:
                jobs.append(job)
                if len(jobs) == MAX_BATCH:
                    return jobs, True
                job = self._queue.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _run_batch(self, jobs: list[Job[R]]) -> None:
        try:
            self._process(jobs)
        except Exception as exc:  # noqa: BLE001 - raised again in `run`, as above
            for job in jobs:
                job.failure = exc

        def set_done() -> None:
            for job in jobs:
                job.done.set()

        assert self._call_on_loop is not None, "jobs come from a loop"
        self._call_on_loop(set_done)


def loop_caller() -> Callable[[Callable[[], None]], None]:
    """A function that any thread may call to run another one soon on this loop. It does nothing once the loop has ended."""
    import anyio.lowlevel  # late: it takes long to import

    loop: Any = anyio.lowlevel.current_token().native_token  # Any: asyncio's loop, or trio's token
    call = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

    def call_on_loop(function: Callable[[], None]) -> None:
        try:
            call(function)
        except RuntimeError:  # the loop has ended, and every task that could wait with it
            pass

    return call_on_loop


# -- what is written -------------------------------------------------------------------------------------------


class CommitRequest(msgspec.Struct, frozen=True):
    """Makes changes, each with its encoded form. Its result are the refusals."""

    changes: Sequence[tuple[TaskChange, EncodedChange]]


class ClaimRequest(msgspec.Struct, frozen=True):
    """Claims queued tasks, at most so many. Its result are their ids; with `begin`, a `ClaimedTask` for each."""

    limit: int
    begin: Callable[[StoredTask], TaskEvent | None] | None = None


class TakeRequest(msgspec.Struct, frozen=True):
    """Takes the requests to this daemon, which are its result."""


class PutPushTarget(msgspec.Struct, frozen=True):
    """Its result says whether there is such a task."""

    task_id: str
    config_id: str
    body: bytes


class DeletePushTarget(msgspec.Struct, frozen=True):
    """Its result says whether there was such a target."""

    task_id: str
    config_id: str


class SendRequest(msgspec.Struct, frozen=True):
    """Leaves a request for the owner of a task. Its result says whether there is one."""

    request: OwnerRequest


class Announce(msgspec.Struct, frozen=True):
    """Tells other daemons these names."""

    names: Sequence[str]


class DeleteExpired(msgspec.Struct, frozen=True):
    """Deletes some of the tasks that ended long ago. Its result says whether there may be more."""


class Probe(msgspec.Struct, frozen=True):
    """Writes only the mark that every transaction leaves."""


WriteRequest: TypeAlias = (
    CommitRequest
    | ClaimRequest
    | TakeRequest
    | PutPushTarget
    | DeletePushTarget
    | SendRequest
    | Announce
    | DeleteExpired
    | Probe
)

WriteJobs: TypeAlias = Sequence[Job[Any]]
"""Jobs whose requests are `WriteRequest`, and those of a store's own. Any: the latter."""


# -- the store -------------------------------------------------------------------------------------------------


class Reads(Protocol[R_contra]):
    """A store's module of functions that read. They run in the reader's thread."""

    def load_task(self, source: R_contra, task_id: str, /) -> StoredTask | None: ...
    def read_events(self, source: R_contra, task_id: str, after: int, limit: int, /) -> Sequence[LoggedEvent]: ...
    def list_tasks(self, source: R_contra, query: TaskQuery, bound: int, /) -> ReadPage: ...
    def count_states(self, source: R_contra, /) -> Mapping[TaskState, int]: ...
    def load_push_targets(self, source: R_contra, task_id: str, /) -> Sequence[PushTarget]: ...
    def list_owned_tasks(self, source: R_contra, owner_id: str, /) -> Sequence[str]: ...
    def has_owner_requests(self, source: R_contra, owner_id: str, /) -> bool: ...
    def has_queued(self, source: R_contra, /) -> bool: ...
    def count_queued(self, source: R_contra, /) -> int: ...


class OpenStore(ABC, Generic[R]):
    """The parts of an open store: the threads and their connections. A closed one is not opened again."""

    reader_thread: WorkerThread[Callable[[R], object]]
    writer_thread: WorkerThread[Any]  # Any: see `WriteJobs`

    @property
    @abstractmethod
    def owner_id(self) -> str: ...

    @abstractmethod
    def read(self, read: Callable[[R], T]) -> T:
        """Return what the function returns. Raises `StoreError`. In the reader's thread."""

    @abstractmethod
    def write(self, jobs: WriteJobs) -> None:
        """Run the jobs in order, in one transaction where that can be. Raises `StoreError`. In the writer's thread, as are the
        next two."""

    @abstractmethod
    def maintain(self) -> float:
        """Delete what has expired, and say that the daemon is alive. Returns the seconds until the next time."""

    @abstractmethod
    def finish(self) -> None:
        """Leave: the tasks of this daemon become orphans."""

    def finish_reading(self) -> None:
        """The last thing in the reader's thread."""

    def start(self) -> None:
        """Start the threads. Raises `RuntimeError` where there is none; then both `finish` functions have run."""
        try:
            self.reader_thread = WorkerThread("discreet-store-reader", self._process_reads, finish=self.finish_reading)
        except RuntimeError:
            self.finish_reading()
            self.finish()
            raise
        try:
            self.writer_thread = WorkerThread(
                "discreet-store-writer", self.write, maintain=self.maintain, finish=self.finish
            )
        except RuntimeError:
            self.reader_thread.close_unattached()
            self.finish()
            raise

    def _process_reads(self, jobs: Sequence[Job[Callable[[R], object]]]) -> None:
        for job in jobs:
            job.run(self.read)

    def attach(self) -> None:
        """Take jobs from this event loop."""
        self.reader_thread.attach()
        self.writer_thread.attach()

    @abstractmethod
    async def close(self) -> None:
        """Within a bounded time. Not cancelled."""

    def close_unattached(self) -> None:
        """Close the store without an event loop. Blocks."""
        self.reader_thread.close_unattached()
        self.writer_thread.close_unattached()


@final
class StoreReader(Generic[R]):
    """Reads a store for a program that is no daemon: it owns nothing, writes nothing, and no daemon hears of it.

    `run(read)` returns what the function returns, and raises `StoreError`, as every method does. Blocks. For one thread.
    """

    def __init__(
        self, reads: Reads[R], run: Callable[[Callable[[R], Any]], Any], close: Callable[[], None]
    ) -> None:  # Any: what a function returns
        self._reads = reads
        self._run = run
        self.close: Final = close

    def load(self, task_id: str) -> StoredTask | None:
        """Return a task; None if there is none. Raises `DamagedTaskError`, too."""
        found: StoredTask | None = self._run(lambda source: self._reads.load_task(source, task_id))
        return found

    def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        """Return events as `EventLog.read` does."""
        found: Sequence[LoggedEvent] = self._run(lambda source: self._reads.read_events(source, task_id, after, limit))
        return found

    def list(self, query: TaskQuery) -> TaskPage:
        """Return a page as `TaskStore.list` does."""
        bound = page_bound(query)
        found: ReadPage = self._run(lambda source: self._reads.list_tasks(source, query, bound))
        return found.page


S = TypeVar("S", bound=OpenStore[Any])


class ThreadedStore(ABC, Generic[S, R]):
    """A `TaskStore` and its `EventLog`, but for what a store does in its own way. `label` names it in errors."""

    def __init__(self, label: str, reads: Reads[R], retention: Retention) -> None:
        self._label = label
        self._reads = reads
        self._retention = retention
        self._retained = RetainedTasks()
        self._told_damaged: set[str] = set()
        self._opened: S | None = None

    @abstractmethod
    def _open(self) -> S:
        """Blocks. Raises `StoreError`, and then leaves nothing open."""

    @abstractmethod
    def _connect(self) -> tuple[Callable[[Callable[[R], Any]], Any], Callable[[], None]]:
        """Return what `StoreReader` takes: how a function is run with what it reads from, and what closes that. Raises
        `StoreError` where there is no store. Any: what a function returns."""

    def open_reader(self) -> StoreReader[R]:
        """Open the store to read it from outside, whether it is open or not. Blocks. Raises `StoreError`."""
        return StoreReader(self._reads, *self._connect())

    @property
    def durable(self) -> bool:
        return True

    @property
    def event_log(self) -> ThreadedStore[S, R]:
        return self

    @property
    def owner_id(self) -> str:
        return self._open_store.owner_id

    @property
    def _open_store(self) -> S:
        if self._opened is None:
            raise StoreError(f"{self._label} is not open")
        return self._opened

    # -- open and close ----------------------------------------------------------------------------------------

    def open_early(self) -> None:
        try:
            opened = self._open()
            opened.start()
        except RuntimeError as exc:
            raise StoreError(f"{self._label} needs threads, which the system does not provide") from exc
        self._opened = opened

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
            with anyio.CancelScope(shield=True):  # `OpenStore.close` is bounded
                await opened.close()

    # -- jobs of the threads -----------------------------------------------------------------------------------

    async def _read(self, read: Callable[[R], T]) -> T:
        result: T = await self._open_store.reader_thread.run(read)
        return result

    async def _write(self, request: object) -> Any:  # Any: its type depends on the request
        return await self._open_store.writer_thread.run(request)

    async def _receive(self, request: object) -> Any:  # Any: as above
        """What a write takes out of the store, which must reach the caller: the wait for it is not cancelled."""
        with anyio.CancelScope(shield=True):  # for one write
            return await self._write(request)

    # -- tasks -------------------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        check_changes(changes)
        encoded = [(change, encode_change(change)) for change in changes]
        valid = [(change, each) for change, each in encoded if isinstance(each, EncodedChange)]
        results = iter(await self._write(CommitRequest(valid)) if valid else ())
        return [each if isinstance(each, Unserializable) else next(results) for _, each in encoded]

    async def load(self, task_id: str) -> StoredTask | None:
        return await self._read(lambda source: self._reads.load_task(source, task_id))

    async def read(self, task_id: str, *, after: int, limit: int = 256) -> Sequence[LoggedEvent]:
        return await self._read(lambda source: self._reads.read_events(source, task_id, after, limit))

    def retain(self, task_id: str) -> None:
        self._retained.add(task_id)

    def release(self, task_id: str) -> None:
        self._retained.remove(task_id)

    async def list(self, query: TaskQuery) -> TaskPage:
        bound = page_bound(query)
        read = await self._read(lambda source: self._reads.list_tasks(source, query, bound))
        for exc in read.damaged:
            if exc.task_id not in self._told_damaged and len(self._told_damaged) < MAX_TOLD:
                self._told_damaged.add(exc.task_id)
                log_failure(damaged_task_error(self._label, exc))
        return read.page

    async def count(self) -> Mapping[TaskState, int]:
        return await self._read(self._reads.count_states)

    def check_reachable(self) -> None:
        """Nothing: a file is reached or not."""

    async def probe(self) -> None:
        self.check_reachable()
        await self._write(Probe())

    async def delete_expired_tasks(self) -> bool:
        """Delete one batch of expired tasks, as the store does by itself. Returns whether there may be more."""
        more: bool = await self._write(DeleteExpired())
        return more

    @property
    def grace_seconds(self) -> float:
        return 0.0

    @abstractmethod
    def lease_end(self) -> float: ...

    def free(self, size: int) -> None:
        """Nothing: no task is in memory."""

    # -- push targets ------------------------------------------------------------------------------------------

    async def put_push_target(self, task_id: str, target: PushTarget) -> bool:
        done: bool = await self._write(PutPushTarget(task_id, target.config.id or "", encode(target)))
        return done

    async def load_push_targets(self, task_id: str) -> Sequence[PushTarget]:
        return await self._read(lambda source: self._reads.load_push_targets(source, task_id))

    async def delete_push_target(self, task_id: str, config_id: str) -> bool:
        done: bool = await self._write(DeletePushTarget(task_id, config_id))
        return done

    # -- other daemons -----------------------------------------------------------------------------------------

    async def list_owned(self) -> Sequence[str]:
        owner_id = self.owner_id
        return await self._read(lambda source: self._reads.list_owned_tasks(source, owner_id))

    async def count_queued(self) -> int:
        return await self._read(self._reads.count_queued)

    async def claim(self, limit: int) -> Sequence[str]:
        if limit < 1 or not await self._read(self._reads.has_queued):  # an idle daemon never writes
            return ()
        claimed: Sequence[str] = await self._receive(ClaimRequest(limit))
        return claimed

    async def announce(self, names: Sequence[str]) -> None:
        await self._write(Announce(names))

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        done: bool = await self._write(SendRequest(request))
        return done

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        owner_id = self.owner_id
        if not await self._read(lambda source: self._reads.has_owner_requests(source, owner_id)):
            return ()
        taken: Sequence[OwnerRequest] = await self._receive(TakeRequest())
        return taken
