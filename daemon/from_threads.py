"""Lets a worker thread have something awaited on the loop."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, final

from .threads import Threads

if TYPE_CHECKING:
    import anyio.abc

T = TypeVar("T")


@final
class FromThreads:
    """`run` blocks a worker thread until the loop has awaited its work."""

    def __init__(self, threads: Threads, tasks: Callable[[], anyio.abc.TaskGroup | None]) -> None:
        self._threads = threads
        self._tasks = tasks

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work()`, awaited on the loop. Raises what it raises."""
        ended = threading.Event()
        results: list[T] = []
        faults: list[BaseException] = []

        async def await_it() -> None:
            try:
                results.append(await work())
            except Exception as exc:  # noqa: BLE001 - handed to the thread that asked, which is inside the boundary
                faults.append(exc)
            except BaseException:
                faults.append(RuntimeError("the daemon is ending"))
                raise
            finally:
                ended.set()

        self._threads.call_on_loop(self._begin, await_it)
        ended.wait()
        if faults:
            raise faults[0]
        return results[0]

    def _begin(self, await_it: Callable[[], Coroutine[Any, Any, None]]) -> None:
        tasks = self._tasks()
        assert tasks is not None, "threads are collected by a running loop"
        tasks.start_soon(await_it)
