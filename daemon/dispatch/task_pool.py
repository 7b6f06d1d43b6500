"""The tasks that run async handlers and agents. A pool grows only when they wait, so one that never waits costs no task.

Each job runs in context variables of its own, so that none pass from one to the next. It is cancelled through the scope of
the task that runs it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context as Variables
from contextvars import copy_context
from functools import cache, partial
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from ...errors.failures import Failure
from ...framing.transports.interface import asyncio_loop
from ...lazy import anyio
from ..logs import log
from ..logs.logger import bind
from ..process import children
from ..process.loop_watch import LoopWatch

if TYPE_CHECKING:
    import asyncio

    from ..logs.logger import Bound


# Keeps what foreign code leaves in its task from reaching other code: cancel scopes, task groups, cancellations, time limits.
#
# A handler may leave a scope open without meaning to: it breaks out of an async generator that holds a time limit or a task
# group. Its task then stands inside that scope, and the next request with it. anyio and trio offer no public way to ask for the
# innermost scope of a task, so their task states are read here, and nowhere else.


T = TypeVar("T")

Switch: TypeAlias = Callable[[], object]


def guard_task() -> AsyncioGuard | TrioGuard:
    """The running task as it is before foreign code runs in it.

    `disturbed()` is cheap, and tells whether something was left in the task since, or may still reach it. `restore(step)`
    closes the scopes and task groups that the step left open, and undoes the cancellations that it made.
    """
    return TrioGuard() if asyncio_loop() is None else AsyncioGuard()


def _on_asyncio() -> bool:
    return asyncio_loop() is not None


@cache
def _of_asyncio() -> tuple[Any, Any]:  # Any: both are private
    """asyncio's functions for tasks, and anyio's states of them. Loaded once: a guard is made at each step of an app's code."""
    from asyncio import tasks

    from anyio._backends._asyncio import _task_states  # pyright: ignore[reportPrivateUsage]  # see the module's docstring

    return tasks, _task_states


@final
class AsyncioGuard:
    """`asyncio.timeout` keeps its task and cancels it when its time is over, wherever the task is then. So a task counts as
    disturbed while more references to it exist than before. Where such a reference is harmless, a new task is all it costs.
    """

    __slots__ = ("_cancellations", "_enter", "_leave", "_loop", "_references", "_scope", "_state", "_task")

    def __init__(self) -> None:
        tasks, states = _of_asyncio()
        task = tasks.current_task()
        assert task is not None
        try:
            state = states[task]
        except KeyError:  # not begun by anyio
            with anyio.CancelScope():
                pass  # makes its state
            state = states[task]
        self._task: asyncio.Task[Any] = task
        self._state: Any = state
        self._scope = self._state.cancel_scope
        self._cancellations = task.cancelling()
        self._enter, self._leave = tasks._enter_task, tasks._leave_task  # "Extending asyncio" in its docs
        self._loop = task.get_loop()
        del task
        self._references = sys.getrefcount(self._task)

    def disturbed(self) -> bool:
        return (
            sys.getrefcount(self._task) > self._references
            or self._state.cancel_scope is not self._scope
            or self._task.cancelling() > self._cancellations
        )

    def begin(self, work: Coroutine[Any, Any, None], running: asyncio.Task[Any] | None) -> tuple[bool, object]:
        """Run a coroutine up to where it first waits, in the name of the guarded task, which is suspended; and `running` is
        meanwhile, if a task runs.

        Returns whether it waits, and for what; or whether it has left something in the task.
        """
        task, waits, awaited = self._task, True, None
        references = sys.getrefcount(task)
        if running is not None:
            self._leave(self._loop, running)
        self._enter(self._loop, task)
        try:
            awaited = work.send(None)
        except StopIteration:
            waits = False
        finally:
            self._leave(self._loop, task)
            if running is not None:
                self._enter(self._loop, running)
        if waits:
            return True, awaited
        left = sys.getrefcount(task) > references or self._state.cancel_scope is not self._scope
        return False, left or task.cancelling() > self._cancellations

    async def restore(self, step: str) -> None:
        left_open = False
        while (scope := self._state.cancel_scope) is not None and scope is not self._scope:
            scope.cancel()  # for the tasks of a task group
            scope.__exit__(None, None, None)
            left_open = True
        if left_open:
            _tell(step)
        await self._forget_cancellations()

    async def _forget_cancellations(self) -> None:
        if self._task.cancelling() <= self._cancellations:
            return
        while self._task.cancelling() > self._cancellations:
            self._task.uncancel()
        from asyncio import CancelledError, sleep

        try:
            await sleep(0)  # before Python 3.13 `uncancel` leaves a cancellation that is yet to be delivered
        except CancelledError:
            pass


