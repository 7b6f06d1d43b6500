"""What a sender gets, with every store: the task or a reply, what is stored by then, and the turns of messages for a task that is worked on."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.errors import MisplacedReplyError
from discreet.a2a.task import NOT_EXECUTED, NOT_EXECUTED_TEXT, apply_events
from discreet.a2a.types import Message, Part, Role, StatusChanged, StreamItem, Task, TaskQuery, TaskState, TaskUpdate
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.interface import TaskStore
from discreet.agents.stores.memory import MemoryStore, StoreLimits
from discreet.errors import FailureError, Overloaded, UnsupportedOperation
from support.executors import (
    ME,
    Scripted,
    ask_then_echo,
    echo,
    failure_of,
    for_ever,
    request,
    task_of,
    text_of,
    until_state,
)

pytestmark = pytest.mark.anyio


async def test_a_send_waits_until_the_task_has_ended_and_returns_all_of_it(serving, store: TaskStore) -> None:
    async with serving(Scripted(echo), store) as handler:
        task = await task_of(handler, request("hello", context_id="talk"))
        assert task.status.state is TaskState.COMPLETED
        assert task.status.message is not None
        assert task.status.message.task_id == task.id
        assert text_of(task) == ["hello"]
        assert task.context_id == "talk"
        assert [(m.role, m.parts[0].text, m.task_id, m.context_id) for m in task.history] == [
            (Role.USER, "hello", task.id, "talk")
        ]
        assert await handler.get(task.id, ME) == task


async def test_a_send_returns_when_the_task_waits_for_its_caller_and_goes_on_with_the_next(
    serving, store: TaskStore
) -> None:
    async with serving(Scripted(ask_then_echo), store) as handler:
        asked = await task_of(handler, request("one"))
        assert asked.status.state is TaskState.INPUT_REQUIRED
        done = await task_of(handler, request("two", task_id=asked.id))
        assert done.status.state is TaskState.COMPLETED
        assert (done.id, done.context_id) == (asked.id, asked.context_id)
        assert [m.parts[0].text for m in done.history] == ["one", "What else?", "two"]
        assert {m.context_id for m in done.history} == {asked.context_id}


async def test_return_immediately_returns_the_task_before_it_has_ended(serving, store: TaskStore) -> None:
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await go_on.wait()
        await events.complete()

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request(at_once=True))
        assert task.status.state is TaskState.SUBMITTED
        assert (await handler.get(task.id, ME)).status.state is TaskState.SUBMITTED
        go_on.set()
        assert [type(each) for each in await everything(handler, task.id)][-1:] != [Message]
        assert (await handler.get(task.id, ME)).status.state is TaskState.COMPLETED


async def everything(handler: RequestHandler, task_id: str) -> list[StreamItem]:
    try:
        return [each async for each in handler.subscribe(task_id, ME)]
    except FailureError as exc:  # it had ended before
        assert isinstance(exc.failure, UnsupportedOperation)
        return []


async def test_an_agent_may_reply_without_a_task(serving, store: TaskStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.reply("pong")

    async with serving(Scripted(execute), store, replies_without_task=True) as handler:
        reply = await handler.send(request("ping", context_id="talk"), ME)
        assert isinstance(reply, Message)
        assert (reply.role, reply.parts[0].text, reply.context_id, reply.task_id) == (Role.AGENT, "pong", "talk", None)
        streamed = [each async for each in handler.stream(request("ping"), ME)]
        assert [type(each) for each in streamed] == [Message]
        assert (await handler.list(TaskQuery(scope="me"))).total_size == 0


async def test_a_reply_to_a_sender_that_does_not_wait_completes_its_task(serving, store: TaskStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.reply("pong")

    async with serving(Scripted(execute), store, replies_without_task=True) as handler:
        task = await task_of(handler, request("ping", at_once=True))
        await until_state(handler, task.id, TaskState.COMPLETED)
        message = (await handler.get(task.id, ME)).status.message
        assert message is not None
        assert message.parts[0].text == "pong"


@pytest.mark.parametrize("declared", [False, True])
async def test_a_reply_comes_first_and_alone_or_not_at_all(serving, declared: bool) -> None:
    refused: list[bool] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        with pytest.raises(MisplacedReplyError):
            await events.reply("pong")
        refused.append(True)
        await events.complete()

    async with serving(Scripted(execute), replies_without_task=declared) as handler:
        assert (await task_of(handler, request())).status.state is TaskState.COMPLETED
        assert refused == [True]


async def test_a_task_and_its_message_are_in_the_store_before_the_executor_begins(serving, store: TaskStore) -> None:
    found: list[tuple[int, bool]] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        stored = await store.load(context.task.id)
        assert stored is not None
        task = apply_events(stored.snapshot, [logged.event for logged in stored.later_events])
        found.append((len(task.history), task == context.task))
        await ask_then_echo(context, events)

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request("one"))
        assert found == [(1, True)]
        await task_of(handler, request("two", task_id=task.id))
        assert found == [(1, True), (3, True)]


async def test_what_the_store_refuses_is_never_executed(serving) -> None:
    executed: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        executed.append(context.text)
        await events.complete()

    async with serving(Scripted(execute), MemoryStore(StoreLimits(active_tasks=0))) as handler:
        for at_once in (False, True):
            assert isinstance(await failure_of(handler.send(request(at_once=at_once), ME)), Overloaded)
    assert executed == []


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
