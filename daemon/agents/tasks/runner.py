"""Executions: one after the other for each task, side by side for different ones, none of them forgotten.

Whatever an executor does, its task ends in a state that tells: nothing stays `working` behind an execution that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final, assert_never, final

import msgspec

from ....errors.exceptions import FailureError, OperationError
from ....errors.failures import (
    Failure,
    Internal,
    InvalidAgentResponse,
    Overloaded,
    TaskNotCancelable,
    UnsupportedOperation,
)
from ....errors.wire import encode_error
from ...dispatch import execution
from ...logs import log
from ..model.ids import now
from ..model.states import RESTING
from ..model.types import Created, Message, MessageAdded, Part, StatusChanged, Task, TaskState, TaskStatus
from .executor import AgentExecutor, Checks, NotCancelable, RequestContext, Resumes
from .live_task import LiveTask
from .task_cache import TaskCache
from .task_events import TaskEvents, spoken

if TYPE_CHECKING:
    import anyio

MOST_RUNS: Final = 1024
"""Executions that may be under way or wait for their turn; beyond it senders are told to come again."""

CANCEL_SECONDS: Final = 30.0
"""How long an executor's `cancel` may take, and another daemon to cancel a task of its own."""

UNFINISHED: Final = "The agent has left its task without a final state."
BROKEN: Final = "The agent has failed."
ORPHANED: Final = "The agent's process has ended while it worked on this task."


class TaskConflict(OperationError, code="TASK_CONFLICT", http_status=409, retryable=True):
    """Another process has taken the task over"""


@final
class Execution:
    """One execution. `opens` says that its message begins the task.

    `first` is the task's generation when its turn came, None before; `refused` why it never came."""

    __slots__ = ("context", "done", "events", "first", "live", "opens", "refused", "scope")

    def __init__(self, live: LiveTask, context: RequestContext) -> None:
        self.live = live
        self.context = context
        self.events = TaskEvents(live, self.announce)
        self.opens = live.generation == 0
        self.first: int | None = None
        self.scope: anyio.CancelScope | None = None
        self.done = False
        self.refused: Failure | None = None

    @property
    def reply(self) -> Message | None:
        """What the agent answered instead of taking up a task."""
        return self.events.replied

    def announce(self) -> None:
        """Let a new task begin to exist, before anything is said of it."""
        if not self.live.generation:
            self.live.publish(Created(self.live.task()))

    @property
    def rested(self) -> bool:
        """Whether its task has, and has in the store too, come to rest by this execution."""
        live = self.live
        return self.first is not None and self.first < live.rested <= live.committed

    @property
    def settled(self) -> bool:
        """Whether there is an answer for who waits for this execution."""
        live = self.live
        over = self.done and live.committed == live.generation
        return self.rested or over or bool(self.refused or self.reply or live.lost)

    async def settle(self) -> Task | None:
        """Wait until it is settled: the task as it came to rest, though the next execution may be under way; None where it
        did not. Raises `FailureError`, or `TaskConflict`, where there is no answer."""
        while not self.settled:
            await self.live.changed()
        if self.refused is not None:
            raise FailureError(self.refused)
        check_lost(self.live)
        return self.live.at_rest if self.rested else None


