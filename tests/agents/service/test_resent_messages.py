"""A message that is sent again, as clients do that have lost the answer: it gets what the first one gets, and the work is done once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.a2a.types import Message, PushConfig, StatusChanged, Task, TaskQuery, TaskState, TaskUpdate
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.live_task import TaskCache
from discreet.agents.notifier import PushNotifier
from discreet.agents.push_configs import PushConfigs
from discreet.agents.request_handler import Caller
from discreet.agents.stores.interface import TaskStore
from discreet.agents.stores.memory import MemoryStore
from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.errors import InvalidParams, OperationError
from support.executors import (
    ME,
    Scripted,
    ask_then_echo,
    echo,
    failure_of,
    request,
    shape,
    task_of,
    until_state,
)
from support.roles import Counting, begun
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

YOU = Caller("you", "1.0")


async def test_a_stream_that_is_begun_again_has_the_task_as_it_is_and_then_its_events(
    serving, store: TaskStore
) -> None:
    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working("Begun.")
        await may_end.wait()
        await events.artifact("Done.")
        await events.complete()

    executor = Counting(execute)
    async with serving(executor, store) as handler:
        stream = handler.stream(request(message_id="m"), ME)
        first = await anext(stream)
        async for item in stream:  # the connection is lost while the agent works
            if isinstance(item, TaskUpdate) and isinstance(item.event, StatusChanged):
                break
        await stream.aclose()
        again = handler.stream(request(message_id="m"), ME)
        task = await anext(again)
        assert isinstance(task, Task) and isinstance(first, Task)
        assert (task.id, task.status.state) == (first.id, TaskState.WORKING)
        may_end.set()
        assert [shape(item) async for item in again] == ["ArtifactChanged", "COMPLETED"]
        ended = [item async for item in handler.stream(request(message_id="m"), ME)]
        assert ended == [await handler.get(task.id, ME)]
    assert executor.texts == ["hi"]


async def test_an_answer_that_is_sent_again_gets_the_task_after_its_turn_and_with_other_content_an_error(
    serving, store: TaskStore
) -> None:
    executor = Counting(ask_then_echo)
    async with serving(executor, store) as handler:
        asked = await task_of(handler, request("one", message_id="m"))
        assert await task_of(handler, request("one", message_id="m")) == asked
        answer = request("two", task_id=asked.id, message_id="n")
        done = await task_of(handler, answer)
        assert await task_of(handler, answer) == done
        assert await task_of(handler, request("one", message_id="m")) == done
        assert await task_of(handler, request("one", task_id=asked.id, message_id="m")) == done
        for text, message_id in (("three", "n"), ("three", "m")):
            failure = await failure_of(handler.send(request(text, task_id=asked.id, message_id=message_id), ME))
            assert isinstance(failure, InvalidParams) and failure.param == "message.messageId"
    assert executor.texts == ["one", "two"]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_message_whose_turn_is_over_waits_at_another_daemon_until_the_next_turn_is_over(
    serving, tmp_path: Path, streams: bool
) -> None:
    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "one":
            return await events.require_input("more?")
        await events.working("on it")
        await may_end.wait()
        await events.complete("done")

    def on_file() -> TaskStore:
        return SqliteStore(str(tmp_path / "tasks.db"))

    async with serving(Counting(execute), on_file()) as first, serving(Counting(execute), on_file()) as second:
        asked = await task_of(first, request("one", message_id="m"))
        await first.send(request("two", task_id=asked.id, message_id="n", at_once=True), ME)
        await until_state(first, asked.id, TaskState.WORKING)
        got: list[Any] = []

        async def send_again() -> None:
            again = request("one", message_id="m")
            if streams:
                got.extend([item async for item in second.stream(again, ME)])
            else:
                got.append(await task_of(second, again))

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_again)
                await anyio.sleep(0.2)  # it must not be answered meanwhile
                may_end.set()
        if streams:
            assert [shape(item) for item in got if shape(item) != "WORKING"] == ["Task", "COMPLETED"]
        else:
            assert [task.status.state for task in got] == [TaskState.COMPLETED]


async def test_the_same_answer_twice_at_a_time_is_executed_once(serving, store: TaskStore) -> None:
    executor = Counting(ask_then_echo)
    async with serving(executor, store) as handler:
        asked = await task_of(handler, request("one"))
        found: list[Task] = []

        async def answer() -> None:
            found.append(await task_of(handler, request("two", task_id=asked.id, message_id="n")))

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(answer)
        assert [each.status.state for each in found] == [TaskState.COMPLETED] * 4
    assert executor.texts == ["one", "two"]


async def test_the_ids_of_messages_are_each_callers_own(serving, store: TaskStore) -> None:
    executor = Counting()
    async with serving(executor, store) as handler:
        mine = await task_of(handler, request("mine", message_id="m"))
        yours = await task_of(handler, request("yours", message_id="m"), YOU)
        assert mine.id != yours.id and mine.context_id != yours.context_id
    assert executor.texts == ["mine", "yours"]


async def test_the_context_is_a_part_of_the_content(serving, store: TaskStore) -> None:
    async with serving(Scripted(echo), store) as handler:
        new = await task_of(handler, request(message_id="m"))
        assert await task_of(handler, request(message_id="m", context_id=new.context_id)) == new
        named = await task_of(handler, request(message_id="n", context_id="c"))
        assert await task_of(handler, request(message_id="n", context_id="c")) == named
        for message_id, context_id in (("m", "c"), ("n", None), ("n", "d")):
            sent = request(message_id=message_id, context_id=context_id)
            assert isinstance(await failure_of(handler.send(sent, ME)), InvalidParams)


async def test_an_agent_that_does_not_deduplicate_begins_a_task_for_each(serving, store: TaskStore) -> None:
    executor = Counting(ask_then_echo)
    async with serving(executor, store, deduplicates_messages=False) as handler:
        one, other = [await task_of(handler, request(text, message_id="m")) for text in ("one", "other")]
        assert one.id != other.id
        done = await task_of(handler, request("two", task_id=one.id, message_id="m"))
        assert done.status.state is TaskState.COMPLETED
    assert executor.texts == ["one", "other", "two"]


class NoCredit(OperationError, code="NO_CREDIT"):
    """The caller has nothing left."""


async def test_a_message_is_not_refused_for_what_it_has_used_up_itself(serving, store: TaskStore) -> None:
    class Costly(Counting):
        def check(self, context: RequestContext) -> None:
            if self.texts:
                raise NoCredit

    executor = Costly()
    async with serving(executor, store) as handler:
        task = await task_of(handler, request(message_id="m"))
        assert await task_of(handler, request(message_id="m")) == task
        await failure_of(handler.send(request(message_id="n"), ME))
        assert (await handler.list(TaskQuery(scope="me"))).total_size == 1


async def test_a_reply_without_a_task_is_shared_while_it_is_made_and_not_kept(serving, store: TaskStore) -> None:
    may_reply, asked = anyio.Event(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        asked.set()
        await may_reply.wait()
        await events.reply("Hello.")

    executor, replies = Counting(execute), list[Task | Message]()
    async with serving(executor, store, replies_without_task=True) as handler:

        async def send() -> None:
            replies.append(await handler.send(request(message_id="m"), ME))

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(send)
                await asked.wait()
                assert isinstance(await failure_of(handler.send(request("ho", message_id="m"), ME)), InvalidParams)
                may_reply.set()
            assert [isinstance(each, Message) for each in replies] == [True] * 3
            assert executor.texts == ["hi"]
            await send()
    assert executor.texts == ["hi", "hi"]


async def test_who_does_not_wait_for_a_reply_that_is_being_made_gets_a_task(serving, store: TaskStore) -> None:
    may_reply, asked = anyio.Event(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        asked.set()
        await may_reply.wait()
        await events.reply("Hello.")

    executor, found = Counting(execute), list[Task | Message]()
    async with serving(executor, store, replies_without_task=True) as handler:

        async def send() -> None:
            found.append(await handler.send(request(message_id="m"), ME))

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                await asked.wait()
                task = await task_of(handler, request(message_id="m", at_once=True))
                may_reply.set()
        assert found == [await until_state(handler, task.id, TaskState.COMPLETED)]
    assert executor.texts == ["hi"]


async def test_an_agent_that_may_reply_looks_for_the_task_before_it_begins(serving, store: TaskStore) -> None:
    executor = Counting()
    async with serving(executor, store, replies_without_task=True) as handler:
        task = await task_of(handler, request(message_id="m"))
        assert await task_of(handler, request(message_id="m")) == task
    assert executor.texts == ["hi"]


async def test_what_waits_for_its_turn_is_not_added_again(serving, store: TaskStore) -> None:
    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await may_end.wait()
        await events.complete()

    executor = Counting(execute)
    async with serving(executor, store) as handler:
        task = await begun(handler)
        for _ in range(3):
            known = await task_of(handler, request("two", task_id=task.id, message_id="n", at_once=True))
            assert [message.parts[0].text for message in known.history] == ["one", "two"]
        may_end.set()
        await until_state(handler, task.id, TaskState.COMPLETED)
        again = await task_of(handler, request("two", task_id=task.id, message_id="n"))
        assert "notExecuted" in (again.history[1].metadata or {})
    assert executor.texts == ["one"]


async def test_a_push_config_that_comes_again_is_added_once_and_restored_where_it_was_lost() -> None:
    store = MemoryStore()
    cache = TaskCache(store)
    configs = PushConfigs(cache, PushNotifier())
    from discreet.a2a.task import new_task

    live = cache.create(new_task(request().message), "me")
    live.ensure_created()
    config = PushConfig(url="https://example.com/")
    for _ in range(3):
        await configs.ensure(live, config, "1.0")
    kept = await store.load_push_targets(live.id)
    assert [(target.config.url, target.protocol_version) for target in kept] == [(config.url, "1.0")]
    await configs.ensure(live, PushConfig(url="https://example.com/", token="t"), "1.0")
    await configs.ensure(live, PushConfig(url="https://example.com/other", id=kept[0].config.id), "1.0")
    urls: list[Any] = [target.config.url for target in await store.load_push_targets(live.id)]
    assert sorted(urls) == ["https://example.com/", "https://example.com/other"]
