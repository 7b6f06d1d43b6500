"""What a stream of a message or of a task has in it, with every store, however slowly it is read."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.types import StreamItem, Task, TaskState
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.interface import TaskStore
from discreet.errors import UnsupportedOperation
from support.executors import ME, Scripted, ask_then_echo, echo, failure_of, request, shape, task_of

pytestmark = pytest.mark.anyio


async def test_a_stream_begins_with_the_task_and_ends_with_its_end(serving, store: TaskStore) -> None:
    async with serving(Scripted(echo), store) as handler:
        streamed = [each async for each in handler.stream(request("hello"), ME)]
        assert [*map(shape, streamed)] == ["Task", "WORKING", "ArtifactChanged", "COMPLETED"]
        first = streamed[0]
        assert isinstance(first, Task)
        assert first.status.state is TaskState.SUBMITTED


async def test_a_stream_to_an_interrupted_task_begins_with_the_task_that_has_the_message(
    serving, store: TaskStore
) -> None:
    async with serving(Scripted(ask_then_echo), store) as handler:
        streamed = [each async for each in handler.stream(request("one"), ME)]
        assert [*map(shape, streamed)] == ["Task", "INPUT_REQUIRED"]
        task_id = streamed[1].task_id  # type: ignore[union-attr]
        streamed = [each async for each in handler.stream(request("two", task_id=task_id), ME)]
        first, *updates = streamed
        assert isinstance(first, Task)
        assert first.status.state is TaskState.WORKING
        assert [m.parts[0].text for m in first.history] == ["one", "What else?", "two"]
        assert [*map(shape, updates)] == ["ArtifactChanged", "COMPLETED"]


async def test_a_subscriber_gets_the_task_and_then_everything_until_its_end(serving, store: TaskStore) -> None:
    seen: list[StreamItem] = []

    async with serving(Scripted(ask_then_echo), store) as handler:
        asked = await task_of(handler, request("one"))
        async with anyio.create_task_group() as others:

            async def subscribe() -> None:
                await collect(handler, asked.id, seen, None)

            others.start_soon(subscribe)
            while not seen:
                await anyio.lowlevel.checkpoint()
            await handler.send(request("two", task_id=asked.id), ME)
        assert seen[0] == asked
        assert [*map(shape, seen[1:])] == ["WORKING", "MessageAdded", "ArtifactChanged", "COMPLETED"]
        failure = await failure_of(anext(aiter(handler.subscribe(asked.id, ME))))
        assert isinstance(failure, UnsupportedOperation)


async def collect(handler: RequestHandler, task_id: str, into: list[StreamItem], pause: anyio.Event | None) -> None:
    async for each in handler.subscribe(task_id, ME):
        into.append(each)
        if pause is not None and len(into) == 3:
            await pause.wait()