@final
class Runner:
    """Runs the executor. `spawn` starts a coroutine in the daemon's task group."""

    def __init__(
        self,
        executor: AgentExecutor,
        residents: TaskCache,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
    ) -> None:
        self._executor = executor
        self._checks = executor if isinstance(executor, Checks) else None  # asked once: Protocols are slow to ask
        self._resumes = executor if isinstance(executor, Resumes) else None
        self._residents = residents
        self._spawn = spawn
        self._count = 0
        self.on_idle: Callable[[], None] = lambda: None

    @property
    def resumes(self) -> bool:
        """Whether the executor can go on with what another daemon has begun."""
        return self._resumes is not None

    @property
    def idle(self) -> bool:
        """True when nothing is executed, nor waits to be."""
        return not self._count

    def submit(self, live: LiveTask, context: RequestContext) -> Execution:
        """Queue an execution for a message. Raises `FailureError(Overloaded)`, and what the executor refuses it with."""
        if self._checks is not None and context.message is not None:
            self._check(self._checks, context)
        run = self._new(live, context)
        live.runs.append(run)
        self._begin(live)
        return run

    def resume(self, live: LiveTask) -> None:
        """Go on with the work of a daemon that is no more, before all messages that wait. Raises `FailureError(Overloaded)`."""
        live.runs.appendleft(self._new(live, RequestContext(live.task())))
        self._begin(live)

    def _new(self, live: LiveTask, context: RequestContext) -> Execution:
        if self._count >= MOST_RUNS:
            raise FailureError(Overloaded())
        self._count += 1
        live.users += 1
        return Execution(live, context)

    def _begin(self, live: LiveTask) -> None:
        if len(live.runs) == 1:
            self._spawn(partial(self._work, live))

    @staticmethod
    def _check(executor: Checks, context: RequestContext) -> None:
        fault = execution.attempt_now(lambda: executor.check(context))
        if isinstance(fault, OperationError):
            failure = execution.declared(fault)
            if failure is not None:
                raise FailureError(failure)
        if isinstance(fault, FailureError):
            raise fault
        if fault is not None:
            log.error("agent.failed", exc=fault)
            raise FailureError(Internal())

    async def _work(self, live: LiveTask) -> None:
        """All executions of one task, in the order of their messages."""
        while live.runs:
            while live.foreign and live.lost is None:  # another daemon works on it; its turn comes first
                await live.changed()
            run = live.runs[0]
            try:
                fault = await execution.attempt(partial(self._perform, run))
                if fault is not None:  # one of this program's own
                    self._conclude(run, fault)
            finally:
                run.done = True
                self._count -= 1
                live.runs.popleft()
                live.wake()
                if not self._count:
                    self.on_idle()
                self._residents.release(live)

    async def _perform(self, run: Execution) -> None:
        live = run.live
        if live.lost is not None:  # who sent it is told so, and may send it again
            return
        if live.ended:
            run.refused = has_ended(live)
            return
        run.first = live.generation
        message = run.context.message
        if message is not None and not run.opens:
            if live.state in RESTING:  # first, so that the agent's question stands before the answer in the history
                live.publish(StatusChanged(TaskStatus(TaskState.WORKING, timestamp=now())))
            live.publish(MessageAdded(message))
            run.first = live.generation
        run.context = msgspec.structs.replace(run.context, task=live.task())
        await self._execute(run, run.events)

    async def _execute(self, run: Execution, events: TaskEvents) -> None:
        import anyio  # late: the first replies leave without an event loop

        resumes = self._resumes if run.context.message is None else None
        work = self._executor.execute if resumes is None else resumes.resume
        with anyio.CancelScope() as run.scope:
            fault = await execution.attempt(lambda: work(run.context, events))
            self._conclude(run, fault)

    def _conclude(self, run: Execution, fault: BaseException | None) -> None:
        """Give the task an end where the executor did not."""
        live = run.live
        if live.ended or run.reply is not None or (run.scope is not None and run.scope.cancel_called):
            if fault is not None:
                log.error("agent.failed", task=live.id, exc=fault)
            return
        run.announce()
        if fault is not None:
            fail(live, *self._failure(fault, live))
        elif live.state not in RESTING:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower())
            fail(live, Part(text=UNFINISHED))

    @staticmethod
    def _failure(fault: BaseException, live: LiveTask) -> tuple[Part, ...]:
        """What a caller may know of what an executor raised: of a declared error everything that it declares."""
        if isinstance(fault, OperationError):
            failure = execution.declared(fault)
            if failure is not None:
                return described(failure)
        elif isinstance(fault, FailureError):
            return described(fault.failure)
        log.error("agent.failed", task=live.id, exc=fault)
        return (Part(text=BROKEN),)

    # -- ending from outside -----------------------------------------------------------------------------------

    async def cancel(self, live: LiveTask, context: RequestContext) -> Task:
        """Cancel a task that has not ended. Raises `FailureError(TaskNotCancelable)` if its agent keeps on."""
        import anyio  # late, as above

        events = TaskEvents(live, lambda: None)
        fault: BaseException | None = TimeoutError("cancel took too long")
        with anyio.move_on_after(CANCEL_SECONDS):
            fault = await execution.attempt(lambda: self._executor.cancel(context, events))
        if isinstance(fault, NotCancelable):
            raise FailureError(TaskNotCancelable(task_id=live.id, current_state=live.state.value))
        if fault is not None:
            log.error("agent.failed", task=live.id, exc=fault)
        if not live.ended:
            live.publish(StatusChanged(TaskStatus(TaskState.CANCELED, timestamp=now())))
        live.interrupt()
        return await committed(live)


def fail(live: LiveTask, *parts: Part) -> None:
    """End a task as failed, for a reason that its caller may read."""
    live.publish(StatusChanged(TaskStatus(TaskState.FAILED, spoken(live, parts), now())))


def described(failure: Failure) -> tuple[Part, ...]:
    """A failure for people, and for programs as the error object it would be."""
    error = msgspec.json.decode(encode_error(failure))
    return (Part(text=error["message"]), Part(data=error))


def has_ended(live: LiveTask) -> UnsupportedOperation:
    return UnsupportedOperation(
        task_id=live.id,
        current_state=live.state.value,
        reason="The task has ended.",
        suggestion="Send a message without a task id to begin a new task.",
    )


def check_lost(live: LiveTask) -> None:
    """Raise what has become of a task that is lost."""
    match live.lost:
        case None:
            return
        case "conflict" | "behind":
            raise TaskConflict
        case "full":
            raise FailureError(Overloaded())
        case "unstorable":
            raise FailureError(InvalidAgentResponse(task_id=live.id))
        case "failed":
            raise FailureError(Internal())
        case _:
            assert_never(live.lost)


async def committed(live: LiveTask) -> Task:
    """The task as it is now, once the store has it so."""
    task, generation = live.task(), live.generation
    while live.committed < generation and live.lost is None:
        await live.changed()
    check_lost(live)
    return task