@final
class TrioGuard:
    __slots__ = ("_nurseries", "_status", "_task")

    def __init__(self) -> None:
        from trio.lowlevel import current_task  # late: only where trio is the event loop

        self._task: Any = current_task()  # what is private of it is read too
        self._status = self._task._cancel_status
        self._nurseries = len(self._task.child_nurseries)

    def disturbed(self) -> bool:
        return self._task._cancel_status is not self._status

    async def restore(self, step: str) -> None:
        if not self.disturbed():
            return
        _abandon_nurseries(self._task, self._nurseries)
        while (status := self._task._cancel_status) is not self._status and status.parent is not None:
            status._scope.__exit__(None, None, None)
        _tell(step)


def _abandon_nurseries(task: Any, kept: int) -> None:
    """Cancel the task groups of this task but for the first ones, and wait for none of them any more."""
    for nursery in task._child_nurseries[kept:]:
        nursery.cancel_scope.cancel()
        nursery._closed = True
    del task._child_nurseries[kept:]


def guard_task_groups() -> None:
    """Make trio refuse to leave a task group in another task than the one that entered it, as anyio does on asyncio.

    trio wakes the wrong task for it, and the whole event loop fails. It does so without the app's help: it closes an async
    generator that was left by `break` in a task of its own.
    """
    if not _on_asyncio():
        _guard_nurseries()


@cache
def _guard_nurseries() -> None:
    from trio import Nursery, lowlevel

    leave = Nursery._nested_child_finished  # pyright: ignore[reportPrivateUsage]  # see the module's docstring

    async def leave_at_home(nursery: Any, exc: BaseException | None) -> BaseException | None:
        task = nursery._parent_task
        if task is not lowlevel.current_task() or nursery not in task._child_nurseries:
            raise RuntimeError("a task group was left in another task than the one that entered it")
        _abandon_nurseries(task, task._child_nurseries.index(nursery) + 1)
        return await leave(nursery, exc)

    Nursery._nested_child_finished = leave_at_home  # type: ignore[method-assign, assignment]  # pyright: ignore[reportPrivateUsage]


def _tell(step: str) -> None:
    hint = "close async generators that hold a time limit or a task group: `async with contextlib.aclosing(…)`"
    log.warning("handler.scope_left_open", method=step, hint=hint)


# -- code that is no coroutine ---------------------------------------------------------------------------------


def task_switch() -> tuple[Switch, Switch]:
    """Two functions: the running task is out of reach for the code between a call of the first and one of the second.

    Such code finds no current task, so it can neither cancel it nor enter a scope in it. It must not wait.
    """
    if _on_asyncio():
        from asyncio import _enter_task, _leave_task, current_task, get_running_loop  # "Extending asyncio" in its docs

        loop, running = get_running_loop(), current_task()
        assert running is not None
        return partial(_leave_task, loop, running), partial(_enter_task, loop, running)
    from trio._core._run import GLOBAL_RUN_CONTEXT  # pyright: ignore[reportPrivateUsage]  # see the module's docstring

    task = GLOBAL_RUN_CONTEXT.task
    return partial(delattr, GLOBAL_RUN_CONTEXT, "task"), partial(setattr, GLOBAL_RUN_CONTEXT, "task", task)


def out_of_task(work: Callable[[], T]) -> T:
    """Call `work` with the running task out of reach. In an event loop, in a task or outside of all."""
    if not is_in_task():
        return work()
    leave, enter = task_switch()
    leave()
    try:
        return work()
    finally:
        enter()


def is_in_task() -> bool:
    try:
        anyio.get_current_task()
    except RuntimeError:  # no event loop runs, or a callback of it
        return False
    return True


def hide_task() -> None:
    """Take the running task out of `asyncio.all_tasks`, which foreign code may cancel as a whole. trio has no such list."""
    if _on_asyncio():
        from asyncio import _unregister_task, current_task  # as above

        task = current_task()
        assert task is not None
        _unregister_task(task)


@contextmanager
def hidden_tasks() -> Iterator[None]:
    """Do that with the tasks that begin during the block, before any of them runs.

    In somebody else's loop they stay visible: debuggers and `anyio.wait_all_tasks_blocked` look for them.
    """
    if not _on_asyncio():
        yield
        return
    from asyncio import get_running_loop

    loop = get_running_loop()
    if not getattr(loop, "is_own", False):
        yield
        return
    factory = loop.get_task_factory()
    loop.set_task_factory(_hidden_task)
    try:
        yield
    finally:
        loop.set_task_factory(factory)


def _hidden_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """A task factory of asyncio. Which options there are depends on the version of Python."""
    from asyncio import Task, _unregister_task  # as above

    task = Task(work, loop=loop, **options)
    _unregister_task(task)
    return task


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
            argument = (
                None  # an exception that is raised again would hold this frame, and with it the context variables
            )
        if children.in_child:  # the loop is that of the parent
            children.leave_child()
        loop.flush()
        try:
            argument = yield awaited
            step = work.send
        except BaseException as exc:  # noqa: BLE001 - whatever the loop throws in belongs to the work
            argument = exc
            step = work.throw


