"""Calls a developer's executor: the boundary behind which anything may be raised. Decides nothing about the task's state."""

from __future__ import annotations

from typing import Final, final, get_args

from ..a2a.errors import NotCancelable
from ..daemon.dispatch.execution import Raised, attempt, attempt_now, declared
from ..daemon.logs import log
from ..errors.exceptions import FailureError, OperationError
from ..errors.failures import DomainFailure, Failure, Internal, TaskNotCancelable
from ..lazy import anyio
from .editor import EditorAbility, EditorUnavailableError
from .tasks.executor import AgentExecutor, RequestContext, SupportsCancel, SupportsCheck, SupportsResume
from .tasks.task_events import TaskEvents, was_overtaken

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
