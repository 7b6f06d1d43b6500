"""Lets a worker thread await something on the event loop, as `anyio.from_thread` does, as a part of its request."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context as Variables
from contextvars import copy_context
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar, final

from ...lazy import anyio
from ..operations.context import Stopped
from ..operations.current_request import CurrentRequest
from .thread_pool import ThreadPool

if TYPE_CHECKING:
    from ...errors.failures import Failure

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

    def run(self, request: CurrentRequest | None, work: Callable[[], Awaitable[T]]) -> T:
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


async def _until_ended(request: CurrentRequest | None, work: Callable[[], Awaitable[T]]) -> T:
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
    """What a request's thread waits for. It is cancelled when the request is ended."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope

    def end(self, failure: Failure) -> None:
        self._scope.cancel()
