"""Fronts take calls and execute nothing; workers do what they leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.daemon.agents.errors import UnknownSkill
from discreet.daemon.agents.model.types import SendConfiguration, TaskState
from discreet.daemon.agents.requests import Caller, SendRequest, TaskUpdate
from discreet.daemon.agents.service.runtime import Role, Runtime
from discreet.daemon.agents.stores.interface import MESSAGE, Changes, OwnerRequest, StoreError, TaskQuery, TaskStore
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.status_messages import ORPHANED_TEXT
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.daemon.operations.access import Identity
from discreet.errors import FailureError, UnsupportedOperation
from support.daemons import Resumer, Watching, watching
from support.executors import (
    ME,
    Scripted,
    ask_then_echo,
    echo,
    failure_of,
    for_ever,
    request,
    shape,
    task_of,
    text_of,
    until_state,
)
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

FRONT = Role(executes=False, queues=True)
WORKER = Role(queues=True)

NewStore = Callable[[], TaskStore]


class Idle:
    """The executor of a front, which is never asked to execute anything."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        raise AssertionError("a front executes nothing")

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


class Counting(Scripted):
    """Remembers the texts that it was asked to execute, in order."""

    def __init__(self, execute: Any = echo) -> None:
        super().__init__(execute)
        self.texts: list[str] = []

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.texts.append(context.text)
        await super().execute(context, events)


async def test_a_worker_executes_what_a_front_was_sent(serving: Any, new_store: NewStore) -> None:
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(echo), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            done = await task_of(front, request("one"))
        assert done.status.state is TaskState.COMPLETED
        assert text_of(done) == ["one"]
        assert await front.get(done.id, ME) == done


async def test_a_stream_at_a_front_shows_every_event_of_the_worker_once_and_in_order(
    serving: Any, new_store: NewStore
) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        for number in range(300):
            await events.artifact(str(number), artifact_id="a", append=True)
        await events.complete()

    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(execute), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            first, *updates = [each async for each in front.stream(request("go"), ME)]
        assert shape(first) == "Task"
        assert [each.generation for each in updates if isinstance(each, TaskUpdate)] == [*range(2, 304)]
        assert len(updates) == 302


async def test_who_has_seen_more_elsewhere_goes_on_at_a_replica_that_has_not_heard_of_it_yet(
    serving: Any, new_store: NewStore
) -> None:
    class Deaf(Ordered):
        async def wait_for_changes(self, poll_seconds: float) -> Changes:
            return await anyio.sleep_forever()

    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await may_end.wait()
        for number in range(5):
            await events.artifact(str(number))
        await events.complete()

    watcher = Watching()
    async with serving(Scripted(execute), new_store()) as one, serving(Idle(), Deaf(new_store()), role=FRONT) as other:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                task = await task_of(one, request("one", at_once=True))
                watchers.start_soon(watcher.run, other, task.id)
                await watcher.first.wait()
                async with watching(one, task.id) as seen:
                    await seen.first.wait()
                    may_end.set()
                last = seen.seen[-1]
                assert isinstance(last, TaskUpdate)
                rest = [each async for each in other.subscribe(task.id, ME, after=last.generation - 1)]
        assert [each.generation for each in rest if isinstance(each, TaskUpdate)] == [last.generation]
        with pytest.raises(FailureError):
            await anext(other.subscribe(task.id, ME, after=last.generation + 1))


