"""Executors whose work is a function, and requests for them, without a daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from discreet.a2a.types import (
    Message,
    Part,
    Role,
    SendConfiguration,
    SendRequest,
    StatusChanged,
    StreamItem,
    Task,
    TaskState,
    TaskUpdate,
    new_id,
)
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import Caller, RequestHandler
from discreet.errors import Failure, FailureError

from .waits import until

ME = Caller("me", "1.0")


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
    message_id: str | None = None,
    at_once: bool = False,
) -> SendRequest:
    """A message of its own, unless a `message_id` is given: the same once more gets the same task."""
    message = Message(message_id or new_id(), Role.USER, (Part(text=text),), context_id=context_id, task_id=task_id)
    return SendRequest(message, SendConfiguration(return_immediately=at_once))


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


async def until_state(handler: RequestHandler, task_id: str, state: TaskState) -> Task:
    async def has_it() -> bool:
        return (await handler.get(task_id, ME)).status.state is state

    await until(has_it)
    return await handler.get(task_id, ME)


def text_of(task: Task) -> list[str | None]:
    return [part.text for artifact in task.artifacts for part in artifact.parts]


def shape(streamed: StreamItem) -> str:
    if isinstance(streamed, TaskUpdate):
        event = streamed.event
        if isinstance(event, StatusChanged):
            return event.status.state.name
        return type(event).__name__
    return type(streamed).__name__
