"""The tasks that run async handlers. The pool grows only when handlers wait, so a handler that never waits costs no task.

Each request runs in context variables of its own, so that none pass from one request to the next. It is cancelled
through the scope of the task that runs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from contextvars import copy_context
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from ...framing.transports.readiness import asyncio_loop
from ...lazy import anyio
from ..process import forks
from ..process.loop_watch import LoopWatch
from .task_guard import AsyncioGuard, TaskGuard, guard_task, hidden_tasks

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


class _Begun(msgspec.Struct, frozen=True, eq=False):
    """A request that was begun in the name of a task. `work` waits for `awaited`; None where it is over and left something."""

    request: Request
    work: Coroutine[Any, Any, None] | None = None
    awaited: object = None


class _Idle(msgspec.Struct, eq=False):
    """A task of asyncio that waits for work: what wakes it, its state, and what was begun in its name."""

    woken: asyncio.Future[None]
    scope: anyio.CancelScope
    guard: AsyncioGuard
    begun: _Begun | None = None

    def wake(self, begun: _Begun | None) -> None:
        self.begun = begun
        if not self.woken.done():  # cancelled: at the end, or by what was begun, as the task in whose name it ran
            self.woken.set_result(None)


@coroutine
def _go_on(begun: _Begun, thrown: BaseException | None) -> Generator[Any, Any, None]:
    """Await the rest of a request that was begun, or have this thrown where it waits."""
    work, awaited = begun.work, begun.awaited
    assert work is not None, "it waits"
    try:
        while True:
            argument: object = None
            if thrown is None:
                try:
                    argument = yield awaited
                except BaseException as exc:  # noqa: BLE001 - whatever the loop throws in belongs to the work
                    thrown = exc
            if thrown is None:
                awaited = work.send(argument)
            else:
                cause, thrown = thrown, None
                awaited = work.throw(cause)
    except StopIteration:
        return


@final
class TaskPool:
    """Runs requests in tasks, started in the order of `submit`.

    `perform(request)` runs one and never raises. At most one idle task is woken at a time; it wakes the next one when it
    takes a request while others wait. `before_wait()` is called when a task has nothing left to do, or ends.
    """

    def __init__(
        self, perform: Callable[[Request], Coroutine[Any, Any, None]], before_wait: Callable[[], None]
    ) -> None:
        self._perform = perform
        self._before_wait = before_wait
        self.waiting: Final[deque[Request]] = deque()
        """The requests that were submitted and have not begun. To be read only."""
        self._sleeping: list[anyio.Event] = []  # on trio
        self._idle: list[_Idle] = []  # on asyncio
        self._waking = False
        self.in_burst = False
        """Whether a request was begun since replies were last sent. To `submit` costs less for those behind it."""
        self._tasks: anyio.abc.TaskGroup | None = None
        self._event_type: type[anyio.Event] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._current_task: Callable[[], object]
        self._variables: Variables

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Run in this task group from now on, with what was submitted before."""
        self._tasks = tasks
        self._event_type = type(anyio.Event())
        self._loop = asyncio_loop()
        if self._loop is not None:
            from asyncio import current_task  # late: not on trio

            self._current_task = current_task
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

    def begin(self, request: Request) -> None:
        """Run it up to where it first waits, here and now, where nothing waits before it; else as `submit` does.

        What it posts by then is the caller's to send. On asyncio, outside of all tasks, it runs in the name of an idle
        task, which goes on with it if it waits. So it costs no switch of tasks if it never does.
        """
        at_once = self._idle and not self.waiting and self._current_task() is None
        idle = self._idle[-1] if at_once else None
        if idle is None or idle.woken.done():  # cancelled, at the end
            return self.submit(request)
        self._idle.pop()
        self.in_burst = True
        request.scope = idle.scope
        work = self._perform(request)
        waits, found = idle.guard.begin(work)
        if waits:
            return idle.wake(_Begun(request, work, found))
        request.scope = None
        if found or (request.ended_by is not None and idle.scope.cancel_called):
            idle.wake(_Begun(request))
        else:
            self._idle.append(idle)

    def _wake_one_if_needed(self) -> None:
        if self._tasks is None or self._waking or not self.waiting:
            return
        self._waking = True
        while self._idle:
            idle = self._idle.pop()
            if not idle.woken.done():  # else its task was cancelled by somebody
                return idle.wake(None)
        if self._sleeping:
            self._sleeping.pop().set()
        else:
            with hidden_tasks():
                self._variables.run(
                    self._tasks.start_soon, self._work
                )  # not in those of a handler that has submitted something

    async def _work(self) -> None:
        """Run requests until one of them has left something in this task, which then ends. Another task goes on."""
        with anyio.CancelScope() as scope:
            guard = guard_task()
            self._waking = False
            may_go_on = True
            while may_go_on:
                may_go_on = await self._work_off(scope, guard)
                self._before_wait()
                if not may_go_on:
                    break
                if isinstance(guard, AsyncioGuard):
                    may_go_on = await self._sleep_on_asyncio(scope, guard)
                else:
                    event = self.make_event()
                    self._sleeping.append(event)
                    await event.wait()
                    self._waking = False
        self._before_wait()
        self._wake_one_if_needed()

    async def _sleep_on_asyncio(self, scope: anyio.CancelScope, guard: AsyncioGuard) -> bool:
        """Wait for work, or for the rest of what was begun in this task's name. False where the task must run nothing else."""
        assert self._loop is not None, "it runs"
        idle = _Idle(self._loop.create_future(), scope, guard)
        self._idle.append(idle)
        thrown: BaseException | None = None
        try:
            await idle.woken
        except BaseException as exc:
            if idle.begun is None:
                raise
            thrown = exc  # it is meant for what was begun
        begun = idle.begun
        if begun is None:
            self._waking = False
            return True
        request = begun.request
        if begun.work is not None:
            await _go_on(begun, thrown)
            request.scope = None
            if not (guard.disturbed() or (request.ended_by is not None and scope.cancel_called)):
                return True
        await guard.restore(request.name)
        return False

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
