"""Runs the executor: the executions of one task one after the other, those of different tasks side by side.

Whatever an executor does, its task gets a final state or waits for its caller: none stays `working` after its execution.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import msgspec

from ...a2a.errors import not_cancelable_any_more
from ...a2a.types import INACTIVE, CallFacts, Message, Part, Task, TaskState, WaitingMessage
from ...change_signal import ChangeSignal
from ...daemon.dispatch.execution import Raised
from ...daemon.logs import log
from ...daemon.logs.logger import BOUND, LoggedTask, calling
from ...daemon.tracing.attributes import TASK_STATE
from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ...errors.redaction.safe_call import type_name
from ...lazy import anyio
from .execution import Execution, ExecutorCalls, Submitted, declared_failure
from .executor import ORPHANED_TEXT, RequestContext, TaskEvents, fail_task, failure_parts
from .live_task import LiveTask, wait_committed
from .task_cache import TaskCache

if TYPE_CHECKING:
    from ...daemon.tracing.span import Span
    from ...daemon.tracing.tracing import Tracing

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""What runs on the event loop until it is done."""

Spawn: TypeAlias = Callable[[Work], None]
"""Starts work in the daemon's task group."""

MAX_EXECUTIONS: Final = 1024
"""Executions that may run or wait in the queues of their tasks; beyond it messages are refused as overload."""

MAX_WAITING: Final = 256
"""Messages of one task that may wait for their turn; beyond it they are refused as overload."""

UNFINISHED: Final = "unfinished"
"""The fault of an executor that left its task neither ended nor waiting for its caller."""


