"""What a developer implements: an agent's work, and what stands before and behind every call.

class Greeter:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working("Thinking …")
        await events.artifact("Hello!")
        await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        '''Nothing to let go of.'''
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

import msgspec

from ....errors.exceptions import OperationError
from ....errors.failures import Failure
from ...operations.access import Identity
from ..model.types import JsonObject, Message, Task

if TYPE_CHECKING:
    from .task_events import TaskEvents


class InvalidStateTransition(OperationError, code="INVALID_STATE_TRANSITION", http_status=409):
    """The task cannot go from its state to that one"""

    current: str
    target: str


class NotCancelable(OperationError, code="NOT_CANCELABLE", http_status=409):
    """The agent does not let go of the task"""


class RequestContext(msgspec.Struct, frozen=True):
    """What an executor is told of a request.

    `task` is the task as it was when the request's turn came, this message in its history. `message` is what the caller said;
    None when there is none: in `cancel`, and in `resume` after the daemon was started anew. `metadata` came beside the message,
    `extensions` are those that the caller named, `accepted_output_modes` the media types that it takes (None: anything).
    `identity` is who calls, None without accepted credentials; `service_params` are the call's metadata with keys in lower
    case, which may hold credentials: don't log them.
    """

    task: Task
    message: Message | None = None
    metadata: JsonObject | None = None
    accepted_output_modes: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    identity: Identity | None = None
    service_params: Mapping[str, str] = {}

    @property
    def text(self) -> str:
        """The message's text parts, one a line; empty where there are none."""
        parts = self.message.parts if self.message is not None else ()
        return "\n".join(part.text for part in parts if part.text is not None)


@runtime_checkable
class AgentExecutor(Protocol):
    """An agent's work. One object for all tasks, on the event loop; it must not block."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        """Work on a task, until it has ended or waits for its caller.

        Called for every message, for one task one at a time. When it returns the task must have a resting state
        (`events.complete`, `fail`, `reject`, `require_input`, `require_auth`), else the task fails; so it does when this raises.
        A declared `OperationError` tells the caller its code, its text and its details, anything else nothing. Nothing is
        kept of an execution that waits for its caller: the next message calls this again.

        An agent may instead answer at once with `events.reply`, as long as it has said nothing else: then there is no task.

        Cancelled, by the event loop's own exception, when the task is cancelled and when the daemon ends.
        """
        ...

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Let go of a task, before its execution is cancelled. May end the task itself; else it becomes canceled.

        Raises `NotCancelable` to keep on: the caller gets −32002.
        """
        ...


@runtime_checkable
class Resumes(Protocol):
    """An executor that can go on where a daemon was killed. Without it such tasks are failed."""

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        """As `execute`, for a task that was being worked on when its daemon ended."""
        ...


@runtime_checkable
class Checks(Protocol):
    """An executor that looks at messages before there is a task for them."""

    def check(self, context: RequestContext) -> None:
        """Raise a declared error, or `FailureError`, to refuse a message. Must not block."""
        ...


class AgentCall(msgspec.Struct, frozen=True):
    """A call of one of the agent's methods, as interceptors see it. `metadata` may hold credentials: don't log it."""

    method: str
    dialect: str
    identity: Identity | None
    metadata: Mapping[str, str]
    task_id: str | None = None


Outcome: TypeAlias = Failure | None
"""How a call ended: why it failed, or None where it did not."""


class Interceptor(Protocol):
    """Stands before and behind every call of the agent's methods: `before` in the order of their list, `after` in reverse."""

    async def before(self, call: AgentCall) -> None:
        """Raise a declared error, or `FailureError`, to refuse the call."""
        ...

    async def after(self, call: AgentCall, outcome: Outcome) -> None:
        """Called for every call whose `before` has returned, also when it was refused by another or cancelled; of a stream at
        its end. Its own exceptions are logged and change nothing."""
        ...
