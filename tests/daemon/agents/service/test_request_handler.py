"""What callers get from an agent, with every store and whatever its executor does."""

from __future__ import annotations

import anyio
import pytest

from discreet.daemon.agents.errors import InvalidStateTransition, MisplacedReplyError
from discreet.daemon.agents.model.types import Message, Role, TaskState
from discreet.daemon.agents.requests import StreamItem
from discreet.daemon.agents.service.request_handler import RequestHandler
from discreet.daemon.agents.stores.interface import TaskQuery, TaskStore
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.errors import (
    Failure,
    FailureError,
    InvalidAgentResponse,
    InvalidParams,
    OperationError,
    UnsupportedOperation,
)
from support.executors import AT_ONCE, ME, Scripted, ask_then_echo, echo, failure_of, request, task_of, text_of

pytestmark = pytest.mark.anyio


# -- sending ------------------------------------------------------------------------------------------------------


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


async def test_a_message_without_a_context_gets_a_new_one(serving) -> None:
    async with serving(Scripted(echo)) as handler:
        first, second = await task_of(handler, request()), await task_of(handler, request())
        assert first.context_id
        assert first.context_id != second.context_id
        assert first.id != second.id  # the same message id, and yet another message


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
        task = await task_of(handler, request(configuration=AT_ONCE))
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

    async with serving(Scripted(execute), store) as handler:
        reply = await handler.send(request("ping", context_id="talk"), ME)
        assert isinstance(reply, Message)
        assert (reply.role, reply.parts[0].text, reply.context_id, reply.task_id) == (Role.AGENT, "pong", "talk", None)
        streamed = [each async for each in handler.stream(request("ping"), ME)]
        assert [type(each) for each in streamed] == [Message]
        assert (await handler.list(TaskQuery(scope="me"))).total_size == 0


async def test_a_reply_comes_first_and_alone_or_not_at_all(serving) -> None:
    refused: list[bool] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        with pytest.raises(MisplacedReplyError):
            await events.reply("pong")
        refused.append(True)
        await events.complete()

    async with serving(Scripted(execute)) as handler:
        assert (await task_of(handler, request())).status.state is TaskState.COMPLETED
        assert refused == [True]


async def test_a_task_that_has_ended_takes_no_message(serving, store: TaskStore) -> None:
    async with serving(Scripted(echo), store) as handler:
        task = await task_of(handler, request())
        failure = await failure_of(handler.send(request("more", task_id=task.id), ME))
        assert isinstance(failure, UnsupportedOperation)
        assert (failure.task_id, failure.current_state) == (task.id, "TASK_STATE_COMPLETED")
        assert await handler.get(task.id, ME) == task


async def test_a_message_for_a_task_of_another_context_is_refused_by_name(serving) -> None:
    async with serving(Scripted(ask_then_echo)) as handler:
        asked = await task_of(handler, request())
        failure = await failure_of(handler.send(request(task_id=asked.id, context_id="another"), ME))
        assert isinstance(failure, InvalidParams)
        assert failure.param == "message.contextId"


async def test_messages_for_a_busy_task_wait_for_their_turn_and_come_in_their_order(serving) -> None:
    heard: list[str] = []
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        heard.append(context.text)
        await events.working()
        await go_on.wait()
        await events.require_input()

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request("0", configuration=AT_ONCE))
        async with anyio.create_task_group() as senders:
            for text in "123":
                senders.start_soon(handler.send, request(text, task_id=task.id), ME)
                await anyio.wait_all_tasks_blocked()
            assert heard == ["0"]
            go_on.set()
        assert heard == ["0", "1", "2", "3"]
        history = (await handler.get(task.id, ME)).history
        assert [m.parts[0].text for m in history if m.role is Role.USER] == ["0", "1", "2", "3"]


async def test_a_queued_message_is_refused_when_its_task_ends_first(serving) -> None:
    go_on = anyio.Event()
    failures: list[Failure] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await go_on.wait()
        await events.complete()

    async def late(handler: RequestHandler, task_id: str) -> None:
        failures.append(await failure_of(handler.send(request("late", task_id=task_id), ME)))

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request(configuration=AT_ONCE))
        async with anyio.create_task_group() as senders:
            senders.start_soon(late, handler, task.id)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        assert [type(failure) for failure in failures] == [UnsupportedOperation]


async def test_a_cancelled_send_leaves_the_task_alone(serving) -> None:
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await go_on.wait()
        await events.complete()

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request(configuration=AT_ONCE))
        async with anyio.create_task_group() as senders:
            senders.start_soon(handler.send, request(task_id=task.id), ME)
            await anyio.wait_all_tasks_blocked()
            senders.cancel_scope.cancel()
        go_on.set()
        with anyio.fail_after(5):
            while (await handler.get(task.id, ME)).status.state is not TaskState.COMPLETED:
                await anyio.lowlevel.checkpoint()


# -- faults of executors ------------------------------------------------------------------------------------------


class Refused(OperationError, code="REFUSED", http_status=409):
    """The agent declines"""

    because: str


@pytest.mark.parametrize("fault", [RuntimeError("secret"), SystemExit(3), Refused(because="no time")], ids=repr)
async def test_a_task_whose_executor_raises_has_failed_with_declared_facts_only(
    serving, store: TaskStore, fault: BaseException
) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        raise fault

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request())
        assert task.status.state is TaskState.FAILED
        assert task.status.message is not None
        parts = task.status.message.parts
        if isinstance(fault, Refused):
            assert parts[0].text == "The agent declines"
            assert parts[1].data["data"] == {
                "code": "REFUSED",
                "retryable": False,
                "details": {"because": "no time"},
            }
        else:
            assert [part.text for part in parts] == ["The agent has failed."]


async def test_an_executor_that_leaves_its_task_without_an_end_fails_it(serving, store: TaskStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()

    async def nothing(context: RequestContext, events: TaskEvents) -> None:
        return

    for work in (execute, nothing):
        async with serving(Scripted(work), store) as handler:
            assert (await task_of(handler, request())).status.state is TaskState.FAILED
        if store.durable:
            break  # a store is opened once


async def test_an_executor_that_goes_on_after_the_end_is_stopped_by_the_table(serving) -> None:
    refused: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.complete()
        assert events.ended
        for step in (events.working, events.fail, lambda: events.artifact("x")):
            with pytest.raises(InvalidStateTransition):
                await step()
            refused.append("once")

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request())
        assert task.status.state is TaskState.COMPLETED
        assert len(refused) == 3


async def test_what_an_agent_publishes_has_to_be_json(serving, store: TaskStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.artifact("\ud800")
        await events.complete()

    async with serving(Scripted(execute), store) as handler:
        assert isinstance(await failure_of(handler.send(request(), ME)), InvalidAgentResponse)
