"""What callers get from an agent, with every store and whatever its executor does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from discreet.daemon.agents.errors import InvalidStateTransition, MisplacedReplyError, NotCancelable
from discreet.daemon.agents.model.draft import apply_events
from discreet.daemon.agents.model.types import (
    Artifact,
    ArtifactChanged,
    Message,
    Part,
    Role,
    SendConfiguration,
    StatusChanged,
    Task,
    TaskState,
)
from discreet.daemon.agents.requests import Caller, SendRequest, StreamItem, TaskUpdate
from discreet.daemon.agents.service.request_handler import RequestHandler
from discreet.daemon.agents.stores.interface import TaskQuery, TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore, StoreLimits
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.errors import (
    Failure,
    FailureError,
    InvalidAgentResponse,
    InvalidParams,
    OperationError,
    Overloaded,
    TaskNotCancelable,
    TaskNotFound,
    UnsupportedOperation,
)

pytestmark = pytest.mark.anyio

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
        task = await task_of(handler, request("ping", configuration=AT_ONCE))
        with anyio.fail_after(5):
            while (await handler.get(task.id, ME)).status.state is not TaskState.COMPLETED:
                await anyio.lowlevel.checkpoint()
        message = (await handler.get(task.id, ME)).status.message
        assert message is not None
        assert message.parts[0].text == "pong"


async def test_an_agent_that_is_not_declared_to_reply_fails_its_task_when_it_does(serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.reply("pong")

    async with serving(Scripted(execute)) as handler:
        assert (await task_of(handler, request())).status.state is TaskState.FAILED


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


async def test_a_message_to_a_busy_task_is_stored_before_it_is_acknowledged(serving, store: TaskStore) -> None:
    async with serving(Scripted(for_ever), store) as handler:
        task = await task_of(handler, request("0", configuration=AT_ONCE))
        for number in range(1, 4):
            sent = await task_of(handler, request(str(number), task_id=task.id, configuration=AT_ONCE))
            stored = await store.load(task.id)
            assert stored is not None
            history = apply_events(stored.snapshot, [logged.event for logged in stored.later_events]).history
            assert [m.parts[0].text for m in history] == [*map(str, range(number + 1))]
            assert sent.history == history


@pytest.mark.parametrize("configuration", [DEFAULT, AT_ONCE], ids=["waiting", "at once"])
async def test_a_message_whose_task_ends_before_its_turn_stays_in_the_history_of_the_ended_task(
    serving, store: TaskStore, configuration: SendConfiguration
) -> None:
    go_on = anyio.Event()
    executed: list[str] = []
    told: list[Task] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        executed.append(context.text)
        await go_on.wait()
        await events.complete()

    async def late(handler: RequestHandler, task_id: str) -> None:
        told.append(await task_of(handler, request("late", task_id=task_id, configuration=configuration)))

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request("first", configuration=AT_ONCE))
        async with anyio.create_task_group() as senders:
            senders.start_soon(late, handler, task.id)
            while len((await handler.get(task.id, ME)).history) < 2:
                await anyio.lowlevel.checkpoint()
            go_on.set()
        with anyio.fail_after(5):
            while (await handler.get(task.id, ME)).status.state is not TaskState.COMPLETED:
                await anyio.lowlevel.checkpoint()
        ended = await handler.get(task.id, ME)
        assert executed == ["first"]
        assert [m.parts[0].text for m in ended.history] == ["first", "late"]
        assert told[0].history == ended.history
        if configuration is DEFAULT:
            assert told == [ended]


async def test_a_stream_of_a_message_whose_task_ends_before_its_turn_ends_with_the_final_state(serving) -> None:
    go_on = anyio.Event()
    items: list[StreamItem] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await go_on.wait()
        await events.complete()

    async with serving(Scripted(execute)) as handler:
        task = await task_of(handler, request("first", configuration=AT_ONCE))
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
            task = await task_of(handler, request("one", configuration=AT_ONCE))
            await asked.wait()
            senders.start_soon(handler.send, request("two", task_id=task.id), ME)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        done = await handler.get(task.id, ME)
        assert done.status.state is TaskState.COMPLETED
        assert [m.parts[0].text for m in done.history] == ["one", "What else?", "two"]


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


async def test_a_silent_task_is_listed_and_can_be_cancelled(serving, store: TaskStore) -> None:
    begun = anyio.Event()
    ended: list[Task] = []

    async def silent(context: RequestContext, events: TaskEvents) -> None:
        begun.set()
        await anyio.sleep_forever()

    async def wait(handler: RequestHandler) -> None:
        ended.append(await task_of(handler, request()))

    async with serving(Scripted(silent), store) as handler, anyio.create_task_group() as senders:
        senders.start_soon(wait, handler)
        await begun.wait()
        (task,) = (await handler.list(TaskQuery(scope="me"))).tasks
        assert task.status.state is TaskState.SUBMITTED
        canceled = await handler.cancel(task.id, None, ME)
        assert canceled.status.state is TaskState.CANCELED
    assert ended == [canceled]


async def test_what_the_store_refuses_is_never_executed(serving) -> None:
    executed: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        executed.append(context.text)
        await events.complete()

    async with serving(Scripted(execute), MemoryStore(StoreLimits(active_tasks=0))) as handler:
        for configuration in (DEFAULT, AT_ONCE):
            assert isinstance(await failure_of(handler.send(request(configuration=configuration), ME)), Overloaded)
    assert executed == []


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


# -- tasks --------------------------------------------------------------------------------------------------------


async def test_nobody_sees_the_tasks_of_others(serving, store: TaskStore) -> None:
    other = Caller("other", "1.0")
    async with serving(Scripted(ask_then_echo), store) as handler:
        task = await task_of(handler, request())
        for work in (
            lambda: handler.get(task.id, other),
            lambda: handler.cancel(task.id, None, other),
            lambda: handler.send(request(task_id=task.id), other),
        ):
            assert isinstance(await failure_of(work()), TaskNotFound)
        with pytest.raises(FailureError):
            async for _ in handler.subscribe(task.id, other):
                pytest.fail("another's task was shown")
        assert (await handler.list(TaskQuery(scope="other"))).total_size == 0
        assert (await handler.list(TaskQuery(scope="me"))).total_size == 1


async def test_an_unknown_task_id_is_repeated_only_if_it_could_be_one_of_ours(serving) -> None:
    async with serving(Scripted(echo)) as handler:
        known = (await task_of(handler, request())).id
        possible = known[:-1] + ("0" if known[-1] != "0" else "1")
        found = await failure_of(handler.get(possible, ME))
        assert isinstance(found, TaskNotFound)
        assert found.task_id == possible
        made_up = await failure_of(handler.get("sk-live-secret", ME))
        assert isinstance(made_up, TaskNotFound)
        assert made_up.task_id is None


async def test_cancelling_ends_the_work_and_the_task(serving, store: TaskStore) -> None:
    ended = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        try:
            await for_ever(context, events)
        finally:
            ended.set()

    async with serving(Scripted(execute), store) as handler:
        task = await task_of(handler, request(configuration=AT_ONCE))
        await anyio.wait_all_tasks_blocked()
        canceled = await handler.cancel(task.id, None, ME)
        assert canceled.status.state is TaskState.CANCELED
        with anyio.fail_after(5):
            await ended.wait()
        failure = await failure_of(handler.cancel(task.id, None, ME))
        assert isinstance(failure, TaskNotCancelable)
        assert failure.current_state == "TASK_STATE_CANCELED"
        assert await handler.get(task.id, ME) == canceled


async def test_a_waiting_sender_gets_the_canceled_task(serving) -> None:
    results: list[Task] = []

    async def send(handler: RequestHandler) -> None:
        results.append(await task_of(handler, request()))

    async with serving(Scripted(for_ever)) as handler, anyio.create_task_group() as senders:
        senders.start_soon(send, handler)
        await anyio.wait_all_tasks_blocked()
        (task,) = (await handler.list(TaskQuery(scope="me"))).tasks
        await handler.cancel(task.id, None, ME)
        with anyio.fail_after(5):
            while not results:
                await anyio.lowlevel.checkpoint()
        assert results[0].status.state is TaskState.CANCELED
        senders.cancel_scope.cancel()


async def test_an_executor_may_end_a_cancelled_task_itself_or_refuse(serving) -> None:
    async def finish(context: RequestContext, events: TaskEvents) -> None:
        await events.artifact("so far")
        await events.cancel("stopped early")

    async def keep_on(context: RequestContext, events: TaskEvents) -> None:
        raise NotCancelable

    async with serving(Scripted(for_ever, finish)) as handler:
        task = await task_of(handler, request(configuration=AT_ONCE))
        canceled = await handler.cancel(task.id, None, ME)
        assert (canceled.status.state, text_of(canceled)) == (TaskState.CANCELED, ["so far"])
    async with serving(Scripted(for_ever, keep_on)) as handler:
        task = await task_of(handler, request(configuration=AT_ONCE))
        await anyio.wait_all_tasks_blocked()
        assert isinstance(await failure_of(handler.cancel(task.id, None, ME)), TaskNotCancelable)
        assert (await handler.get(task.id, ME)).status.state is TaskState.WORKING


async def test_an_interrupted_task_is_cancelled_too(serving, store: TaskStore) -> None:
    async with serving(Scripted(ask_then_echo), store) as handler:
        asked = await task_of(handler, request())
        assert (await handler.cancel(asked.id, None, ME)).status.state is TaskState.CANCELED


# -- streams ------------------------------------------------------------------------------------------------------


def shape(streamed: StreamItem) -> str:
    if isinstance(streamed, TaskUpdate):
        event = streamed.event
        if isinstance(event, StatusChanged):
            return event.status.state.name
        return type(event).__name__
    return type(streamed).__name__


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
        task = await task_of(handler, request(configuration=AT_ONCE))
        fast: list[StreamItem] = []
        slow: list[StreamItem] = []
        pause = anyio.Event()
        with anyio.fail_after(30):
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


async def test_what_an_executors_check_returns_is_in_the_context_of_that_message_only(
    serving, store: TaskStore
) -> None:
    class Numbers(Scripted):
        def check(self, context: RequestContext) -> int:
            return int(context.text)

    seen: list[object] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.checked)
        await events.require_input()

    async def cancel(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.checked)

    async with serving(Numbers(execute, cancel), store) as handler:
        task = await handler.send(request("1"), ME)
        assert isinstance(task, Task)
        await handler.send(request("2", task_id=task.id), ME)
        await handler.cancel(task.id, None, ME)
    assert seen == [1, 2, None]
