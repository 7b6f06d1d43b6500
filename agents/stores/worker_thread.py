"""A thread that runs jobs for the event loop: in order, in batches, with one wake-up of the loop per batch.

Knows nothing of what the jobs do. Works with asyncio and trio.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic, sleep, thread_time
from typing import Any, Final, Generic, TypeVar, final

from ...daemon.logs import log
from ...lazy import anyio

R = TypeVar("R")

MAX_BATCH: Final = 512
"""Jobs in one batch."""

RETRY_SECONDS: Final = 60.0
"""How long after a run of `maintain` that has failed the next one is."""

SWITCH_SECONDS: Final = 0.005
"""A thread that waits for the interpreter lock asks for it only after 5 ms in which no one released it
(`sys.getswitchinterval`). A busy loop releases it for microseconds at each poll, so the thread may wait for ever."""

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
        while not job.done.is_set():
            await self._wait(job.done)
        if job.failure is not None:
            raise job.failure
        return job.result

    async def _wait(self, done: anyio.Event) -> None:
        """Wait for a switch interval. If the loop was busy meanwhile, let the thread run."""
        began, busy = monotonic(), thread_time()
        with anyio.move_on_after(SWITCH_SECONDS):
            await done.wait()
        if not done.is_set() and thread_time() - busy > (monotonic() - began) / 2:
            self._yield_interpreter()

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
        """The same without an event loop, for a thread that never got a job. Blocks."""
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
    import anyio.lowlevel  # late, as above

    loop: Any = anyio.lowlevel.current_token().native_token  # Any: asyncio's loop, or trio's token
    call = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

    def call_on_loop(function: Callable[[], None]) -> None:
        try:
            call(function)
        except RuntimeError:  # the loop has ended, and every task that could wait with it
            pass

    return call_on_loop
