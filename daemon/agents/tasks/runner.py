"""Runs the executor: the executions of one task one after the other, those of different tasks side by side.

Whatever an executor does, its task gets a final state or waits for its caller: none stays `working` after its execution.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, final

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import Internal, Overloaded, TaskNotCancelable
from ...dispatch.execution import Raised, attempt, attempt_now
from ...logs import log
from ..errors import NotCancelable, task_has_ended
from ..faults import declared_failure
from ..model.size import size_of_message
from ..model.states import INACTIVE
from ..model.timestamps import now
from ..model.types import Part, StatusChanged, Task, TaskState, TaskStatus
from .execution import Execution
from .executor import AgentExecutor, RequestContext, SupportsCheck, SupportsResume
from .live_task import LiveTask, wait_committed
from .status_messages import AGENT_FAILED_TEXT, UNFINISHED_TEXT, fail_task, failure_parts
from .task_cache import TaskCache
from .task_events import TaskEvents

MAX_EXECUTIONS: Final = 1024
"""Executions that may run or wait in the queues of their tasks; beyond it messages are refused as overload."""

CANCEL_SECONDS: Final = 30.0
"""How long an executor's `cancel` may take, and another daemon to cancel a task of its own."""


@final
class Runner:
    """Owns the queue of executions of each task. `spawn` starts a coroutine in the daemon's task group.

    A message is published when it comes, and executed when the store has it. With `replies_without_task` a new task is
    published with the executor's first event only.
    """

    def __init__(
        self,
        executor: AgentExecutor,
        cache: TaskCache,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        *,
        replies_without_task: bool = False,
    ) -> None:
        self._executor = executor
        self._replies_without_task = replies_without_task
        self._checker = executor if isinstance(executor, SupportsCheck) else None  # once: such a check is slow
        self._resumer = executor if isinstance(executor, SupportsResume) else None
        self._cache = cache
        self._spawn = spawn
        self._queues: dict[LiveTask, deque[Execution]] = {}
        self._count = 0
        self.on_idle: Callable[[], None] = lambda: None

    @property
    def supports_resume(self) -> bool:
        """Whether the executor can continue what another daemon has begun."""
        return self._resumer is not None

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is queued."""
        return not self._count

    def submit(self, live: LiveTask, context: RequestContext) -> Execution:
        """Queue an execution for a message, and publish the message unless another daemon works on the task.

        Raises `FailureError(Overloaded)`, and the executor's own refusal; then nothing was published.
        """
        if self._checker is not None and context.message is not None:
            self._check(self._checker, context)
        execution = self._new(live, context)
        if live.generation and context.message is not None:
            self._cache.memory.check(size_of_message(context.message))
        if not live.remote and (live.generation or not self._replies_without_task):
            self._accept([*self._queues.get(live, ()), execution])
        self._queue(execution).append(execution)
        self._start(live)
        return execution

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

    def _new(self, live: LiveTask, context: RequestContext) -> Execution:
        if self._count >= MAX_EXECUTIONS:
            raise FailureError(Overloaded())
        return Execution(live, context, may_reply=self._replies_without_task)

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

    @staticmethod
    def _check(executor: SupportsCheck, context: RequestContext) -> None:
        checked = attempt_now(lambda: executor.check(context))
        if not isinstance(checked, Raised):
            return
        failure = declared_failure(checked.exc)
        if failure is None:
            log.error("agent.failed", exc=checked.exc)
        raise FailureError(failure or Internal())

    # -- one task ----------------------------------------------------------------------------------------------

    async def _work(self, live: LiveTask, queue: deque[Execution]) -> None:
        """Run the executions of one task in the order of their messages."""
        while queue:
            while live.remote and live.lost is None:  # the daemon that works on it finishes first
                await live.wait_for_change()
            execution = queue[0]
            try:
                performed = await attempt(partial(self._perform, execution, queue))
                if isinstance(performed, Raised):  # a fault of this program
                    self._conclude(execution, performed.exc)
            finally:
                self._remove_first(live, queue)

    def _remove_first(self, live: LiveTask, queue: deque[Execution]) -> None:
        execution = queue.popleft()
        execution.done = True
        execution.scope = None
        self._count -= 1
        if not queue:
            del self._queues[live]
            live.busy = False
        live.notify()
        if not self._count:
            self.on_idle()
        self._cache.unpin(live)

    async def _perform(self, execution: Execution, queue: deque[Execution]) -> None:
        live, is_message = execution.live, execution.context.message is not None
        if live.ended and is_message and execution.accepted_generation is None:
            execution.refusal = task_has_ended(live.id, live.state)
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
        import anyio  # late: the first replies leave without an event loop

        resumer = self._resumer if execution.context.message is None else None
        work = self._executor.execute if resumer is None else resumer.resume
        with anyio.CancelScope() as execution.scope:
            done = await attempt(lambda: work(execution.context, execution.events))
            self._conclude(execution, done.exc if isinstance(done, Raised) else None)

    def _conclude(self, execution: Execution, fault: BaseException | None) -> None:
        """Fail the task where the executor raised, or left it neither ended nor waiting for its caller."""
        live, scope = execution.live, execution.scope
        if live.ended or execution.reply is not None or (scope is not None and scope.cancel_called):
            if fault is not None:
                log.error("agent.failed", task=live.id, exc=fault)
            return
        live.ensure_created()
        if fault is not None:
            fail_task(live, *self._parts_of(fault, live))
        elif live.state not in INACTIVE and not execution.superseded:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower())
            fail_task(live, Part(text=UNFINISHED_TEXT))

    @staticmethod
    def _parts_of(fault: BaseException, live: LiveTask) -> tuple[Part, ...]:
        """What a caller may know of an executor's exception: everything that a declared error declares, else nothing."""
        failure = declared_failure(fault)
        if failure is not None:
            return failure_parts(failure)
        log.error("agent.failed", task=live.id, exc=fault)
        return (Part(text=AGENT_FAILED_TEXT),)

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
        import anyio  # late, as above

        events = TaskEvents(live)
        fault: BaseException | None = TimeoutError("cancel took too long")
        with anyio.move_on_after(CANCEL_SECONDS):
            cancelled = await attempt(lambda: self._executor.cancel(context, events))
            fault = cancelled.exc if isinstance(cancelled, Raised) else None
        if isinstance(fault, NotCancelable):
            raise FailureError(TaskNotCancelable(task_id=live.id, current_state=live.state.value))
        if fault is not None:
            log.error("agent.failed", task=live.id, exc=fault)
        if not live.ended:
            live.publish(StatusChanged(TaskStatus(TaskState.CANCELED, timestamp=now())))
        self.interrupt(live)
        return await wait_committed(live)
