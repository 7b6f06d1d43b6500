"""Tasks that are cancelled, and who may see and cancel them."""

from __future__ import annotations

import anyio
import pytest

from discreet.a2a.errors import NotCancelable
from discreet.a2a.types import Task, TaskQuery, TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.interface import TaskStore
from discreet.errors import TaskNotCancelable, TaskNotFound
from support.executors import (
    ME,
    Scripted,
    echo,
    failure_of,
    for_ever,
    request,
    task_of,
    text_of,
    until_state,
)
from support.logged_events import logged_events
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


async def test_two_cancellations_at_the_same_time_both_get_the_canceled_task_and_no_fault_is_logged(serving) -> None:
    both_asked, answers = anyio.Event(), list[Task]()
    asked: list[str] = []

    async def stop(context: RequestContext, events: TaskEvents) -> None:
        asked.append(context.task.id)
        if len(asked) == 2:
            both_asked.set()
        await both_asked.wait()
        await events.cancel("stopped")

    async def cancel(handler: RequestHandler, task_id: str) -> None:
        answers.append(await handler.cancel(task_id, None, ME))

    with logged_events("debug") as logged:
        async with serving(Scripted(for_ever, stop)) as handler:
            task = await task_of(handler, request(at_once=True))
            with anyio.fail_after(DEADLINE_SECONDS):
                async with anyio.create_task_group() as callers:
                    callers.start_soon(cancel, handler, task.id)
                    callers.start_soon(cancel, handler, task.id)
        assert [answer.status.state for answer in answers] == [TaskState.CANCELED] * 2
        assert answers[0] == answers[1]
        assert "agent.failed" not in logged.names()


async def test_a_task_that_ends_while_it_is_being_cancelled_keeps_its_end_and_no_fault_is_logged(serving) -> None:
    stopping, ended = anyio.Event(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await stopping.wait()
        await events.complete()
        ended.set()

    async def stop(context: RequestContext, events: TaskEvents) -> None:
        stopping.set()
        await ended.wait()
        await events.cancel()

    with logged_events("debug") as logged:
        async with serving(Scripted(execute, stop)) as handler:
            task = await task_of(handler, request(at_once=True))
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(DEADLINE_SECONDS):
                failure = await failure_of(handler.cancel(task.id, None, ME))
        assert isinstance(failure, TaskNotCancelable)
        assert failure.current_state == TaskState.COMPLETED.value
        assert "agent.failed" not in logged.names()


async def test_an_execution_whose_task_was_cancelled_may_still_publish_and_no_fault_is_logged(serving) -> None:
    canceled, refused = anyio.Event(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await canceled.wait()
        try:
            await events.artifact("too late")
        finally:
            refused.set()

    async def stop(context: RequestContext, events: TaskEvents) -> None:
        await events.cancel()
        canceled.set()
        await refused.wait()

    async def clean_up(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        try:
            await anyio.sleep_forever()
        finally:
            await events.cancel("cleaned up")

    for executor in (Scripted(execute, stop), Scripted(clean_up)):
        with logged_events("debug") as logged:
            async with serving(executor) as handler:
                task = await task_of(handler, request(at_once=True))
                await until_state(handler, task.id, TaskState.WORKING)
                with anyio.fail_after(DEADLINE_SECONDS):
                    canceled_task = await handler.cancel(task.id, None, ME)
                    await anyio.wait_all_tasks_blocked()
                assert canceled_task.status.state is TaskState.CANCELED
            assert "agent.failed" not in logged.names()


async def test_an_executor_that_publishes_after_its_own_end_is_told_in_the_log(serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.complete()
        await events.artifact("forgotten")

    with logged_events("debug") as logged:
        async with serving(Scripted(execute)) as handler:
            assert (await task_of(handler, request())).status.state is TaskState.COMPLETED
            await anyio.wait_all_tasks_blocked()
        assert "agent.failed" in logged.names()
