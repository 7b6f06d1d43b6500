"""Runs the executor: the executions of one task one after the other, those of different tasks side by side.

Whatever an executor does, its task gets a final state or waits for its caller: none stays `working` after its execution.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import Overloaded
from ....lazy import anyio
from ...dispatch.execution import Raised, attempt
from ...logs.bound import BOUND, LoggedTask, calling
from ...logs.safe_call import class_name
from ...tracing.attributes import TASK_STATE
from ..errors import takes_no_message
from ..executor_calls import ExecutorCalls
from ..faults import declared_failure
from ..model.states import INACTIVE
from ..model.types import Task, TaskState
from .execution import Execution
from .executor import RequestContext
from .live_task import LiveTask, wait_committed
from .task_cache import TaskCache
from .task_events import TaskEvents

if TYPE_CHECKING:
    from ...tracing.span import Span
    from ...tracing.tracing import Tracing

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""What runs on the event loop until it is done."""

Spawn: TypeAlias = Callable[[Work], None]
"""Starts work in the daemon's task group."""

MAX_EXECUTIONS: Final = 1024
"""Executions that may run or wait in the queues of their tasks; beyond it messages are refused as overload."""

UNFINISHED: Final = "unfinished"
"""The fault of an executor that left its task neither ended nor waiting for its caller."""


