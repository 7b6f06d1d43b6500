"""Cancelling tasks that other daemons work on, or that wait for one, where fronts take the calls."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.daemon.agents.errors import NotCancelable
from discreet.daemon.agents.model.types import TaskState
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.errors import TaskNotCancelable
from support.daemons import watching
from support.executors import (
    ME,
    Scripted,
    failure_of,
    for_ever,
    request,
    task_of,
    until_state,
)
from support.places import NewStore
from support.roles import FRONT, WORKER, Counting, Idle, Ordered
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


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
    class Taking(Ordered):
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
            task = await task_of(front, request("one", at_once=True))
            await until_state(front, task.id, TaskState.WORKING)
            async with watching(front, task.id) as watcher:
                await watcher.first.wait()
                assert (await front.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
        assert watcher.states[-1] is TaskState.CANCELED
