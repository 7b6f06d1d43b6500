"""One task for one message, on every store: a message that is sent again gets the task that it began, at whatever daemon, however often, for
as long as the task is kept."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet.a2a.task import check_same_content
from discreet.a2a.types import Message, Part, Role, TaskQuery, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import CommitConflict, TaskStore
from discreet.agents.stores.memory import MemoryStore, StoreLimits
from discreet.errors import FailureError, InvalidParams
from support.executors import ME, failure_of, request, task_of
from support.places import NewStore
from support.roles import Counting, begun
from support.task_changes import a_task, to_create
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

ROUNDS = 8
OTHER_CONTENT = InvalidParams(
    "message.messageId", "a new id, or the content of the message that has this one", "other content"
)


async def test_of_two_daemons_that_make_one_task_at_a_time_one_does_and_other_tasks_of_both_are_made(
    pair: tuple[TaskStore, TaskStore],
) -> None:
    for number in range(ROUNDS):
        results: dict[str, Any] = {}

        async def create(store: TaskStore, name: str, number: int = number, results: Any = results) -> None:
            both = [to_create(a_task(f"t{number}"), owner=store.owner_id), to_create(a_task(f"{name}{number}"))]
            results[name], results[f"other {name}"] = await store.commit(both)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(create, pair[0], "a")
            tasks.start_soon(create, pair[1], "b")
        assert (results["other a"], results["other b"]) == (None, None)
        loser, winner = ("a", pair[1]) if results["b"] is None else ("b", pair[0])
        assert results.pop(loser) == CommitConflict(1, winner.owner_id)
        assert list(results.values()) == [None] * 3


async def test_a_message_that_is_sent_again_gets_its_task_and_with_other_content_an_error(
    serving: Any, store: TaskStore
) -> None:
    executor = Counting()
    async with serving(executor, store) as handler:
        first = await task_of(handler, request("hi", message_id="m"))
        assert await task_of(handler, request("hi", message_id="m")) == first
        assert await failure_of(handler.send(request("ho", message_id="m"), ME)) == OTHER_CONTENT
        assert (await handler.list(TaskQuery(scope="me"))).total_size == 1
    assert executor.texts == ["hi"]


async def test_two_daemons_that_get_one_message_at_a_time_execute_it_once(serving: Any, shared: NewStore) -> None:
    executor, found = Counting(), dict[str, set[str]]()
    async with serving(executor, shared()) as one, serving(executor, shared()) as other:

        async def send(handler: Any, name: str) -> None:
            task = await task_of(handler, request(name, message_id=name))
            assert task.status.state is TaskState.COMPLETED
            found.setdefault(name, set()).add(task.id)

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for name in "abcdef":
                    for handler in (one, other, one):
                        tasks.start_soon(send, handler, name)
        assert (await one.list(TaskQuery(scope="me"))).total_size == len(found) == 6
    assert sorted(executor.texts) == [*"abcdef"]
    assert {len(ids) for ids in found.values()} == {1}


async def test_a_daemon_that_was_started_again_knows_the_messages_of_the_one_before(
    serving: Any, shared: NewStore
) -> None:
    executor = Counting()
    async with serving(executor, shared()) as handler:
        first = await task_of(handler, request("hi", message_id="m"))
    async with serving(executor, shared()) as handler:
        assert await task_of(handler, request("hi", message_id="m")) == first
        assert await failure_of(handler.send(request("ho", message_id="m"), ME)) == OTHER_CONTENT
    assert executor.texts == ["hi"]


async def test_a_message_whose_task_is_not_kept_any_more_begins_another(serving: Any, new_store: Any) -> None:
    executor, retention = Counting(), Retention(1)
    in_memory = new_store is MemoryStore
    store = MemoryStore(StoreLimits(retention=retention)) if in_memory else new_store(retention=retention)
    async with serving(executor, store) as handler:
        await task_of(handler, request("hi", message_id="m"))
        await task_of(handler, request("later"))
        while not in_memory and await store.delete_expired_tasks():
            pass
        again = await task_of(handler, request("ho", message_id="m"))
        assert [message.parts[0].text for message in again.history] == ["ho"]
        assert [each.generation for each in await store.event_log.read(again.id, after=1)] == [2, 3, 4]
    assert executor.texts == ["hi", "later", "ho"]


async def test_a_message_that_is_being_executed_is_awaited_by_all_that_send_it(serving: Any, store: TaskStore) -> None:
    may_end = anyio.Event()

    async def execute(context: Any, events: Any) -> None:
        await events.working()
        await may_end.wait()
        await events.complete()

    executor, states = Counting(execute), list[TaskState]()
    async with serving(executor, store) as handler:
        task = await begun(handler, "first")

        async def send() -> None:
            message = task.history[0]
            sent = request("first", message_id=message.message_id)
            states.append((await task_of(handler, sent)).status.state)

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(send)
                at_once = request("first", message_id=task.history[0].message_id, at_once=True)
                assert (await task_of(handler, at_once)).status.state is TaskState.WORKING
                may_end.set()
        assert states == [TaskState.COMPLETED] * 3
    assert executor.texts == ["first"]


@pytest.mark.parametrize(
    ("sent", "is_same"),
    [
        (Message("m", Role.USER, (Part(data={"b": 1, "a": [1.5]}),), metadata={}), True),
        (Message("m", Role.USER, (Part(data={"a": [1.5], "b": 1}),), metadata={"notExecuted": "Why."}), True),
        (Message("m", Role.USER, (Part(data={"a": [1.5], "b": True}),)), False),
        (Message("m", Role.USER, (Part(data={"a": [1.5], "b": 1.0}),)), False),
        (Message("m", Role.USER, (Part(data={"a": [1.5], "b": 1}),), metadata={"x": 1}), False),
        (Message("m", Role.USER, (Part(data={"a": [1.5], "b": 1}),), "c"), False),
    ],
)
def test_content_is_the_same_where_its_json_is(sent: Message, is_same: bool) -> None:
    stored = Message("m", Role.USER, (Part(data={"a": [1.5], "b": 1}),))
    if is_same:
        return check_same_content(stored, sent)
    with pytest.raises(FailureError):
        check_same_content(stored, sent)
