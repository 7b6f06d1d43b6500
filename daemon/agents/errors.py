"""The errors of an agent: those that it declares to its callers, and the failures of A2A that several modules report.

Holds fixed texts. Decides nothing and imports nothing of this package but data.
"""

from __future__ import annotations

from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import TaskNotCancelable, TaskNotFound, UnsupportedOperation
from .model.ids import is_new_id
from .model.types import TaskState


class InvalidStateTransition(OperationError, code="INVALID_STATE_TRANSITION", http_status=409):
    """The task has ended and takes no more events, or cannot go from its state to that one"""

    current: str
    target: str


class NotCancelable(OperationError, code="NOT_CANCELABLE", http_status=409):
    """The agent does not cancel the task"""


class TaskConflict(OperationError, code="TASK_CONFLICT", http_status=409, retryable=True):
    """Another process has taken the task over"""


class EventsLost(OperationError, code="EVENTS_LOST", http_status=410, retryable=True):
    """The log of the task does not hold these events any more; the task itself has what came of them"""

    taskId: str  # noqa: N815 - as everything on this wire
    lastGeneration: int  # noqa: N815


class UnknownSkill(OperationError, code="UNKNOWN_SKILL", http_status=404):
    """The agent has no such skill"""


class MisplacedReplyError(RuntimeError):
    """An executor called `TaskEvents.reply` after it had published an event or replied already."""


def task_not_found(task_id: str) -> FailureError:
    """The error for a task that is unknown to its caller. It repeats the id only where the id can't be a secret."""
    return FailureError(
        TaskNotFound(
            task_id=task_id if is_new_id(task_id) else None,
            suggestion="The task may have been removed. Send a new message.",
        )
    )


def not_cancelable(task_id: str, state: TaskState) -> TaskNotCancelable:
    """The failure for the cancellation of a task in a terminal state."""
    return TaskNotCancelable(task_id=task_id, current_state=state.value, reason="The task has ended.")


def task_has_ended(task_id: str, state: TaskState) -> UnsupportedOperation:
    """The failure for a message to a task in a terminal state, or a subscription to it."""
    return UnsupportedOperation(
        task_id=task_id,
        current_state=state.value,
        reason="The task has ended.",
        suggestion="Send a message without a task id to begin a new task.",
    )
