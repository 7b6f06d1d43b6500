"""The threads that run plain `def` handlers. The loop collects their outcomes in batches, with one wake-up for many.

The threads are daemonic: a handler that never returns can't keep the process alive past its drain window.
"""

from __future__ import annotations

from _thread import get_ident, start_new_thread
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar, final  # Any: outcomes and arguments pass through unread

from ...errors.failures import Internal, Overloaded
from ...errors.redaction.safe_call import type_name
from ...lazy import anyio
from ..logs import log
from ..memory import reserve
from ..operations.context import Stopped
from ..operations.request import Request
from ..process.children import starting

if TYPE_CHECKING:
    from ...errors.failures import Failure


# Lets a worker thread await something on the event loop, as `anyio.from_thread` does, as a part of its request.


T = TypeVar("T")


@final
class LoopPortal:
    """`run` blocks a worker thread until the loop has awaited its work. Made on the loop's thread."""

    def __init__(self, threads: ThreadPool, tasks: Callable[[], anyio.abc.TaskGroup | None]) -> None:
        self._threads = threads
        self._tasks = tasks
        self._loop_thread = get_ident()

    @property
    def on_loop(self) -> bool:
        """Whether the running thread is that of the loop."""
        return get_ident() == self._loop_thread

    def run(self, request: Request | None, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work()`, awaited on the loop in the caller's context variables; what it raises, or `Stopped` where
        `request` is ended meanwhile.

        Raises `RuntimeError` on the loop's own thread, which would wait for itself.
        """
        if self.on_loop:
            raise RuntimeError("only a handler in a worker thread may block: await the form without _blocking")
        ended = Event()
        results: list[T] = []
        faults: list[BaseException] = []

        async def await_it() -> None:
            try:
                results.append(await _until_ended(request, work))
            except (Exception, Stopped) as exc:  # noqa: BLE001 - for the thread that asked, which is inside the boundary
                faults.append(exc)
            except BaseException:
                faults.append(RuntimeError("the daemon is ending"))
                raise
            finally:
                self._threads.unpark()
                ended.set()

        self._threads.call_on_loop(self._begin, await_it, copy_context())
        ended.wait()
        if faults:
            raise faults[0]
        return results[0]

    def _begin(self, await_it: Callable[[], Coroutine[Any, Any, None]], variables: Variables) -> None:
        tasks = self._tasks()
        assert tasks is not None, "threads are collected by a running loop"
        self._threads.park()
        variables.run(tasks.start_soon, await_it)


async def _until_ended(request: Request | None, work: Callable[[], Awaitable[T]]) -> T:
    """Await the work, as a part of the request: it is cancelled when the request is ended."""
    if request is None:
        return await work()
    with anyio.CancelScope() as scope:
        waiting = _Waiting(scope)
        request.adopt(waiting)
        try:
            return await work()
        finally:
            request.release(waiting)
    raise Stopped


@final
class _Waiting:
    """A wait of a request's thread. It is cancelled when the request is ended."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    def end(self, failure: Failure) -> None:
        self._scope.cancel()


PARKED_TIMES: Final = 8
"""How many times the limit may wait for the loop: handlers that call operations in threads, which call others."""


@final
class ThreadPool:
    """Runs requests in at most `limit` threads that don't wait for the loop, in the order of `submit`.

    Threads are started when needed and kept. `perform(request)` runs in a thread and never raises;
    `finish(request, outcome)` then runs on the loop, when `collect()` is called there. `notify()` is called from any
    thread and makes the loop do that soon.
    """

    def __init__(
        self,
        limit: int,
        *,
        perform: Callable[[Request], Any],
        finish: Callable[[Request, Any], None],
        notify: Callable[[], None],
    ) -> None:
        self._limit = limit
        self._perform = perform
        self._finish = finish
        self._notify = notify
        self._waiting: SimpleQueue[Request | None] = SimpleQueue()
        self._done: deque[tuple[Callable[..., None], *tuple[Any, ...]]] = deque()
        self.start_thread: Callable[[Thread], None] = Thread.start
        """How the threads of handlers are started. Raises `RuntimeError` where the system has none left."""
        self._starter = _Starter()
        self._number = 0
        self._started = 0  # those that are being started among them
        self._busy = 0
        self._parked = 0

    def counts(self) -> dict[str, int]:
        """Requests in threads, threads that wait for the loop, and outcomes that the loop has not taken yet."""
        return {"threads_busy": self._busy, "threads_parked": self._parked, "threads_done": len(self._done)}

    def submit(self, request: Request) -> None:
        """Run it as soon as a thread is free. Called on the loop."""
        self._busy += 1
        self._waiting.put(request)
        self._start_if_needed()

    def park(self) -> None:
        """A thread waits for the loop, perhaps for a request that needs a thread, so one more may run. On the loop."""
        self._parked += 1
        self._start_if_needed()

    def unpark(self) -> None:
        """A thread goes on. Called on the loop."""
        self._parked -= 1

    @property
    def exhausted(self) -> bool:
        """True when so many threads wait for the loop that no further one may be started for what they wait for."""
        return self._parked >= PARKED_TIMES * self._limit

    def _start_if_needed(self) -> None:
        if self._started >= min(self._busy, self._limit + self._parked):
            return
        self._started += 1
        self._number += 1
        if self._started == 1:
            self._start(self._number)  # nothing competes with it
        else:
            self._starter.start(partial(self._start, self._number))

    def _start(self, number: int) -> None:
        try:
            with starting:
                Variables().run(self._start_one, number)  # where threads inherit them, not those of a handler
        except (RuntimeError, MemoryError):  # the system has none left
            self.call_on_loop(self._not_started)

    def _start_one(self, number: int) -> None:
        """Raises `RuntimeError` or `MemoryError` where the system has no thread left."""
        try:
            thread = Thread(target=self._work, name=f"discreet-handler-{number}", daemon=True)
        except Exception:  # noqa: BLE001 - an app may have patched anything that this needs
            start_new_thread(self._work, ())
            return
        try:
            self.start_thread(thread)
        except (RuntimeError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - as above
            start_new_thread(self._work, ())

    def _not_started(self) -> None:
        """The system refused to start a thread. What waits is refused if none is left to run it."""
        self._started -= 1
        log.error("threads.refused", threads=self._started)
        if self._started > self._parked:
            return
        while not self._waiting.empty():
            request = self._waiting.get()
            if request is not None:
                self._ended(request, Overloaded())

    def call_on_loop(self, function: Callable[..., None], *args: Any) -> None:
        """Have `function(*args)` called on the loop, after everything that this thread handed over before."""
        self._done.append((function, *args))
        self._notify()

    def collect(self) -> None:
        """Do what the threads handed over. Called on the loop."""
        while self._done:
            function, *args = self._done.popleft()
            function(*args)

    def close(self) -> None:
        """Let the threads end when they have nothing to do. Nothing is submitted afterwards."""
        self._starter.close()
        for _ in range(self._started):
            self._waiting.put(None)

    def _work(self) -> None:
        while (request := self._waiting.get()) is not None:
            try:
                outcome = self._perform(request)
            except BaseException as exc:  # noqa: BLE001 - the boundary itself failed: no memory for an answer, most likely
                reserve.free()
                log.error("daemon.fault", error=type_name(exc))
                outcome = Internal()
            self.call_on_loop(self._ended, request, outcome)

    def _ended(self, request: Request, outcome: Any) -> None:
        self._busy -= 1
        self._finish(request, outcome)


@final
class _Starter:
    """A thread that starts the others. To start one means to wait until it runs, which takes long while others compute."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._started = False

    def start(self, start: Callable[[], None]) -> None:
        """Have `start()` called soon: here and now, if there can be no thread for it. Called on the loop."""
        if not self._started:
            try:
                start_new_thread(self._work, ())
            except (RuntimeError, MemoryError):
                return start()
            self._started = True
        self._waiting.put(start)

    def close(self) -> None:
        self._waiting.put(None)

    def _work(self) -> None:
        while (start := self._waiting.get()) is not None:
            start()
