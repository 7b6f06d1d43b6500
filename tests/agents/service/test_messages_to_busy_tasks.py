"""Messages for a task that is worked on: they are stored at once, and executed in their order."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.task import NOT_EXECUTED, NOT_EXECUTED_TEXT, apply_events
from discreet.a2a.types import Part, Role, StatusChanged, StreamItem, Task, TaskState, TaskUpdate
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.interface import TaskStore
from support.executors import ME, Scripted, for_ever, request, task_of, until_state

pytestmark = pytest.mark.anyio


async def test_messages_for_a_busy_task_wait_for_their_turn_and_come_in_their_order(serving) -> None:
    heard: list[str] = []
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        heard.append(context.text)
        await events.working()
        await go_on.wait()
        await events.require_input()

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request("0", at_once=True))
        async with anyio.create_task_group() as senders:
            for text in "123":
                senders.start_soon(handler.send, request(text, task_id=task.id), ME)
                await anyio.wait_all_tasks_blocked()
            assert heard == ["0"]
            go_on.set()
        assert heard == ["0", "1", "2", "3"]
        history = (await handler.get(task.id, ME)).history
        assert [m.parts[0].text for m in history if m.role is Role.USER] == ["0", "1", "2", "3"]


async def test_a_message_to_a_busy_task_is_stored_before_it_is_acknowledged(serving, store: TaskStore) -> None:
    async with serving(Scripted(for_ever), store) as handler:
        task = await task_of(handler, request("0", at_once=True))
        for number in range(1, 4):
            sent = await task_of(handler, request(str(number), task_id=task.id, at_once=True))
            stored = await store.load(task.id)
            assert stored is not None
            history = apply_events(stored.snapshot, [logged.event for logged in stored.later_events]).history
            assert [m.parts[0].text for m in history] == [*map(str, range(number + 1))]
            assert sent.history == history


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_message_whose_task_ends_before_its_turn_stays_in_the_history_of_the_ended_task(
    serving, store: TaskStore, at_once: bool
) -> None:
    go_on = anyio.Event()
    executed: list[str] = []
    told: list[Task] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        executed.append(context.text)
        await go_on.wait()
        await events.complete()

    async def late(handler: RequestHandler, task_id: str) -> None:
        told.append(await task_of(handler, request("late", task_id=task_id, at_once=at_once)))

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request("first", at_once=True))
        async with anyio.create_task_group() as senders:
            senders.start_soon(late, handler, task.id)
            while len((await handler.get(task.id, ME)).history) < 2:
                await anyio.lowlevel.checkpoint()
            go_on.set()
        await until_state(handler, task.id, TaskState.COMPLETED)
        ended = await handler.get(task.id, ME)
        assert executed == ["first"]
        assert [m.parts[0].text for m in ended.history] == ["first", "late"]
        assert [m.message_id for m in told[0].history] == [m.message_id for m in ended.history]
        assert [m.metadata for m in ended.history] == [None, {NOT_EXECUTED: NOT_EXECUTED_TEXT}]
        assert ended.status.message is not None
        assert ended.status.message.parts == (Part(text=NOT_EXECUTED_TEXT),)
        if not at_once:
            assert told == [ended]


async def test_a_stream_of_a_message_whose_task_ends_before_its_turn_ends_with_the_final_state(serving) -> None:
    go_on = anyio.Event()
    items: list[StreamItem] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await go_on.wait()
        await events.complete()

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request("first", at_once=True))
        async for item in handler.stream(request("late", task_id=task.id), ME):
            items.append(item)
            go_on.set()
    first, last = items
    assert isinstance(first, Task)
    assert [m.parts[0].text for m in first.history] == ["first", "late"]
    assert isinstance(last, TaskUpdate)
    assert isinstance(last.event, StatusChanged)
    assert last.event.status.state is TaskState.COMPLETED


async def test_a_question_precedes_its_answer_even_if_the_execution_that_asked_still_runs(serving) -> None:
    asked, go_on = anyio.Event(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "one":
            await events.require_input("What else?")
            asked.set()
            await go_on.wait()
        else:
            await events.complete()

    async with serving(Scripted(execute)) as handler:
        async with anyio.create_task_group() as senders:
            task = await task_of(handler, request("one", at_once=True))
            await asked.wait()
            senders.start_soon(handler.send, request("two", task_id=task.id), ME)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        done = await handler.get(task.id, ME)
        assert done.status.state is TaskState.COMPLETED
        assert [m.parts[0].text for m in done.history] == ["one", "What else?", "two"]