async def test_a_message_is_acknowledged_without_a_worker_and_executed_when_one_comes(
    serving: Any, new_store: NewStore
) -> None:
    store = new_store()
    async with serving(Idle(), store, role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            assert task.status.state is TaskState.SUBMITTED
            assert await store.count_queued() == 1
            async with serving(Scripted(echo), new_store(), role=WORKER):
                await until_state(front, task.id, TaskState.COMPLETED)
            assert await store.count_queued() == 0


async def test_a_worker_takes_the_oldest_first_and_no_more_than_it_may(serving: Any, new_store: NewStore) -> None:
    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await may_end.wait()
        await events.complete()

    worker, store = Counting(execute), new_store()
    async with serving(Idle(), store, role=FRONT) as front:
        tasks = [await task_of(front, request(str(number), at_once=True)) for number in range(5)]
        role = Role(queues=True, max_runs=2)
        async with serving(worker, new_store(), role=role):
            with anyio.fail_after(DEADLINE_SECONDS):
                for task in tasks[:2]:
                    await until_state(front, task.id, TaskState.WORKING)
                assert await store.count_queued() == 3
                assert worker.texts == ["0", "1"]
                may_end.set()
                for task in tasks:
                    await until_state(front, task.id, TaskState.COMPLETED)
    assert worker.texts == ["0", "1", "2", "3", "4"]


async def test_what_one_worker_has_no_room_for_another_one_does(serving: Any, new_store: NewStore) -> None:
    role = Role(queues=True, max_runs=1)
    busy, free = Counting(for_ever), Counting(echo)
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(busy, new_store(), role=role):
        with anyio.fail_after(DEADLINE_SECONDS):
            stuck = await task_of(front, request("stuck", at_once=True))
            await until_state(front, stuck.id, TaskState.WORKING)
            async with serving(free, new_store(), role=role):
                for _ in range(3):
                    assert (await task_of(front, request("more"))).status.state is TaskState.COMPLETED
    assert (busy.texts, free.texts) == (["stuck"], ["more"] * 3)


async def test_a_worker_leaves_calls_of_its_own_to_whoever_has_room(serving: Any, new_store: NewStore) -> None:
    role = Role(queues=True, max_runs=1)
    async with serving(Scripted(for_ever), new_store(), role=role) as busy:
        with anyio.fail_after(DEADLINE_SECONDS):
            stuck = await task_of(busy, request("stuck", at_once=True))
            await until_state(busy, stuck.id, TaskState.WORKING)
            async with serving(Scripted(echo), new_store(), role=role):
                assert (await task_of(busy, request("more"))).status.state is TaskState.COMPLETED


async def test_a_daemon_of_both_roles_executes_at_once_and_takes_what_fronts_leave(
    serving: Any, new_store: NewStore
) -> None:
    both = Counting()
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(both, new_store()) as handler:
        with anyio.fail_after(DEADLINE_SECONDS):
            await task_of(handler, request("its own"))
            await task_of(front, request("left"))
    assert both.texts == ["its own", "left"]


async def test_an_executor_is_told_all_of_the_call_but_its_credentials(serving: Any, new_store: NewStore) -> None:
    told: list[RequestContext] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        told.append(context)
        await events.complete()

    caller = Caller(
        "me", "1.0", Identity("me", frozenset({"bake"})), ("https://example.org/e",), {"authorization": "Bearer x"}
    )
    sent = request("one")
    configuration = SendConfiguration(accepted_output_modes=("text/plain",))
    sent = SendRequest(sent.message, configuration, {"big": 2**70, "why": None})
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(execute), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, sent, caller)
    (context,) = told
    assert (context.task.id, context.text, context.metadata) == (task.id, "one", {"big": 2**70, "why": None})
    assert context.accepted_output_modes == ("text/plain",)
    assert (context.identity, context.extensions) == (caller.identity, caller.extensions)
    assert context.service_params == {}


async def test_a_refusal_is_told_by_the_front_and_nothing_is_stored(serving: Any, new_store: NewStore) -> None:
    class Strict(Idle):
        def check(self, context: RequestContext) -> object:
            raise UnknownSkill()

    async with serving(Strict(), new_store(), role=FRONT) as front:
        failure = await failure_of(front.send(request("bake"), ME))
        assert getattr(failure, "code", "") == "UNKNOWN_SKILL"
        assert (await front.list(TaskQuery(scope="me"))).total_size == 0


async def test_a_worker_that_refuses_what_a_front_has_accepted_fails_the_task_with_the_refusal(
    serving: Any, new_store: NewStore
) -> None:
    class Strict(Scripted):
        def check(self, context: RequestContext) -> object:
            raise UnknownSkill()

    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Strict(echo), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("bake"))
        assert task.status.state is TaskState.FAILED
        assert task.status.message is not None and task.status.message.parts[1].data["data"]["code"] == "UNKNOWN_SKILL"


# -- follow-up messages --------------------------------------------------------------------------------------------


