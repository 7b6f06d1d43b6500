"""One message and its execution: when its sender can be answered, how the executor is called, and what became of it.

What became of a message is told by the task's events alone. So it does not matter which daemon has executed it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final, final, get_args

from ...a2a.errors import NotCancelable
from ...a2a.types import INACTIVE, CallFacts, ExecutionBegun, Message, Part, Task
from ...daemon.dispatch.execution import Raised, attempt, attempt_now, declared
from ...daemon.logs import log
from ...errors.codes import ACP_RESERVED
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import DomainFailure, Failure, Internal, TaskNotCancelable
from ...lazy import anyio
from ..editor import EditorAbility, EditorUnavailableError
from .executor import (
    AGENT_FAILED_TEXT,
    UNFINISHED_TEXT,
    AgentExecutor,
    RequestContext,
    SupportsCancel,
    SupportsCheck,
    SupportsResume,
    TaskEvents,
    fail_task,
    failure_parts,
    note_failed,
    was_overtaken,
)
from .live_task import LiveTask, raise_if_lost, wait_committed

if TYPE_CHECKING:
    from ...daemon.logs.logger import LoggedCall
    from ...daemon.tracing.tracing import Origin


# What an exception of an agent's own code may tell its callers. Logs nothing: its users know the event.


def declared_failure(exc: BaseException) -> Failure | None:
    """The failure that an exception of an executor or an interceptor stands for.

    None for an exception that callers may learn nothing of, also where the facts of a declared error are not of their types.
    """
    if issubclass(type(exc), FailureError):  # `isinstance` asks the class, which may raise
        assert isinstance(exc, FailureError)
        return exc.failure
    if issubclass(type(exc), EditorUnavailableError):
        assert isinstance(exc, EditorUnavailableError)
        if exc.ability in get_args(EditorAbility):
            text = f"This needs an editor that offers {exc.ability}"
            return DomainFailure("EDITOR_UNAVAILABLE", text, http_status=501)
    if issubclass(type(exc), OperationError):
        assert isinstance(exc, OperationError)
        return declared(exc)
    return None


CANCEL_SECONDS: Final = 30.0
"""How long an executor's `cancel` may take, and another daemon to cancel a task of its own."""


