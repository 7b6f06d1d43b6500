"""The errors of an agent: those that it declares to its callers, and the failures of A2A that several modules report.

Holds fixed texts. Decides nothing and imports nothing of this package but data.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors.exceptions import FailureError, OperationError
from ..errors.failures import PushNotificationNotSupported, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from .types import TaskStatus, is_new_id

NO_EXTENDED_CARD: Final = "The agent has no extended card."

POLL_SECONDS: Final = 1
"""How often a caller who is told of nothing should look at a task, whatever its dialect."""

POLL_TASK: Final = f"Poll the task with GetTask, every {POLL_SECONDS} s, until it has ended or waits for you."


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


def public_card_hint(url: str) -> str:
    """Return what a caller does without an extended card, who has reached the daemon under this URL; empty over stdio."""
    how = "get it from /.well-known/agent-card.json" if url else "`discreet card` prints it"
    return f"Work with the public agent card: {how}."


def sends_no_notifications() -> PushNotificationNotSupported:
    """Return the failure of a call that is about push notifications."""
    return PushNotificationNotSupported(reason="The agent sends no push notifications.", suggestion=POLL_TASK)


def does_not_stream(*, sends: bool) -> UnsupportedOperation:
    """Return the failure of a stream, of one that `sends` a message or of one that follows a task."""
    instead = "Send the message with SendMessage, which waits for its task." if sends else POLL_TASK
    return UnsupportedOperation(reason="The agent does not stream.", suggestion=instead)


def takes_no_message(task_id: str, status: TaskStatus) -> UnsupportedOperation:
    """Return the failure for a message to a task that has ended."""
    suggestion = "Send a message without a task id to begin a new task."
    return UnsupportedOperation(**_facts(task_id, status), suggestion=suggestion)


def has_no_events(task_id: str, status: TaskStatus) -> UnsupportedOperation:
    """Return the failure for a subscription to a task that has ended."""
    return UnsupportedOperation(**_facts(task_id, status), suggestion=_READ_TASK)


def keeps_on(task_id: str, state: str) -> TaskNotCancelable:
    """Return the failure for cancelling a task whose agent does not cancel it."""
    reason = "The agent does not cancel the task."
    return TaskNotCancelable(task_id=task_id, current_state=state, reason=reason, suggestion=POLL_TASK)


def not_cancelable_any_more(task_id: str, status: TaskStatus) -> TaskNotCancelable:
    """Return the failure for cancelling a task that has ended."""
    return TaskNotCancelable(**_facts(task_id, status), suggestion=_READ_TASK)


_READ_TASK: Final = "Read the task with GetTask: nothing more happens to it."


def _facts(task_id: str, status: TaskStatus) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "current_state": status.state.value,
        "completed_at": status.timestamp,
        "reason": "The task has ended.",
    }