class Job(Protocol):
    """Something that a task runs: a request, or executions of an agent. Cancelling `scope` stops it, for a reason that is then in
    `ended_by`."""

    scope: anyio.CancelScope | None
    ended_by: Failure | None

    @property
    def name(self) -> str:
        """The operation, or what else it is in the log."""
        ...

    @property
    def bound(self) -> Bound:
        """The request or task that it is for, for the log."""
        ...


J = TypeVar("J", bound=Job)


class _Begun(msgspec.Struct, frozen=True, eq=False):
    """A job that was begun in the name of a task. `work` waits for `awaited`; None where it is over and left something."""

    job: Job
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
    """Await the rest of a job that was begun, or have this thrown where it waits."""
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
                try:
                    awaited = work.throw(cause)
                finally:
                    del cause  # its traceback may hold this frame
    except StopIteration:
        return


@final
class TaskPool(Generic[J]):
    """Runs jobs in tasks, started in the order of `submit`.

    `perform(job)` runs one and never raises. At most one idle task is woken at a time; it wakes the next one when it
    takes a job while others wait. `before_wait()` is called when a task has nothing left to do, or ends.
    """

    def __init__(self, perform: Callable[[J], Coroutine[Any, Any, None]], before_wait: Callable[[], None]) -> None:
        self._perform = perform
        self._before_wait = before_wait
        self.waiting: Final[deque[J]] = deque()
        """The jobs that were submitted and have not begun. To be read only."""
        self._sleeping: list[anyio.Event] = []  # on trio
        self._idle: list[_Idle] = []  # on asyncio
        self._waking = False
        self.in_burst = False
        """Whether a job was begun since replies were last sent. To `submit` costs less for those behind it."""
        self._tasks: anyio.abc.TaskGroup | None = None
        self._event_type: type[anyio.Event] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._current_task: Callable[[], asyncio.Task[Any] | None]
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

    def guard(self) -> AsyncioGuard | TrioGuard:
        """Do as `guard_task`, in a task of this pool: it knows which loop runs."""
        return TrioGuard() if self._loop is None else AsyncioGuard()

    def make_event(self) -> anyio.Event:
        """An event of the loop. To find out which loop runs costs more than all else that an event costs."""
        return anyio.Event() if self._event_type is None else self._event_type()

    @property
    def runs_none(self) -> bool:
        """Whether this runs on asyncio and its caller is in no task. To ask here costs less than `is_in_task`."""
        return self._loop is not None and self._current_task() is None

    def submit(self, job: J) -> None:
        """Run it as soon as a task is free for it."""
        self.waiting.append(job)
        if not self._waking:
            self._wake_one_if_needed()

    def begin(self, job: J, *, in_task: bool = False) -> None:
        """Run it up to where it first waits, here and now, where nothing waits before it; else as `submit` does.

        What it posts by then is the caller's to send. On asyncio, outside of all tasks, it runs in the name of an idle
        task, which goes on with it if it waits. So it costs no switch of tasks if it never does. `in_task` does so inside of a
        task too, which is suspended meanwhile.
        """
        idle = self._idle[-1] if self._idle and not self.waiting else None
        if idle is None or idle.woken.done():  # cancelled, at the end
            return self.submit(job)
        running = self._current_task()
        if running is not None and not in_task:
            return self.submit(job)
        self._idle.pop()
        self.in_burst = True
        job.scope = idle.scope
        work = self._perform(job)
        waits, found = idle.guard.begin(work, running)
        if waits:
            return idle.wake(_Begun(job, work, found))
        job.scope = None
        if found or (job.ended_by is not None and idle.scope.cancel_called):
            idle.wake(_Begun(job))
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
        """Run jobs until one of them has left something in this task, which then ends. Another task goes on."""
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
                if (
                    idle.woken.done() and not idle.woken.cancelled()
                ):  # cancelled after it was woken: another task does it
                    self._waking = False
                    self._wake_one_if_needed()
                raise
            thrown = exc  # it is meant for what was begun
        begun = idle.begun
        if begun is None:
            self._waking = False
            return True
        job = begun.job
        if begun.work is not None:
            rest, thrown = _go_on(begun, thrown), None  # its traceback holds this frame
            await rest
            job.scope = None
            if not (guard.disturbed() or (job.ended_by is not None and scope.cancel_called)):
                return True
        with bind(job.bound):
            await guard.restore(job.name)
        return False

    async def _work_off(self, scope: anyio.CancelScope, guard: AsyncioGuard | TrioGuard) -> bool:
        """Run what waits. False where this task must run nothing else."""
        while self.waiting:
            job = self.waiting.popleft()
            if self.waiting and not self._waking:
                self._wake_one_if_needed()
            job.scope = scope
            await self._perform(job)
            job.scope = None  # the task goes on with another job, which a late end of this one must not cancel
            if guard.disturbed() or (job.ended_by is not None and scope.cancel_called):
                with bind(job.bound):
                    await guard.restore(job.name)
                return False
        return True