async def test_a_task_that_asks_its_caller_goes_on_at_a_worker(serving: Any, new_store: NewStore) -> None:
    async with serving(Idle(), new_store(), role=FRONT) as one, serving(Idle(), new_store(), role=FRONT) as two:
        async with serving(Scripted(ask_then_echo), new_store(), role=WORKER):
            with anyio.fail_after(DEADLINE_SECONDS):
                asked = await task_of(one, request("one"))
                assert asked.status.state is TaskState.INPUT_REQUIRED
                done = await task_of(two, request("two", task_id=asked.id))
        assert done.status.state is TaskState.COMPLETED
        assert [each.parts[0].text for each in done.history if each.parts[0].text in ("one", "two")] == ["one", "two"]


async def test_a_message_to_a_busy_task_is_in_its_history_before_its_turn_comes(
    serving: Any, new_store: NewStore
) -> None:
    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "one":
            await may_end.wait()
            await events.require_input()
        else:
            await events.complete()

    worker = Counting(execute)
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            await until_state(front, task.id, TaskState.WORKING)
            known = await task_of(front, request("two", task_id=task.id, at_once=True))
            assert [each.parts[0].text for each in known.history] == ["one", "two"]
            assert known.status.state is TaskState.WORKING
            may_end.set()
            await until_state(front, task.id, TaskState.COMPLETED)
    assert worker.texts == ["one", "two"]


