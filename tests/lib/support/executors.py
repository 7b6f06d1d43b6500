"""Executors that do what a test says, the requests to them, and what is in the answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from discreet.daemon.agents.model.types import Message, Part, Role, SendConfiguration, Task
from discreet.daemon.agents.requests import Caller, SendRequest
from discreet.daemon.agents.service.request_handler import RequestHandler
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.errors import Failure, FailureError

ME = Caller("me", "1.0")
DEFAULT = SendConfiguration()
AT_ONCE = SendConfiguration(return_immediately=True)

Execute = Callable[[RequestContext, TaskEvents], Awaitable[None]]


class Scripted:
    """An executor whose work is a function; its `cancel` is another, or does nothing."""

    def __init__(self, execute: Execute, cancel: Execute | None = None) -> None:
        self._execute = execute
        self._cancel = cancel

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await self._execute(context, events)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        if self._cancel is not None:
            await self._cancel(context, events)


def request(
    text: str = "hi",
    *,
    task_id: str | None = None,
    context_id: str | None = None,
    message_id: str = "m-1",
    configuration: SendConfiguration = DEFAULT,
) -> SendRequest:
    message = Message(message_id, Role.USER, (Part(text=text),), context_id=context_id, task_id=task_id)
    return SendRequest(message, configuration)


async def echo(context: RequestContext, events: TaskEvents) -> None:
    await events.working()
    await events.artifact(context.text, name="echo")
    await events.complete("done")


async def ask_then_echo(context: RequestContext, events: TaskEvents) -> None:
    if len([m for m in context.task.history if m.role is Role.USER]) == 1:
        await events.require_input("What else?")
    else:
        await events.artifact(context.text)
        await events.complete()


async def for_ever(context: RequestContext, events: TaskEvents) -> None:
    await events.working()
    await anyio.sleep_forever()


async def failure_of(work: Awaitable[object]) -> Failure:
    with pytest.raises(FailureError) as caught:
        await work
    return caught.value.failure


async def task_of(handler: RequestHandler, sent: SendRequest, caller: Caller = ME) -> Task:
    task = await handler.send(sent, caller)
    assert isinstance(task, Task)
    return task


def text_of(task: Task) -> list[str | None]:
    return [part.text for artifact in task.artifacts for part in artifact.parts]
