"""What a stream of a message or of a task has in it, with every store, however slowly it is read."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.types import Artifact, ArtifactChanged, StreamItem, Task, TaskState, TaskUpdate
from discreet.agents.service.request_handler import RequestHandler
from discreet.agents.stores.interface import TaskStore
from discreet.agents.tasks.executor import RequestContext, TaskEvents
from discreet.errors import UnsupportedOperation
from support.executors import ME, Scripted, ask_then_echo, echo, failure_of, request, shape, task_of
from support.waits import DEADLINE_SECONDS

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


async def test_all_subscribers_see_the_same_and_a_slow_one_loses_nothing(serving, store: TaskStore) -> None:
    events_made = 2000
    begin = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await begin.wait()
        for number in range(events_made):
            await events.artifact(str(number), artifact_id="a", append=True)
        await events.complete()

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request(at_once=True))
        fast: list[StreamItem] = []
        slow: list[StreamItem] = []
        pause = anyio.Event()
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as others:
                others.start_soon(collect, handler, task.id, fast, None)
                others.start_soon(collect, handler, task.id, slow, pause)
                while not (fast and slow):
                    await anyio.lowlevel.checkpoint()
                begin.set()
                while not (fast and shape(fast[-1]) == "COMPLETED"):
                    await anyio.lowlevel.checkpoint()
                pause.set()
        assert [number_of(each) for each in fast if number_of(each)] == [str(n) for n in range(events_made)]
        assert [number_of(each) for each in slow if number_of(each)] == [str(n) for n in range(events_made)]


def number_of(streamed: StreamItem) -> str | None:
    if isinstance(streamed, TaskUpdate) and isinstance(streamed.event, ArtifactChanged):
        artifact: Artifact = streamed.event.artifact
        return artifact.parts[0].text
    return None
