"""The tasks that run async handlers. The pool grows only when handlers wait, so a handler that never waits costs no task.

Each request runs in context variables of its own, so that none pass from one request to the next. It is cancelled
through the scope of the task that runs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context as Variables
from contextvars import copy_context
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from ...framing.transports.readiness import asyncio_loop
from ...lazy import anyio
from ..process import forks
from ..process.loop_watch import LoopWatch
from .task_guard import TaskGuard, guard_task, hidden_tasks

if TYPE_CHECKING:
    import asyncio

    from .request import Request


class HandlerLoop(msgspec.Struct, frozen=True, eq=False):
    """The event loop as handlers run on it: `watch` is told of each step, `flush()` sends what was posted."""

    watch: LoopWatch
    flush: Callable[[], None]


@coroutine
def in_context(
    work: Coroutine[Any, Any, Any], variables: Variables, loop: HandlerLoop, method: str
) -> Generator[Any, Any, Any]:
    """Await `work` with every step of it run inside `variables`, whatever the context of the running task.

    The steps are those of the operation `method`. `loop.flush()` is called each time before the task gives up control.
    """
    step: Callable[..., Any] = work.send
    argument: object = None
    watch = loop.watch
    while True:
        before, watch.step = watch.step, (method,)
        if watch.asleep:
            watch.look()
        try:
            awaited = variables.run(step, argument)
        except StopIteration as stop:
            return stop.value
        finally:
            watch.step = before
        if forks.in_child:  # the loop is that of the parent
            forks.leave()
        loop.flush()
        try:
            argument = yield awaited
            step = work.send
        except BaseException as exc:  # noqa: BLE001 - whatever the loop throws in belongs to the work
            argument = exc
            step = work.throw


@final
class TaskPool:
    """Runs requests in tasks, started in the order of `submit`.

    `perform(request)` runs one and never raises. At most one idle task is woken at a time; it wakes the next one when it
    takes a request while others wait. `before_wait()` is called when a task has nothing left to do, or ends.
    """

    def __init__(self, perform: Callable[[Request], Awaitable[None]], before_wait: Callable[[], None]) -> None:
        self._perform = perform
        self._before_wait = before_wait
        self.waiting: Final[deque[Request]] = deque()
        """The requests that were submitted and have not begun. To be read only."""
        self._sleeping: list[Any] = []  # a future of asyncio or an event for each idle task
        self._waking = False
        self._tasks: anyio.abc.TaskGroup | None = None
        self._event_type: type[anyio.Event] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._variables: Variables

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run in this task group from now on, with what was submitted before."""
        self._tasks = tasks
        self._event_type = type(anyio.Event())
        self._loop = asyncio_loop()
        self._variables = copy_context()
        self._wake_one_if_needed()

    def make_event(self) -> anyio.Event:
        """An event of the loop. To find out which loop runs costs more than all else that an event costs."""
        return anyio.Event() if self._event_type is None else self._event_type()

    def submit(self, request: Request) -> None:
        """Run it as soon as a task is free for it."""
        self.waiting.append(request)
        if not self._waking:
            self._wake_one_if_needed()

    def _wake_one_if_needed(self) -> None:
        if self._tasks is None or self._waking or not self.waiting:
            return
        self._waking = True
        if self._sleeping:
            sleeping = self._sleeping.pop()
            if self._loop is None:
                sleeping.set()
            elif not sleeping.done():  # cancelled, at the end
                sleeping.set_result(None)
        else:
            with hidden_tasks():
                self._variables.run(
                    self._tasks.start_soon, self._work
                )  # not in those of a handler that has submitted something

    async def _work(self) -> None:
        """Run requests until one of them has left something in this task, which then ends. Another task goes on."""
        with anyio.CancelScope() as scope:
            guard = guard_task()
            while True:
                self._waking = False
                may_go_on = await self._work_off(scope, guard)
                self._before_wait()
                if not may_go_on:
                    break
                if self._loop is None:
                    event = self.make_event()
                    self._sleeping.append(event)
                    await event.wait()
                else:  # a future costs a third of an event
                    future = self._loop.create_future()
                    self._sleeping.append(future)
                    await future
        self._wake_one_if_needed()

    async def _work_off(self, scope: anyio.CancelScope, guard: TaskGuard) -> bool:
        """Run what waits. False where this task must run nothing else."""
        while self.waiting:
            request = self.waiting.popleft()
            if self.waiting and not self._waking:
                self._wake_one_if_needed()
            if request.spec.mode in ("async", "stream"):
                request.scope = scope
            await self._perform(request)
            request.scope = None  # the task goes on with another request, which a late end of this one must not cancel
            if guard.disturbed() or (request.ended_by is not None and scope.cancel_called):
                await guard.restore(request.name)
                return False
        return True