@final
class Runner:
    """Executes the messages of each task that this daemon owns, one after the other, in the order of its history.

    A message is published when it comes; its execution begins when the store has that it begins. With `replies_without_task` a
    new task is published with the executor's first event only. `name` is that of the agent, for spans.
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
        self._executing: set[str] = set()
        self._freed = ChangeSignal()
        self._draining = False
        self.on_idle: Callable[[], None] | None = None
        self.on_done: Callable[[], None] | None = None

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

    def drain(self) -> None:
        """Leave the messages that no caller of this daemon waits for to other daemons, or to a later one."""
        self._draining = True

    def check(self, live: LiveTask, context: RequestContext) -> RequestContext:
        """The context with what the executor's `check` returns for its message. Raises its refusal, and
        `FailureError(Overloaded)`."""
        checked = self._executor.check(context)
        if live.generation and context.message is not None:
            self._cache.check_memory(context.message)
        return context if checked is None else msgspec.structs.replace(context, checked=checked)

    def submit(self, live: LiveTask, context: RequestContext, *, key: str = "", at_once: bool = False) -> Submitted:
        """Publish a message to a task that no other daemon works on, and have it executed. `at_once` publishes it also where the
        agent might answer without a task.

        Raises what `check` raises; then nothing was published.
        """
        context = self.check(live, context)
        if self._count >= MAX_EXECUTIONS or len(live.waiting) >= MAX_WAITING:
            raise FailureError(Overloaded())
        is_new = not live.generation
        execution = self._new(live, context, call_of(context, key), may_reply=self._replies_without_task and is_new)
        queue = self._queues.get(live)
        if at_once or not (is_new and self._replies_without_task):
            execution.publish(begun=queue is None and not live.waiting)
        if queue is None:
            self._start(live, deque([execution]))
        else:
            queue.append(execution)
        return execution.submitted

    def go_on(self, live: LiveTask) -> None:
        """Do what is still to be done for a task that this daemon owns: resume, or fail, what was cut off; then execute the
        messages that wait. Where nothing is, the task is left to any daemon."""
        if live in self._queues or live.remote or live.pending or live.lost is not None or live.ended:
            return
        queue: deque[Execution] = deque()
        if not live.waiting and live.state not in INACTIVE:
            self._resume(live, queue, None)
        if queue or self._next(live, queue) is not None:
            self._start(live, queue)
        else:
            live.settle()

    def _new(
        self,
        live: LiveTask,
        context: RequestContext,
        call: CallFacts,
        *,
        may_reply: bool = False,
        resumes: bool = False,
    ) -> Execution:
        execution = Execution(live, context, call, may_reply=may_reply, resumes=resumes)
        execution.asked_by = calling()
        if self._tracing is not None:
            execution.origin = self._tracing.origin()
        self._count += 1
        return execution

    def _start(self, live: LiveTask, queue: deque[Execution]) -> None:
        self._queues[live] = queue
        live.pins += 1
        live.busy = True
        self._spawn(partial(self._work, live, queue))

    # -- one task ----------------------------------------------------------------------------------------------

    async def _work(self, live: LiveTask, queue: deque[Execution]) -> None:
        """Run the next of the executions of one task, in the order of their messages.

        Each runs in a task of the event loop of its own: one that was left with a time limit must not run the next.
        """
        more = False
        try:
            execution = self._next(live, queue)
            if execution is None:
                return
            try:
                await self._perform(execution)
            except Exception as exc:  # noqa: BLE001 - a fault of this program must not leave the task as if it were worked on
                execution.conclude(exc)
            finally:
                self._remove_first(queue)
            more = self._next(live, queue) is not None
        finally:
            if more:
                self._spawn(partial(self._work, live, queue))
            else:
                self._leave(live, queue)

    def _leave(self, live: LiveTask, queue: deque[Execution]) -> None:
        """Nothing more is executed for this task by now."""
        while queue:
            self._remove_first(queue)
        del self._queues[live]
        live.busy = False
        live.settle()
        live.notify()
        if self.on_done is not None:
            self.on_done()
        if not self._count and self.on_idle is not None:
            self.on_idle()
        self._cache.unpin(live)

    def _next(self, live: LiveTask, queue: deque[Execution]) -> Execution | None:
        """The execution that is next, also as the first of the queue. None where there is none for this daemon."""
        first = queue[0] if queue else None
        if first is not None and (first.resumes or first.submitted.position is None):
            return first
        if live.lost is not None or not live.waiting:
            return None
        waiting = live.waiting[0]
        if not waiting.begun and self._draining and not any(each.submitted.awaited for each in queue):
            live.queue()
            return None
        if first is not None and first.submitted.position == waiting.position:
            return first
        if waiting.begun:  # by a daemon that is dead, or by this one before it lost the task
            self._resume(live, queue, waiting)
        else:
            self._inherit(live, queue, waiting)
        return queue[0] if queue and queue[0] is not first else self._next(live, queue)

    def _resume(self, live: LiveTask, queue: deque[Execution], waiting: WaitingMessage | None) -> None:
        """Queue the continuation of what was cut off; fail the task where the executor has none."""
        if not self.supports_resume:
            log.warning("task.orphaned", task=live.id)
            return fail_task(live, Part(text=ORPHANED_TEXT), cut_off=True)
        execution = self._queue_stored(live, queue, waiting, resumes=True)
        log.info("task.resumed", task=execution.live.id)

    def _inherit(self, live: LiveTask, queue: deque[Execution], waiting: WaitingMessage) -> None:
        """Queue the execution of a message that the task had when this daemon became its owner."""
        execution = self._queue_stored(live, queue, waiting, resumes=False)
        try:
            checked = self._executor.check(execution.context)
        except FailureError as exc:
            self._remove_first(queue)
            fail_task(live, *failure_parts(exc.failure))
        else:
            execution.context = msgspec.structs.replace(execution.context, checked=checked)

    def _queue_stored(
        self, live: LiveTask, queue: deque[Execution], waiting: WaitingMessage | None, *, resumes: bool
    ) -> Execution:
        task = live.task()
        call = CallFacts() if waiting is None else waiting.call
        message = None if waiting is None else live.message(waiting.position)
        context = context_of(task, message, call)
        is_first = not resumes and live.generation == 1
        execution = self._new(live, context, call, may_reply=self._replies_without_task and is_first, resumes=resumes)
        if waiting is not None:
            execution.submitted.accept(waiting.position)
        queue.appendleft(execution)
        return execution

    def _remove_first(self, queue: deque[Execution]) -> None:
        execution = queue.popleft()
        execution.submitted.done = True
        execution.scope = None
        self._count -= 1
        execution.live.notify()

    async def _perform(self, execution: Execution) -> None:
        live = execution.live
        BOUND.set(LoggedTask(live.id, execution.asked_by))
        if self._tracing is not None:
            self._tracing.resume(execution.origin)
        execution.begin()
        begun = execution.started_generation or 0
        while (live.committed < begun or live.id in self._executing) and not (live.lost or live.ended):
            await (live.wait_for_change() if live.committed < begun else self._freed.wait())
        if live.lost is not None or live.ended:  # lost: another daemon goes on with it, or this one later
            return
        if execution.context.task is not (task := live.task()):
            execution.context = msgspec.structs.replace(execution.context, task=task)
        self._executing.add(live.id)
        span = None if self._tracing is None else self._tracing.execution(self._name, live.id)
        if span is not None:
            span.enter()
        try:
            await self._execute(execution, span)
        finally:
            if span is not None:
                span.tell(TASK_STATE, live.state.name.lower())
                span.end()
            self._executing.discard(live.id)
            self._freed.notify()

    async def _execute(self, execution: Execution, span: Span | None) -> None:
        with anyio.CancelScope() as execution.scope:
            done = await self._executor.execute(execution.context, execution.events, resumes=execution.resumes)
            before = execution.live.state
            if isinstance(done, Raised):
                execution.conclude(done.exc)
            else:
                execution.conclude(None, done)
            if span is None:
                return
            if isinstance(done, Raised):
                span.record_error(declared_failure(done.exc) or type_name(done.exc))
            elif execution.live.state is not before:
                span.record_error(UNFINISHED)

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
        events = TaskEvents(live)
        await self._executor.cancel(context, events)
        if live.ended and not events.ended_task and live.state is not TaskState.CANCELED:
            await wait_committed(live)
            raise FailureError(not_cancelable_any_more(live))
        if not live.ended:
            live.set_status(TaskState.CANCELED)
        self.interrupt(live)
        return await wait_committed(live)

    @property
    def tasks(self) -> Sequence[LiveTask]:
        """The tasks that this daemon executes something for."""
        return [*self._queues]


def call_of(context: RequestContext, key: str = "") -> CallFacts:
    """Return the facts that are stored with the message of the context."""
    return CallFacts(context.metadata, context.accepted_output_modes, context.extensions, context.identity, key)


def context_of(task: Task, message: Message | None, call: CallFacts) -> RequestContext:
    """Return what an executor is told of a stored message."""
    return RequestContext(task, message, call.metadata, call.accepted_output_modes, call.extensions, call.identity)
