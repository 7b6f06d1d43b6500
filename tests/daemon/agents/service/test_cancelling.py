"""Tasks that are cancelled, and who may see and cancel them."""

from __future__ import annotations

import anyio
import pytest

from discreet.daemon.agents.errors import NotCancelable
from discreet.daemon.agents.model.types import Task, TaskState
from discreet.daemon.agents.requests import Caller
from discreet.daemon.agents.service.request_handler import RequestHandler
from discreet.daemon.agents.stores.interface import TaskQuery, TaskStore
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.errors import FailureError, TaskNotCancelable, TaskNotFound
from support.executors import ME, Scripted, ask_then_echo, echo, failure_of, for_ever, request, task_of, text_of
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


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
        task = await task_of(handler, request(at_once=True))
        await anyio.wait_all_tasks_blocked()
        canceled = await handler.cancel(task.id, None, ME)
        assert canceled.status.state is TaskState.CANCELED
        with anyio.fail_after(DEADLINE_SECONDS):
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
        with anyio.fail_after(DEADLINE_SECONDS):
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
        task = await task_of(handler, request(at_once=True))
        canceled = await handler.cancel(task.id, None, ME)
        assert (canceled.status.state, text_of(canceled)) == (TaskState.CANCELED, ["so far"])
    async with serving(Scripted(for_ever, keep_on)) as handler:
        task = await task_of(handler, request(at_once=True))
        await anyio.wait_all_tasks_blocked()
        assert isinstance(await failure_of(handler.cancel(task.id, None, ME)), TaskNotCancelable)
        assert (await handler.get(task.id, ME)).status.state is TaskState.WORKING


async def test_an_interrupted_task_is_cancelled_too(serving, store: TaskStore) -> None:
    async with serving(Scripted(ask_then_echo), store) as handler:
        asked = await task_of(handler, request())
        assert (await handler.cancel(asked.id, None, ME)).status.state is TaskState.CANCELED