@final
class ExecutorCalls:
    """The methods of one executor, with those that it does not have."""

    def __init__(self, executor: AgentExecutor) -> None:
        self._executor = executor
        self._checker = executor if isinstance(executor, SupportsCheck) else None  # once: such a check is slow
        self._canceller = executor if isinstance(executor, SupportsCancel) else None
        self._resumer = executor if isinstance(executor, SupportsResume) else None

    @property
    def supports_resume(self) -> bool:
        """Whether the executor can continue what another daemon has begun."""
        return self._resumer is not None

    def check(self, context: RequestContext) -> object:
        """What the executor's `check` returns for a message. Raises `FailureError` where it refuses the message."""
        checker = self._checker
        if checker is None:
            return None
        checked = attempt_now(lambda: checker.check(context), step="agent.check")
        if not isinstance(checked, Raised):
            return checked
        failure = declared_failure(checked.exc)
        if failure is None:
            log.error("agent.failed", exc=checked.exc)
        raise FailureError(failure or Internal())

    async def execute(self, context: RequestContext, events: TaskEvents, *, resumes: bool = False) -> object:
        """Execute a message, or resume what was cut off; what the executor returned, or `Raised`."""
        resumer = self._resumer if resumes else None
        work = self._executor.execute if resumer is None else resumer.resume
        return await attempt(lambda: work(context, events), step="agent.execute" if resumer is None else "agent.resume")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Let the executor prepare for a cancellation. Its faults are logged.

        Raises `FailureError(TaskNotCancelable)` where it refuses, or can't be cancelled at all.
        """
        canceller = self._canceller
        if canceller is None:
            raise _not_cancelable(context.task.id, events)
        fault: BaseException | None = TimeoutError("cancel took too long")
        with anyio.move_on_after(CANCEL_SECONDS):
            done = await attempt(lambda: canceller.cancel(context, events), step="agent.cancel")
            fault = done.exc if isinstance(done, Raised) else None
        task = context.task
        if fault is not None and issubclass(type(fault), NotCancelable):
            raise _not_cancelable(task.id, events)
        if fault is not None and not was_overtaken(events, fault):
            log.error("agent.failed", task=task.id, exc=fault)


def _not_cancelable(task_id: str, events: TaskEvents) -> FailureError:
    return FailureError(TaskNotCancelable(task_id=task_id, current_state=events.task.status.state.value))


@final
class Submitted:
    """A message that was submitted for a task, and when its sender can be answered.

    `position` is the place of the message in the task's history, None before; `fault` is why it never comes there, `reply` the
    agent's answer where there is no task. `awaited` says that the sender waits for what becomes of it, `done` that this daemon
    has executed it, `remote` that another one is to, and `delegated` that it need not be left to that one any more. What other
    daemons see has a `key`, which tells it from all other messages however often it is submitted.
    `live.notify` is called after each change.
    """

    __slots__ = (
        "_accepted_generation",
        "_creates_task",
        "_position",
        "awaited",
        "delegated",
        "done",
        "fault",
        "key",
        "live",
        "remote",
        "reply",
    )

    def __init__(self, live: LiveTask, key: str = "", *, remote: bool = False) -> None:
        self.live = live
        self._creates_task = not live.generation
        self._position: int | None = None
        self._accepted_generation: int | None = None
        self.fault: BaseException | None = None
        self.reply: Message | None = None
        self.awaited = False
        self.key = key
        self.remote = remote
        self.delegated = not remote
        self.done = False

    @property
    def position(self) -> int | None:
        return 0 if self._creates_task and self.live.generation else self._position

    @property
    def accepted(self) -> bool:
        """Whether the message was published."""
        return self.position is not None

    def accept(self, position: int) -> None:
        """The message is at this place of the history, as of the task's present generation."""
        if self.live.lost is None:
            self._position, self._accepted_generation = position, self.live.generation
            self.live.notify()

    def answer(self, reply: Message) -> None:
        """The agent answers it without a task."""
        self.reply = reply
        self.live.notify()

    @property
    def stored(self) -> bool:
        """Whether the store has the message in the task's history."""
        generation = 1 if self._creates_task and self.live.generation else self._accepted_generation
        return generation is not None and self.live.committed >= generation

    @property
    def began(self) -> int | None:
        """The task's generation when the work on the message began, None before."""
        position = self.position
        return None if position is None else self.live.begun.get(position)

    @property
    def _stopped(self) -> bool:
        """Whether the work on the message has stopped the task, and the store has that."""
        live = self.live
        if not live.stop_generation:
            return False
        start = self.began
        return start is not None and start < live.stop_generation <= live.committed

    @property
    def settled(self) -> bool:
        """Whether the sender can be answered: the message has stopped the task, or nothing more comes of it."""
        live = self.live
        if self.fault is not None or live.lost is not None or self.reply is not None:
            return True
        if live.stop_generation and self._stopped:
            return True
        if live.committed < live.generation:
            return False
        position = self.position
        return self.done or (position is not None and (live.ended or not live.waits(position)))

    @property
    def _given_up(self) -> bool:
        return self.fault is not None or self.live.lost is not None

    async def wait_accepted(self) -> None:
        """Wait until the message was published. Raises what it came to where it never will be."""
        while not (self.accepted or self._given_up):
            await self.live.wait_for_change()
        self._raise_fault()

    async def wait_delegated(self) -> None:
        """Wait until the store has the message where it is left to another daemon. Raises as `wait_accepted`."""
        while not (self.delegated or self._given_up):
            await self.live.wait_for_change()
        self._raise_fault()

    async def wait_stored(self) -> Task:
        """The task as it is now, once the store has it and what is to be done for it. Raises as `wait_accepted`."""
        if not self.delegated:
            await self.wait_delegated()
        return await wait_committed(self.live)

    async def wait_settled(self) -> Task | None:
        """Wait until the sender can be answered.

        Returns the task as it stopped, even if work on the next message has begun by now; None where this one did not stop it,
        as when the task ended before its turn. Raises `FailureError` or `TaskConflict` where the message was refused or the
        task is lost.
        """
        live = self.live
        while not self.settled:
            await live.wait_for_change()
        if self._given_up:
            self._raise_fault()
        return live.stopped_task if live.stop_generation and self._stopped else None

    def _raise_fault(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self.live.lost is not None:
            raise_if_lost(self.live)


_RESERVED: Final = (
    "ACP fixes what this number means, so editors get another; to have the user sign in: events.require_auth"
)


@final
class Execution:
    """One execution of an executor for one task: what it was asked, and how far it is.

    `resumes` says that it goes on with one that was cut off. `call` is what is stored with its message. `origin` is the span
    in which it was asked for, `asked_by` the call that did, for the log. `started_generation` is that of the task when it began.
    """

    __slots__ = (
        "_is_begun",
        "asked_by",
        "call",
        "context",
        "events",
        "live",
        "origin",
        "resumes",
        "scope",
        "started_generation",
        "submitted",
    )

    def __init__(
        self,
        live: LiveTask,
        context: RequestContext,
        call: CallFacts,
        *,
        may_reply: bool = False,
        resumes: bool = False,
    ) -> None:
        self.live = live
        self.submitted = Submitted(live)
        self.context = context
        self.call = call
        self.resumes = resumes
        self.events = TaskEvents(live, self.submitted.answer if may_reply else None)
        self._is_begun = False
        self.started_generation: int | None = None
        self.origin: Origin = None
        self.asked_by: LoggedCall | None = None
        self.scope: anyio.CancelScope | None = None

    def publish(self, *, begun: bool) -> None:
        """Publish the message: from then on it is a part of the task, whatever becomes of this execution. `begun` says that no
        other one comes before it. Raises what `LiveTask.publish` raises.
        """
        live, message = self.live, self.context.message
        assert message is not None, "only messages are published"
        self._is_begun = begun
        if live.generation:
            self.submitted.accept(live.add_message(message, self.call, begun=begun))
        else:
            live.ensure_created(self.call, begun=begun)

    def begin(self) -> None:
        """Publish that it begins, unless that is known. The executor may run when the store has that."""
        live = self.live
        if live.generation and not self._is_begun:
            if not self.resumes:
                live.go_on()
            position = self.submitted.position
            live.publish(ExecutionBegun(-1 if position is None else position))
        self.started_generation = live.generation

    def conclude(self, fault: BaseException | None, returned: object = None) -> None:
        """Fail the task where the executor raised this `fault`, or left it neither ended nor waiting for its caller."""
        live, scope = self.live, self.scope
        if live.ended or self.submitted.reply is not None or (scope is not None and scope.cancel_called):
            if fault is not None and not was_overtaken(self.events, fault):
                log.error("agent.failed", task=live.id, exc=fault)
            return
        live.ensure_created(self.call)
        if fault is not None:
            fail_task(live, *_parts_of(fault, live, of_editor=self.context.editor is not None))
        elif live.state not in INACTIVE and not self._was_answered:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower(), hint=_way_to_end(returned))
            fail_task(live, Part(text=UNFINISHED_TEXT))

    @property
    def _was_answered(self) -> bool:
        """Whether it has asked, and the answer waits for it to be over: it need not stop its task again."""
        started = self.started_generation
        return started is not None and self.live.stop_generation > started and bool(self.live.waiting)


def _way_to_end(returned: object) -> str:
    """What the author of an executor probably forgot, where it left its task with this result."""
    if isinstance(returned, Coroutine):
        returned.close()
        return "execute returned a coroutine: is an `await` missing?"
    if returned is None:
        return "end with `await events.complete(…)`, or with another status that ends or waits; is an `await` missing?"
    return f"execute returned {type(returned).__name__}, which is not sent: `await events.complete(…)`"


def _parts_of(fault: BaseException, live: LiveTask, *, of_editor: bool) -> tuple[Part, ...]:
    """What a caller may know of an executor's exception: everything that a declared error declares, else nothing."""
    failure = declared_failure(fault)
    if failure is not None:
        if of_editor and isinstance(failure, DomainFailure) and failure.number in ACP_RESERVED:
            log.warning("error.number_reserved", task=live.id, code=failure.code, number=failure.number, hint=_RESERVED)
        note_failed(live.id, failure)
        return failure_parts(failure)
    log.error("agent.failed", task=live.id, exc=fault)
    return (Part(text=AGENT_FAILED_TEXT),)
