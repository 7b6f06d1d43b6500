"""Messages to tasks that other daemons work on, and their cancellation, where fronts take the calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.errors import NotCancelable
from discreet.a2a.types import TaskState
from discreet.agents import delegator, request_handler
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.live_task import TaskMemory
from discreet.agents.request_handler import Caller
from discreet.agents.stores.interface import MESSAGE, OwnerRequest
from discreet.daemon.memory import MemoryBudget
from discreet.errors import (
    DomainFailure,
    Internal,
    OperationError,
    Overloaded,
    TaskNotCancelable,
    Unavailable,
    UnsupportedOperation,
)
from support.daemons import watching
from support.executors import (
    ME,
    Scripted,
    ask_then_echo,
    failure_of,
    for_ever,
    request,
    task_of,
    text_of,
    until_state,
)
from support.places import NewStore
from support.races import texts_of
from support.roles import FRONT, WORKER, AlteredStore, Counting, Idle, ask_after, begun
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


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

    worker = Counting(ask_after(may_end, completing="two"))
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            known = await task_of(front, request("two", task_id=task.id, at_once=True))
            assert [each.parts[0].text for each in known.history] == ["one", "two"]
            assert known.status.state is TaskState.WORKING
            may_end.set()
            await until_state(front, task.id, TaskState.COMPLETED)
    assert worker.texts == ["one", "two"]


@pytest.mark.parametrize("becomes", [TaskState.COMPLETED, TaskState.INPUT_REQUIRED])
async def test_a_message_that_arrives_when_its_task_has_ended_is_refused_and_when_it_asks_executed(
    serving: Any, new_store: NewStore, becomes: TaskState
) -> None:
    class Late(AlteredStore):
        async def send_owner_request(self, request: OwnerRequest) -> bool:
            may_stop.set()
            await until_state(other, request.task_id, becomes)
            sent: bool = await self._inner.send_owner_request(request)
            return sent

    may_stop = anyio.Event()
    worker = Counting(ask_after(may_stop, completing="one" if becomes is TaskState.COMPLETED else "two"))
    async with (
        serving(Idle(), new_store(), role=FRONT) as other,
        serving(Idle(), Late(new_store()), role=FRONT) as front,
        serving(worker, new_store(), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            if becomes is TaskState.COMPLETED:
                failure = await failure_of(front.send(request("two", task_id=task.id), ME))
                assert isinstance(failure, UnsupportedOperation)
            else:
                done = await task_of(front, request("two", task_id=task.id))
                assert done.status.state is TaskState.COMPLETED
                assert worker.texts == ["one", "two"]


class OfEditor:
    """The turn of a caller with an editor, which only its own daemon has."""

    editor: Any = None

    def begin(self, task: object) -> None:
        raise AssertionError("its task is another daemon's")


async def test_a_message_behind_one_that_waits_for_its_editor_is_to_be_sent_again(
    serving: Any, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_handler, "ARRIVAL_SECONDS", 0.05)
    may_end = anyio.Event()
    worker = Counting(ask_after(may_end, completing="three"))
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            async with anyio.create_task_group() as tasks:
                prompt = Caller(ME.scope, ME.version, turn=OfEditor())
                tasks.start_soon(front.send, request("two", task_id=task.id), prompt)
                await anyio.wait_all_tasks_blocked()
                three = request("three", task_id=task.id)
                failure = await failure_of(front.send(three, ME))
                assert isinstance(failure, Unavailable)
                assert failure.retry_after_ms
                tasks.cancel_scope.cancel()
            may_end.set()
            done = await task_of(front, three)
    assert done.status.state is TaskState.COMPLETED
    assert worker.texts == ["one", "three"]


class Checking(Counting):
    """Tells when the daemon has the message `two`."""

    def __init__(self, execute: Any) -> None:
        super().__init__(execute)
        self.has_two = anyio.Event()

    def check(self, context: RequestContext) -> None:
        if context.text == "two":
            self.has_two.set()


@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_message_by_a_front_reaches_the_worker_whose_execution_has_asked_and_is_not_over(
    goes_on: bool, serving: Any, new_store: NewStore
) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        if context.text == "two":
            return await events.complete()
        await events.require_input()
        await worker.has_two.wait()
        if goes_on:
            await events.artifact("a little more")

    worker = Checking(execute)
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            asked = await task_of(front, request("one"))
            done = await task_of(front, request("two", task_id=asked.id))
    assert done.status.state is TaskState.COMPLETED
    assert text_of(done) == ["a little more"] * goes_on
    assert worker.texts == ["one", "two"]


class TooLongError(OperationError, code="TOO_LONG", http_status=413):
    """The message is too long for the task"""

    limit: int


@pytest.mark.parametrize("declared", [True, False])
async def test_the_refusal_of_the_daemon_that_works_on_the_task_reaches_the_sender_and_the_next_message_is_taken(
    declared: bool, serving: Any, new_store: NewStore
) -> None:
    class Strict(Counting):
        def check(self, context: RequestContext) -> None:
            if context.text == "two":
                raise TooLongError(limit=2) if declared else ValueError("secret")

    may_end = anyio.Event()
    worker = Strict(ask_after(may_end))
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            failure = await failure_of(front.send(request("two", task_id=task.id), ME))
            known = await task_of(front, request("three", task_id=task.id, at_once=True))
            may_end.set()
    if declared:
        assert isinstance(failure, DomainFailure)
        assert failure.details is not None
        assert (failure.code, bytes(failure.details), failure.http_status) == ("TOO_LONG", b'{"limit":2}', 413)
    else:
        assert isinstance(failure, Internal)
    assert texts_of(known) == ["one", "three"]


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x81\xa7message\xa2\xff\xfe", b"\x81\xa1a" * 100_000, b'{"message":' * 100_000],
    ids=["empty", "no MessagePack", "no text", "deep", "deep JSON"],
)
async def test_a_request_that_can_not_be_read_keeps_no_other_waiting(
    body: bytes, serving: Any, new_store: NewStore
) -> None:
    store, worker = new_store(), Counting()
    async with serving(Idle(), store, role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            tasks = [await task_of(front, request(text, at_once=True)) for text in ("one", "two")]
            assert await store.send_owner_request(OwnerRequest(tasks[0].id, MESSAGE, body))
            async with serving(worker, new_store(), role=WORKER):
                for task in tasks:
                    await until_state(front, task.id, TaskState.COMPLETED)
    assert sorted(worker.texts) == ["one", "two"]


async def test_a_message_that_is_left_twice_is_executed_once(serving: Any, new_store: NewStore) -> None:
    class Twice(AlteredStore):
        """Leaves each message again when the worker has taken it."""

        async def send_owner_request(self, request: OwnerRequest) -> bool:
            assert await self._inner.send_owner_request(request)
            await taken.wait()
            return await self._inner.send_owner_request(request)

    class Taking(AlteredStore):
        times = 0

        async def take_owner_requests(self) -> Any:
            if self.times == 2:  # those that it took before were received
                received_again.set()
            requests = await self._inner.take_owner_requests()
            if any(each.kind == MESSAGE for each in requests) and worker.texts:
                self.times += 1
                taken.set()
            return requests

    taken, received_again = anyio.Event(), anyio.Event()

    worker = Counting(ask_after(received_again))
    async with (
        serving(Idle(), Twice(new_store()), role=FRONT) as front,
        serving(worker, Taking(new_store()), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            asked = await task_of(front, request("two", task_id=task.id))
            await task_of(front, request("three", task_id=task.id))
    assert asked.status.state is TaskState.INPUT_REQUIRED
    assert worker.texts == ["one", "two", "three"]


async def test_a_message_that_was_dropped_is_not_overtaken_by_the_next_at_its_daemon(
    serving: Any, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dropping(AlteredStore):
        """Loses the first request with the word `three`, as if it had come after the task stopped."""

        lost = False

        async def take_owner_requests(self) -> Any:
            requests = await self._inner.take_owner_requests()
            if not self.lost and any(b"three" in each.body for each in requests):
                self.lost = True
                lost.set()
                return [each for each in requests if b"three" not in each.body]
            return requests

    monkeypatch.setattr(delegator, "RESEND_SECONDS", 0.05)
    lost, may_end = anyio.Event(), anyio.Event()

    worker = Counting(ask_after(may_end))
    async with (
        serving(Idle(), new_store(), role=FRONT) as front,
        serving(worker, Dropping(new_store()), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            async with anyio.create_task_group() as senders:
                senders.start_soon(task_of, front, request("three", task_id=task.id))
                await lost.wait()
                await task_of(front, request("two", task_id=task.id, at_once=True))
                may_end.set()
    assert worker.texts == ["one", "three", "two"]


async def test_messages_whose_senders_have_gone_are_limited_as_long_as_nobody_takes_them(
    serving: Any, new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def has_taken(count: int) -> bool:
        return budget.held("tasks") > count * 1_000_000

    class Deaf(AlteredStore):
        async def take_owner_requests(self) -> Any:
            return [each for each in await self._inner.take_owner_requests() if each.kind != MESSAGE]

    monkeypatch.setattr(delegator, "MAX_DELEGATIONS", 2)
    budget = MemoryBudget(64 * 1024 * 1024)
    worker = serving(Scripted(for_ever), Deaf(new_store()), role=WORKER)
    async with serving(Idle(), new_store(), role=FRONT, memory=TaskMemory(budget)) as front, worker:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            for count in (1, 2):
                async with anyio.create_task_group() as senders:
                    senders.start_soon(task_of, front, request("x" * 1_000_000, task_id=task.id))
                    await until(partial(has_taken, count))
                    senders.cancel_scope.cancel()
            assert has_taken(2)
            assert isinstance(await failure_of(front.send(request("four", task_id=task.id), ME)), Overloaded)
            await front.cancel(task.id, None, ME)
            await until(lambda: not has_taken(1))


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


async def test_a_task_in_the_queue_whose_cancellation_is_refused_is_still_done(
    serving: Any, new_store: NewStore
) -> None:
    class Refusing(Idle):
        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            raise NotCancelable

    worker = Counting()
    async with serving(Refusing(), new_store(), role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            assert isinstance(await failure_of(front.cancel(task.id, None, ME)), TaskNotCancelable)
            async with serving(worker, new_store(), role=WORKER):
                await until_state(front, task.id, TaskState.COMPLETED)
    assert worker.texts == ["one"]


@pytest.mark.parametrize("taken", [False, True])
async def test_a_task_in_the_queue_is_still_done_where_its_caller_has_cancelled_it_and_gone(
    taken: bool, serving: Any, new_store: NewStore
) -> None:
    class Taking(AlteredStore):
        async def commit(self, changes: Any) -> Any:
            if not taken and any(change.previous_owner for change in changes):
                caller.cancel()
            return await self._inner.commit(changes)

    class Slow(Idle):
        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            caller.cancel()
            await anyio.sleep_forever()

    caller, worker = anyio.CancelScope(), Counting()
    async with serving(Slow(), Taking(new_store()), role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            with caller:
                await front.cancel(task.id, None, ME)
            assert caller.cancelled_caught
            async with serving(worker, new_store(), role=WORKER):
                await until_state(front, task.id, TaskState.COMPLETED)
    assert worker.texts == ["one"]


async def test_a_task_at_a_worker_is_cancelled_by_a_front(serving: Any, new_store: NewStore) -> None:
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(for_ever), new_store(), role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            async with watching(front, task.id) as watcher:
                await watcher.first.wait()
                assert (await front.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
        assert watcher.states[-1] is TaskState.CANCELED
