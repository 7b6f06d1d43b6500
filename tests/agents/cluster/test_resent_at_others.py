"""Messages that are sent again to another daemon than before: to another front, also at the same time, and after a commit of which
nothing was heard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from discreet.a2a.types import TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.interface import CommitRefusal, StoreUnavailableError, TaskChange
from discreet.errors import InvalidParams, Unavailable
from support.daemons import Resumer
from support.executors import ME, failure_of, request, task_of, until_state
from support.places import NewStore
from support.roles import FRONT, WORKER, AlteredStore, Counting, Idle, ask_after, begun
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


async def test_fronts_that_get_one_message_at_a_time_have_it_executed_once(
    serving: Any, on_any_store: NewStore
) -> None:
    worker, ids = Counting(), set[str]()
    async with (
        serving(Idle(), on_any_store(), role=FRONT) as one,
        serving(Idle(), on_any_store(), role=FRONT) as two,
        serving(worker, on_any_store(), role=WORKER),
    ):

        async def send(front: RequestHandler) -> None:
            task = await task_of(front, request(message_id="m"))
            assert task.status.state is TaskState.COMPLETED
            ids.add(task.id)

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for front in (one, two, one, two):
                    tasks.start_soon(send, front)
    assert (worker.texts, len(ids)) == (["hi"], 1)


async def test_an_answer_that_two_fronts_get_is_executed_once_and_other_content_refused(
    serving: Any, on_any_store: NewStore
) -> None:
    may_ask = anyio.Event()
    worker = Counting(ask_after(may_ask, completing="two"))
    async with (
        serving(Idle(), on_any_store(), role=FRONT) as one,
        serving(Idle(), on_any_store(), role=FRONT) as two,
        serving(worker, on_any_store(), role=WORKER) as working,
    ):
        task = await begun(one)
        states, answer = list[TaskState](), request("two", task_id=task.id, message_id="n")

        async def send(handler: RequestHandler) -> None:
            states.append((await task_of(handler, answer)).status.state)

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for handler in (one, two, working, one):
                    tasks.start_soon(send, handler)
                await task_of(two, request("two", task_id=task.id, message_id="n", at_once=True))
                other = request("three", task_id=task.id, message_id="n")
                for handler in (one, two, working):
                    assert isinstance(await failure_of(handler.send(other, ME)), InvalidParams)
                may_ask.set()
        assert states == [TaskState.COMPLETED] * 4
        assert [each.parts[0].text for each in (await one.get(task.id, ME)).history] == ["one", "two"]
    assert worker.texts == ["one", "two"]


async def test_a_message_whose_commit_was_not_heard_of_has_begun_its_task(serving: Any, new_store: NewStore) -> None:
    class Deaf(AlteredStore):
        is_deaf = True

        async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
            done: Sequence[CommitRefusal | None] = await self._inner.commit(changes)
            if self.is_deaf:
                self.is_deaf = False
                raise StoreUnavailableError("lost")
            return done

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.complete()

    executor = Resumer(execute)
    async with serving(executor, Deaf(new_store())) as handler:
        assert isinstance(await failure_of(handler.send(request(message_id="m"), ME)), Unavailable)
        assert executor.calls == []
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(handler, request(message_id="m"))
            await until_state(handler, task.id, TaskState.COMPLETED)
    assert executor.calls == ["resume"]
