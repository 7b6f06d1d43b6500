"""What a developer implements to write an agent: the `AgentExecutor` Protocol, and what it is given. Runs nothing.

class Greeter:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await events.working("Thinking …")
        await events.artifact("Hello!")
        await events.complete()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from ...a2a.types import JsonObject, Message, Task
from ...daemon.operations.identity import Identity

if TYPE_CHECKING:
    from ..editor import Editor
    from .task_events import TaskEvents


class RequestContext(msgspec.Struct, frozen=True):
    """The request that an executor works on.

    `task` is the task when its execution began, with this message in its history. `message` is the caller's message; in `resume`
    that whose execution was cut off; None in `cancel`. `metadata` is the request's own, `extensions` are those that the caller
    named, `accepted_output_modes` the media types that the caller accepts (None: any). `identity` is the caller, None without
    accepted credentials. `service_params` are the call's `serviceParams` with keys in lower case; they may hold
    credentials: don't log them, and they are empty where another daemon has taken the call. `checked` is what the executor's
    own `check` returned for this message. `editor` is the caller's editor where the caller speaks the Agent Client Protocol,
    else None.
    """

    task: Task
    message: Message | None = None
    metadata: JsonObject | None = None
    accepted_output_modes: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    identity: Identity | None = None
    service_params: Mapping[str, str] = {}
    checked: Any = None  # the executor's own
    editor: Editor | None = None

    @property
    def text(self) -> str:
        """The message's text parts, joined by newlines; empty where there are none."""
        parts = self.message.parts if self.message is not None else ()
        return "\n".join(part.text for part in parts if part.text is not None)


@runtime_checkable
class AgentExecutor(Protocol):
    """An agent's work. One object serves all tasks, on the event loop; it must not block."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        """Work on a task until it ends or needs its caller.

        Called for every message; the executions of one task run one at a time. When it returns, the task must have ended
        (`events.complete`, `fail`, `reject`, `cancel`) or wait for its caller (`require_input`, `require_auth`), else the
        task fails. The task fails as well when this raises: the caller then reads the code, text and details of a declared
        `OperationError`, and nothing of any other exception. An execution that waits for its caller leaves nothing in
        memory: the next message calls this again.

        An agent may answer without a task instead: `events.reply`, before any other event.

        It is cancelled, by the event loop's own exception, when the task is cancelled and when the daemon ends.
        """
        ...


@runtime_checkable
class SupportsCancel(Protocol):
    """An executor whose tasks can be cancelled. Without it a caller who asks for that gets −32002."""

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Prepare for the cancellation of a task, before its execution is cancelled. Where no daemon works on the task, this is
        called in the one that was asked to cancel it.

        It may end the task itself; else the task becomes canceled. Raises `NotCancelable` to refuse: the caller gets −32002.
        """
        ...


@runtime_checkable
class SupportsResume(Protocol):
    """An executor that can continue a task after its daemon has ended. Without it such tasks fail."""

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        """As `execute`, for a task that was being worked on when its daemon ended, or was taken for dead.

        `context.message` is the message whose execution was cut off. It may have been cut off before `execute` was called.
        Messages that came later are executed afterwards, in their order.
        """
        ...


@runtime_checkable
class SupportsCheck(Protocol):
    """An executor that checks messages before they have a task."""

    def check(self, context: RequestContext) -> object:
        """Raise a declared error, or `FailureError`, to refuse a message. Must not block.

        What it returns is `checked` in the context of the execution, so that a message is read only once.
        """
        ...
