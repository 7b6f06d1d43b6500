"""A thread that does things for the event loop: in order, all that waits at a time, one wake-up of the loop for all of it.

Knows nothing of what is done. Works with either event loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from time import monotonic, sleep, thread_time
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

if TYPE_CHECKING:
    import anyio

R = TypeVar("R")

MOST_AT_ONCE: Final = 512
"""Jobs. Who comes later waits for the next round."""

PATIENCE_SECONDS: Final = 0.005
BREATH_SECONDS: Final = 0.0002
"""A thread that wants the interpreter asks for it after 5 ms in which nobody let go of it. A busy loop does let go, for
microseconds each time that it looks for news, and so a thread may wait for ever. Where one does, the loop rests for a breath.
"""


@final
class Job(Generic[R]):
    """Something to be done. Whoever does it sets `result` or `failure`; `done` is for the loop alone."""

    __slots__ = ("done", "failure", "request", "result")

    def __init__(self, request: R, done: anyio.Event) -> None:
        self.request = request
        self.result: Any = None  # Any: it is what was asked for
        self.failure: Exception | None = None
        self.done = done

    def fill(self, work: Callable[[R], object]) -> None:
        """Do it, and keep what comes of it for the one who waits."""
        try:
            self.result = work(self.request)
        except Exception as exc:  # noqa: BLE001 - for whoever asked, who is inside the boundary
            self.failure = exc


@final
class WorkerThread(Generic[R]):
    """`work(jobs)` runs in the thread and does them all; what it raises is the failure of each. Made on the loop.

    `pause()`, if given, runs there too, every now and then: it returns in how many seconds again, and must not raise.
    """

    def __init__(
        self, name: str, work: Callable[[Sequence[Job[R]]], None], pause: Callable[[], float] | None = None
    ) -> None:
        import anyio  # late: only a loop that runs has jobs

        self._new_event = anyio.Event
        self._work = work
        self._pause = pause
        self._waiting: SimpleQueue[Job[R] | None] = SimpleQueue()
        self._call_on_loop = _loop_caller()
        self._ended = anyio.Event()
        self._breathed = 0.0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def do(self, request: R) -> Any:  # Any: it is what was asked for
        """Have it done, behind all that was asked for before: the result, or what went wrong. On the loop.

        When this is cancelled, it is done all the same.
        """
        job = Job(request, self._new_event())
        self._waiting.put(job)
        while not job.done.is_set():
            await self._wait(job.done)
        if job.failure is not None:
            raise job.failure
        return job.result

    async def _wait(self, done: anyio.Event) -> None:
        """Wait for a while, and let the thread get on where the loop has been busy all the time."""
        import anyio  # late, as above

        began, busy = monotonic(), thread_time()
        with anyio.move_on_after(PATIENCE_SECONDS):
            await done.wait()
        if not done.is_set() and thread_time() - busy > (monotonic() - began) / 2:
            self._breathe()

    def _breathe(self) -> None:
        if monotonic() > self._breathed + PATIENCE_SECONDS:
            sleep(BREATH_SECONDS)
            self._breathed = monotonic()

    async def close(self) -> None:
        """Let the thread do what waits, and end. Nothing is submitted afterwards."""
        self._waiting.put(None)
        await self._ended.wait()
        self._thread.join()

    def _run(self) -> None:
        due = 0.0
        going_on = True
        while going_on:
            if self._pause is not None and monotonic() >= due:
                due = monotonic() + self._pause()
            jobs, going_on = self._take(None if self._pause is None else max(due - monotonic(), 0.0))
            if jobs:
                self._do(jobs)
        self._call_on_loop(self._ended.set)

    def _take(self, seconds: float | None) -> tuple[list[Job[R]], bool]:
        """What waits, after so many seconds perhaps nothing, and whether more may come."""
        jobs: list[Job[R]] = []
        try:
            job = self._waiting.get(timeout=seconds)
            while job is not None:
                jobs.append(job)
                if len(jobs) == MOST_AT_ONCE:
                    return jobs, True
                job = self._waiting.get_nowait()
        except Empty:
            return jobs, True
        return jobs, False

    def _do(self, jobs: list[Job[R]]) -> None:
        try:
            self._work(jobs)
        except Exception as exc:  # noqa: BLE001 - for those who asked, as above
            for job in jobs:
                job.failure = exc

        def settle() -> None:
            for job in jobs:
                job.done.set()

        self._call_on_loop(settle)


def _loop_caller() -> Callable[[Callable[[], None]], None]:
    """What calls a function soon on the loop that runs here, from any thread; on a loop that is over it does nothing."""
    import anyio.lowlevel  # late, as above

    loop: Any = anyio.lowlevel.current_token().native_token  # Any: asyncio's loop, or trio's token
    call = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

    def call_on_loop(function: Callable[[], None]) -> None:
        try:
            call(function)
        except RuntimeError:  # the loop has ended, and with it all who might wait
            pass

    return call_on_loop