async def test_a_message_to_a_task_that_ends_before_it_arrives_is_refused(serving: Any, new_store: NewStore) -> None:
    class Late(Ordered):
        async def send_owner_request(self, request: OwnerRequest) -> bool:
            may_end.set()
            await until_state(other, request.task_id, TaskState.COMPLETED)
            return await self._inner.send_owner_request(request)

    may_end = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await may_end.wait()
        await events.complete()

    async with (
        serving(Idle(), new_store(), role=FRONT) as other,
        serving(Idle(), Late(new_store()), role=FRONT) as front,
        serving(Scripted(execute), new_store(), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(other, request("one", at_once=True))
            await until_state(front, task.id, TaskState.WORKING)
            failure = await failure_of(front.send(request("two", task_id=task.id), ME))
    assert isinstance(failure, UnsupportedOperation)


async def test_a_message_to_a_task_that_asks_before_it_arrives_is_executed_next(
    serving: Any, new_store: NewStore
) -> None:
    class Late(Ordered):
        async def send_owner_request(self, request: OwnerRequest) -> bool:
            may_ask.set()
            await until_state(other, request.task_id, TaskState.INPUT_REQUIRED)
            return await self._inner.send_owner_request(request)

    may_ask = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "two":
            return await events.complete()
        await may_ask.wait()
        await events.require_input()

    worker = Counting(execute)
    async with (
        serving(Idle(), new_store(), role=FRONT) as other,
        serving(Idle(), Late(new_store()), role=FRONT) as front,
        serving(worker, new_store(), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(other, request("one", at_once=True))
            await until_state(front, task.id, TaskState.WORKING)
            done = await task_of(front, request("two", task_id=task.id))
    assert done.status.state is TaskState.COMPLETED
    assert worker.texts == ["one", "two"]


# -- cancelling ------------------------------------------------------------------------------------------------------


async def test_a_task_in_the_queue_is_cancelled_without_a_worker(serving: Any, new_store: NewStore) -> None:
    worker = Counting()
    async with serving(Idle(), new_store(), role=FRONT) as one, serving(Idle(), new_store(), role=FRONT) as other:
        with anyio.fail_after(DEADLINE_SECONDS):
            for front in (one, other):
                task = await task_of(one, request("one", at_once=True))
                assert (await front.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
            async with serving(worker, new_store(), role=WORKER):
                await task_of(one, request("two"))
    assert worker.texts == ["two"]


async def test_a_task_at_a_worker_is_cancelled_by_a_front(serving: Any, new_store: NewStore) -> None:
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(for_ever), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            await until_state(front, task.id, TaskState.WORKING)
            async with watching(front, task.id) as watcher:
                await watcher.first.wait()
                assert (await front.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
        assert watcher.states[-1] is TaskState.CANCELED


# -- ends and faults -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumes", [False, True])
async def test_the_tasks_of_a_worker_that_ends_are_taken_over_while_fronts_watch(
    serving: Any, new_store: NewStore, resumes: bool
) -> None:
    heir = Resumer(for_ever) if resumes else Scripted(for_ever)
    watcher = Watching()
    async with serving(Idle(), new_store(), role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                async with serving(Scripted(for_ever), new_store(), role=WORKER):
                    task = await task_of(front, request("one", at_once=True))
                    await until_state(front, task.id, TaskState.WORKING)
                    watchers.start_soon(watcher.run, front, task.id)
                    await watcher.first.wait()
                async with serving(heir, new_store(), role=WORKER):
                    ended = TaskState.COMPLETED if resumes else TaskState.FAILED
                    done = await until_state(front, task.id, ended)
    assert watcher.states[-1] is ended
    if not resumes:
        assert done.status.message is not None and done.status.message.parts[0].text == ORPHANED_TEXT


async def test_fronts_leave_the_tasks_of_the_dead_to_workers(serving: Any, new_store: NewStore) -> None:
    store = new_store()
    async with serving(Idle(), store, role=FRONT) as front:
        async with serving(Scripted(for_ever), new_store(), role=WORKER):
            task = await task_of(front, request("one", at_once=True))
            await until_state(front, task.id, TaskState.WORKING)

        async def is_orphan() -> bool:
            return list(await store.list_orphans()) == [task.id]

        with anyio.fail_after(DEADLINE_SECONDS):
            await until(is_orphan)
            await anyio.wait_all_tasks_blocked()
            assert (await front.get(task.id, ME)).status.state is TaskState.WORKING
            async with serving(Resumer(for_ever), new_store(), role=WORKER):
                await until_state(front, task.id, TaskState.COMPLETED)


async def test_a_daemon_that_is_about_to_end_takes_nothing_more(new_store: NewStore, serving: Any) -> None:
    worker = Counting()
    async with serving(Idle(), new_store(), role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                runtime = Runtime(tasks.start_soon, new_store(), worker, None, role=WORKER)
                await runtime.ready()
                await task_of(front, request("one"))
                runtime.drain()
                task = await task_of(front, request("two", at_once=True))
                async with serving(Counting(), new_store(), role=WORKER):
                    await until_state(front, task.id, TaskState.COMPLETED)
                tasks.cancel_scope.cancel()
    assert worker.texts == ["one"]


class Ordered:
    """A store of which a test changes some methods."""

    def __init__(self, inner: TaskStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def test_what_was_claimed_before_the_store_failed_is_begun_when_it_works_again(
    serving: Any, new_store: NewStore
) -> None:
    class Failing(Ordered):
        failures = 2

        async def claim(self, limit: int) -> Sequence[str]:
            claimed = await self._inner.claim(limit)
            if claimed and self.failures:
                self.failures -= 1
                raise StoreError("the answer was lost")
            return claimed

    worker = Counting()
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, Failing(new_store()), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            for text in ("one", "two", "three"):
                assert (await task_of(front, request(text))).status.state is TaskState.COMPLETED
    assert worker.texts == ["one", "two", "three"]


async def test_a_task_whose_message_is_lost_does_not_hang(serving: Any, new_store: NewStore) -> None:
    class Forgetting(Ordered):
        async def take_owner_requests(self) -> Sequence[OwnerRequest]:
            requests = await self._inner.take_owner_requests()
            if any(each.kind == MESSAGE for each in requests):
                raise StoreError("what was taken is lost")
            return requests

    worker = serving(Scripted(echo), Forgetting(new_store()), role=WORKER)
    async with serving(Idle(), new_store(), role=FRONT) as front, worker:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one"))
    assert task.status.state is TaskState.FAILED


async def test_a_message_that_another_version_has_left_does_not_hang_its_task(
    serving: Any, new_store: NewStore
) -> None:
    class Newer(Ordered):
        async def take_owner_requests(self) -> Sequence[OwnerRequest]:
            requests = await self._inner.take_owner_requests()
            return [OwnerRequest(each.task_id, each.kind, b"\x00" + each.body) for each in requests]

    async with (
        serving(Idle(), new_store(), role=FRONT) as front,
        serving(Scripted(echo), Newer(new_store()), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one"))
    assert task.status.state is TaskState.FAILED


async def test_an_answer_without_a_task_ends_the_task_that_a_front_has_made(serving: Any, new_store: NewStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.reply("hello")

    worker = serving(Scripted(execute), new_store(), role=WORKER, replies_without_task=True)
    async with serving(Idle(), new_store(), role=FRONT, replies_without_task=True) as front, worker:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one"))
    assert task.status.state is TaskState.COMPLETED
    assert task.status.message is not None and task.status.message.parts[0].text == "hello"
