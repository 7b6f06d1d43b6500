"""What a sender gets, with every store: the task or a reply, and what is stored by then."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.errors import MisplacedReplyError
from discreet.a2a.task import apply_events
from discreet.a2a.types import Message, Role, StreamItem, TaskQuery, TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.interface import TaskStore
from discreet.agents.stores.memory import MemoryStore, StoreLimits
from discreet.errors import FailureError, Overloaded, UnsupportedOperation
from support.executors import ME, Scripted, ask_then_echo, echo, failure_of, request, task_of, text_of, until_state

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
