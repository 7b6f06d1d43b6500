"""Executors and stores for tests of daemons with roles."""

from __future__ import annotations

from typing import Any

import anyio

from discreet.a2a.types import Task, TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.runtime import Role
from discreet.agents.stores.interface import TaskStore

from .executors import Execute, Scripted, echo, request, task_of, until_state

FRONT = Role(executes=False, queues=True)
WORKER = Role(queues=True)


class Idle:
    """The executor of a front, which is never asked to execute anything."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        raise AssertionError("a front executes nothing")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


class Counting(Scripted):
    """Remembers the texts that it was asked to execute, in order."""

    def __init__(self, execute: Any = echo) -> None:
        super().__init__(execute)
        self.texts: list[str] = []

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.texts.append(context.text)
        await super().execute(context, events)


def ask_after(may_ask: anyio.Event, *, completing: str = "") -> Execute:
    """Works on the message `one` until it may ask, on others not at all. It ends the task of the message `completing`."""

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "one":
            await may_ask.wait()
        if context.text == completing:
            return await events.complete()
        await events.require_input()

    return execute


async def begun(handler: RequestHandler, text: str = "one") -> Task:
    """A new task whose execution has begun, at whatever daemon."""
    task = await task_of(handler, request(text, at_once=True))
    return await until_state(handler, task.id, TaskState.WORKING)


class AlteredStore:
    """A store of which a test changes some methods."""

    def __init__(self, inner: TaskStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
