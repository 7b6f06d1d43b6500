"""Keeps what foreign code leaves in its task from reaching other code: cancel scopes, task groups, cancellations, time limits.

A handler may leave a scope open without meaning to: it breaks out of an async generator that holds a time limit or a task
group. Its task then stands inside that scope, and the next request with it. anyio and trio offer no public way to ask for the
innermost scope of a task, so their task states are read here, and nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, final

from ...framing.transports.readiness import asyncio_loop
from ...lazy import anyio
from ..logs import log

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

Switch: TypeAlias = Callable[[], object]


class TaskGuard(Protocol):
    """The running task as it was when the guard was made."""

    def disturbed(self) -> bool:
        """Whether something was left in the task since, or may still reach it. Cheap."""
        ...

    async def restore(self, step: str) -> None:
        """Close the scopes and task groups that `step` left open, and undo the cancellations that it made."""
        ...


def guard_task() -> TaskGuard:
    """A guard of the running task, before foreign code runs in it."""
    return AsyncioGuard() if _on_asyncio() else _TrioGuard()


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
        if task not in states:  # not begun by anyio
            with anyio.CancelScope():
                pass  # makes its state
        self._task: asyncio.Task[Any] = task
        self._state: Any = states[task]
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

    def begin(self, work: Coroutine[Any, Any, None]) -> tuple[bool, object]:
        """Run a coroutine up to where it first waits, in the name of the guarded task, which is suspended. No task may run.

        Returns whether it waits, and for what; or whether it has left something in the task.
        """
        task, waits, awaited = self._task, True, None
        references = sys.getrefcount(task)
        self._enter(self._loop, task)
        try:
            awaited = work.send(None)
        except StopIteration:
            waits = False
        finally:
            self._leave(self._loop, task)
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
class _TrioGuard:
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
    """Have trio refuse to leave a task group in another task than that which entered it, as anyio does on asyncio.

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
            raise RuntimeError("a task group was left in another task than that which entered it")
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
    if not _in_task():
        return work()
    leave, enter = task_switch()
    leave()
    try:
        return work()
    finally:
        enter()


def _in_task() -> bool:
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
