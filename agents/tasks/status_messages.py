"""The messages that this program itself writes into a task's status: about failures. Holds their texts."""

from __future__ import annotations

from typing import Final

import msgspec

from ...a2a.ids import new_id
from ...a2a.timestamps import now
from ...a2a.types import Message, Part, Role, StatusChanged, TaskState, TaskStatus
from ...daemon.logs import log
from ...errors.codes import row_of
from ...errors.failures import Failure
from ...errors.wire import encode_error
from .live_task import LiveTask

UNFINISHED_TEXT: Final = "The agent has left its task without a final state."
AGENT_FAILED_TEXT: Final = "The agent has failed."
ORPHANED_TEXT: Final = "The agent's process has ended while it worked on this task."


def fail_task(live: LiveTask, *parts: Part, cut_off: bool = False) -> None:
    """End a task as failed, with a message for its caller; `cut_off` is that of `StatusChanged`. Raises as `LiveTask.publish`."""
    live.publish(StatusChanged(TaskStatus(TaskState.FAILED, agent_message(live, parts), now()), cut_off=cut_off))


def agent_message(live: LiveTask, parts: tuple[Part, ...]) -> Message:
    """A message of the agent about its task."""
    return Message(new_id(), Role.AGENT, parts, context_id=live.context_id, task_id=live.id)


def note_failed(task_id: str, failure: Failure) -> None:
    """Log that a task ends by this failure, which its agent declares."""
    row = row_of(failure)
    log.record(row.log_level, "task.failed", {"task": task_id, "failure": row.protocol_code})


def failure_parts(failure: Failure) -> tuple[Part, ...]:
    """A failure as text for people, and as its JSON-RPC error object for programs."""
    error = msgspec.json.decode(encode_error(failure))
    return (Part(text=error["message"]), Part(data=error))