@final
class Runner:
    """Owns the queue of executions of each task.

    A message is published when it comes, and executed when the store has it. With `replies_without_task` a new task is
    published with the executor's first event only. `name` is that of the agent, for spans.
    """

    def __init__(
        self,
        executor: ExecutorCalls,
        cache: TaskCache,
        spawn: Spawn,
        *,
        replies_without_task: bool = False,
        tracing: Tracing | None = None,
        name: str = "",
    ) -> None:
        self._executor = executor
        self._tracing = tracing
        self._name = name
        self._replies_without_task = replies_without_task
        self._cache = cache
        self._spawn = spawn
        self._queues: dict[LiveTask, deque[Execution]] = {}
        self._count = 0
        self.on_idle: Callable[[], None] = lambda: None
        self.on_done: Callable[[], None] = lambda: None

    @property
    def supports_resume(self) -> bool:
        """Whether the executor can continue what another daemon has begun."""
        return self._executor.supports_resume

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is queued."""
        return not self._count

    @property
    def count(self) -> int:
        """How many executions run or are queued."""
        return self._count

    @property
    def full(self) -> bool:
        """Whether no further execution is accepted."""
        return self._count >= MAX_EXECUTIONS

    def check(self, live: LiveTask, context: RequestContext) -> RequestContext:
        """The context with what the executor's `check` returns for its message. Raises its refusal, and
        `FailureError(Overloaded)`."""
        if context.message is None:
            return context
        checked = self._executor.check(context)
        if live.generation:
            self._cache.check_memory(context.message)
        return context if checked is None else msgspec.structs.replace(context, checked=checked)

    def submit(self, live: LiveTask, context: RequestContext) -> Execution:
        """Queue an execution for a message, and publish the message unless another daemon works on the task: it is then
        published when that one has stopped.

        Raises what `check` raises; then nothing was published.
        """
        execution = self._new(live, self.check(live, context))
        if not live.remote and (live.generation or not self._replies_without_task):
            self._accept([*self._queues.get(live, ()), execution])
        self._queue(execution).append(execution)
        self._start(live)
        return execution

    def submit_accepted(self, live: LiveTask, context: RequestContext) -> None:
        """Queue an execution for a message that is in the task's history already. Raises as `submit`."""
        execution = self._new(live, self.check(live, context), accepted=True)
        queue = self._queue(execution)
        if queue and queue[0].start_generation is not None:  # it asked, and this is the answer
            queue[0].superseded = True
        queue.append(execution)
        self._start(live)

    @staticmethod
    def _accept(queue: Sequence[Execution]) -> None:
        """Publish the messages that were not yet, in the order in which they came."""
        running = queue[0]
        for execution in queue:
            if execution.accepted_generation is None and execution.context.message is not None:
                live = execution.live
                running.superseded |= running.start_generation is not None and live.state in INACTIVE
                execution.accept()
                live.notify()

    def resume(self, live: LiveTask) -> None:
        """Continue the work of a dead daemon, before all messages that are queued. Raises `FailureError(Overloaded)`."""
        execution = self._new(live, RequestContext(live.task()))
        self._queue(execution).appendleft(execution)
        self._start(live)

    def _new(self, live: LiveTask, context: RequestContext, *, accepted: bool = False) -> Execution:
        if self.full:
            raise FailureError(Overloaded())
        execution = Execution(live, context, may_reply=self._replies_without_task, accepted=accepted)
        execution.asked_by = calling()
        if self._tracing is not None:
            execution.origin = self._tracing.origin()
        return execution

    def _queue(self, execution: Execution) -> deque[Execution]:
        """The queue for this execution, which is to be added to it."""
        live = execution.live
        self._count += 1
        live.pins += 1
        live.busy = True
        return self._queues.setdefault(live, deque())

    def _start(self, live: LiveTask) -> None:
        if len(self._queues[live]) == 1:
            self._spawn(partial(self._work, live, self._queues[live]))

    # -- one task ----------------------------------------------------------------------------------------------

    async def _work(self, live: LiveTask, queue: deque[Execution]) -> None:
        """Run the first of the executions of one task, in the order of their messages.

        Each runs in a task of the event loop of its own: one that was left with a time limit must not run the next.
        """
        while live.remote and live.lost is None:  # the daemon that works on it finishes first
            await live.wait_for_change()
        execution = queue[0]
        try:
            performed = await attempt(partial(self._perform, execution, queue))
            if isinstance(performed, Raised):  # a fault of this program
                execution.conclude(performed.exc)
        finally:
            self._remove_first(live, queue)
        if queue:
            self._spawn(partial(self._work, live, queue))

    def _remove_first(self, live: LiveTask, queue: deque[Execution]) -> None:
        execution = queue.popleft()
        execution.done = True
        execution.scope = None
        self._count -= 1
        if not queue:
            del self._queues[live]
            live.busy = False
        live.notify()
        self.on_done()
        if not self._count:
            self.on_idle()
        self._cache.unpin(live)

    async def _perform(self, execution: Execution, queue: deque[Execution]) -> None:
        live, is_message = execution.live, execution.context.message is not None
        BOUND.set(LoggedTask(live.id, execution.asked_by))
        if self._tracing is not None:
            self._tracing.resume(execution.origin)
        if live.ended and is_message and execution.accepted_generation is None:
            execution.refusal = takes_no_message(live)
            return
        if live.generation and not live.ended:
            self._accept([*queue])
        accepted = execution.accepted_generation or 0
        while live.committed < accepted and live.lost is None:
            await live.wait_for_change()
        if live.lost is not None or live.ended:  # lost: the sender gets an error that says so, and may send it again
            return
        if is_message:
            execution.go_on()
        execution.start_generation = live.generation
        execution.context = msgspec.structs.replace(execution.context, task=live.task())
        await self._execute(execution)

    async def _execute(self, execution: Execution) -> None:
        if self._tracing is None:
            return await self._run(execution, None)
        span = self._tracing.execution(self._name, execution.live.id)
        span.enter()
        try:
            await self._run(execution, span)
        finally:
            span.tell(TASK_STATE, execution.live.state.name.lower())
            span.end()

    async def _run(self, execution: Execution, span: Span | None) -> None:
        with anyio.CancelScope() as execution.scope:
            done = await self._executor.execute(execution.context, execution.events)
            before = execution.live.state
            if isinstance(done, Raised):
                execution.conclude(done.exc)
            else:
                execution.conclude(None, done)
            if span is None:
                return
            if isinstance(done, Raised):
                span.blame(declared_failure(done.exc) or class_name(done.exc))
            elif execution.live.state is not before:
                span.blame(UNFINISHED)

    # -- cancellation ------------------------------------------------------------------------------------------

    def interrupt(self, live: LiveTask) -> None:
        """Cancel the execution of this task that runs now, if one does."""
        queue = self._queues.get(live)
        if queue and queue[0].scope is not None:
            queue[0].scope.cancel()

    async def cancel(self, live: LiveTask, context: RequestContext) -> Task:
        """Cancel a task that has not ended; returns it as it is then.

        Raises `FailureError(TaskNotCancelable)` where its executor refuses, and what `wait_committed` raises.
        """
        await self._executor.cancel(context, TaskEvents(live))
        if not live.ended:
            live.set_status(TaskState.CANCELED)
        self.interrupt(live)
        return await wait_committed(live)
