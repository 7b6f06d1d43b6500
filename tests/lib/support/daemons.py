"""Daemons on one file: an executor that takes over, waits for what a task becomes, and a watcher."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from discreet.a2a.types import StatusChanged, StreamItem, TaskQuery, TaskState, TaskUpdate
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler

from .executors import ME, Execute, Scripted
from .waits import DEADLINE_SECONDS, until


class Resumer(Scripted):
    """Continues where another daemon was killed, and remembers the order of its calls."""

    def __init__(self, execute: Execute) -> None:
        super().__init__(execute)
        self.calls: list[str] = []
        self.may_end = anyio.Event()
        self.may_end.set()
        self._news = anyio.Event()

    async def are_asked(self, count: int) -> None:
        while len(self.calls) < count:
            self._news = anyio.Event()
            await self._news.wait()

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.calls.append("execute")
        await super().execute(context, events)

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        self.calls.append("resume")
        self._news.set()
        await self.may_end.wait()
        await events.artifact("resumed")
        await events.complete()


async def until_ended(handler: RequestHandler, count: int) -> None:
    async def are_there() -> bool:
        return (await handler.list(TaskQuery(scope="me", state=TaskState.COMPLETED, page_size=1))).total_size >= count

    await until(are_there)


class Watching:
    """A subscriber in the background, and what it got."""

    def __init__(self) -> None:
        self.seen: list[StreamItem] = []
        self.first = anyio.Event()
        self.second = anyio.Event()

    async def run(self, handler: RequestHandler, task_id: str) -> None:
        async for each in handler.subscribe(task_id, ME):
            (self.second if self.seen else self.first).set()
            self.seen.append(each)

    @property
    def states(self) -> list[TaskState]:
        return [
            each.event.status.state
            for each in self.seen
            if isinstance(each, TaskUpdate) and isinstance(each.event, StatusChanged)
        ]


@asynccontextmanager
async def watching(handler: RequestHandler, task_id: str) -> AsyncIterator[Watching]:
    """On exit it waits for the end of the task."""
    watcher = Watching()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run, handler, task_id)
            await watcher.first.wait()
            yield watcher
