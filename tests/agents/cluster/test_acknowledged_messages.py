"""What was acknowledged is executed, in order, once, and by one daemon at a time: races and losses between two commits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from discreet.a2a.types import Role, Task, TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.stores.interface import OwnerRequest, StoredTask
from support.executors import ME, Scripted, request, task_of, until_state
from support.places import NewStore
from support.roles import FRONT, WORKER, AlteredStore, Counting, Idle, begun
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


async def ask(context: RequestContext, events: TaskEvents) -> None:
    await events.working()
    await events.require_input()


def said(task: Task) -> list[str | None]:
    return [each.parts[0].text for each in task.history if each.role is Role.USER]


@pytest.mark.parametrize("by", ["the claiming daemon", "a front"])
async def test_a_message_does_not_overtake_the_first_one_while_a_daemon_claims_the_task(
    serving: Any, new_store: NewStore, by: str
) -> None:
    class Claiming(AlteredStore):
        """Has claimed a task, and is not told so before `go_on`."""

        async def claim(self, limit: int) -> Sequence[str]:
            claimed: Sequence[str] = await self._inner.claim(limit)
            if claimed:
                is_claimed.set()
                await go_on.wait()
            return claimed

    is_claimed, go_on = anyio.Event(), anyio.Event()
    both = Counting(ask)
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(both, Claiming(new_store())) as claiming:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            await is_claimed.wait()
            async with anyio.create_task_group() as senders:
                sender = claiming if by == "the claiming daemon" else front
                senders.start_soon(task_of, sender, request("two", task_id=task.id))
                await anyio.wait_all_tasks_blocked()
                go_on.set()
            await until_state(front, task.id, TaskState.INPUT_REQUIRED)
            await until(lambda: len(both.texts) == 2)
            assert said(await front.get(task.id, ME)) == ["one", "two"]
    assert both.texts == ["one", "two"]


async def test_a_message_to_a_task_in_the_queue_is_acknowledged_without_a_worker(
    serving: Any, new_store: NewStore
) -> None:
    worker = Counting(ask)
    async with serving(Idle(), new_store(), role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one", at_once=True))
            after = await task_of(front, request("two", task_id=task.id, at_once=True))
            assert (said(after), after.status.state) == (["one", "two"], TaskState.SUBMITTED)
            async with serving(worker, new_store(), role=WORKER):
                await until(lambda: len(worker.texts) == 2)
    assert worker.texts == ["one", "two"]


async def test_messages_of_several_fronts_to_one_task_are_all_executed_in_the_order_of_its_history(
    serving: Any, new_store: NewStore
) -> None:
    worker = Counting(ask)
    async with (
        serving(Idle(), new_store(), role=FRONT) as one,
        serving(Idle(), new_store(), role=FRONT) as two,
        serving(worker, new_store()) as both,
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(one, request("first"))
            async with anyio.create_task_group() as senders:
                for number in range(4):
                    for name, handler in (("one", one), ("two", two), ("both", both)):
                        text = f"{name} {number}"
                        senders.start_soon(task_of, handler, request(text, task_id=task.id, at_once=number % 2 == 0))
            await until(lambda: len(worker.texts) == 13)
            done = await until_state(one, task.id, TaskState.INPUT_REQUIRED)
    assert worker.texts == said(done)
    assert len(set(worker.texts)) == 13


async def test_a_daemon_that_has_not_heard_of_the_store_for_long_stops_what_it_runs_and_goes_on_later(
    serving: Any, new_store: NewStore
) -> None:
    class Leased(AlteredStore):
        ends = 1e12

        def lease_end(self) -> float:
            return self.ends

    calls: list[str] = []
    stopped = anyio.Event()

    class Works(Scripted):
        async def resume(self, context: RequestContext, events: TaskEvents) -> None:
            assert store.ends > 0
            calls.append(f"resume {context.text}")
            await events.require_input()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        calls.append(f"execute {context.text}")
        if context.text == "two":
            return await events.complete()
        await events.working()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    store = Leased(new_store())
    async with serving(Works(execute), store) as handler:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(handler)
            await task_of(handler, request("two", task_id=task.id, at_once=True))
            store.ends = -math.inf
            await stopped.wait()
            assert calls == ["execute one"]
            store.ends = 1e12
            await until_state(handler, task.id, TaskState.COMPLETED)
    assert calls == ["execute one", "resume one", "execute two"]


async def test_a_message_of_a_daemon_that_was_cut_off_is_not_executed_again_after_others_did(
    serving: Any, new_store: NewStore
) -> None:
    class CutOff(AlteredStore):
        """Has taken a message, and can read no task for a while."""

        taken = False

        async def take_owner_requests(self) -> Sequence[OwnerRequest]:
            requests: Sequence[OwnerRequest] = await self._inner.take_owner_requests()
            if requests:
                self.taken = True
                is_taken.set()
                await back.wait()
            return requests

        async def load(self, task_id: str) -> StoredTask | None:
            if self.taken:
                await back.wait()
            found: StoredTask | None = await self._inner.load(task_id)
            return found

    is_taken, back, may_ask = anyio.Event(), anyio.Event(), anyio.Event()
    calls: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        calls.append(context.text)
        await events.working()
        if context.text == "one":
            await may_ask.wait()
        await events.require_input()

    cut_off = CutOff(new_store())
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(Scripted(execute), cut_off, role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            async with anyio.create_task_group() as senders:
                senders.start_soon(task_of, front, request("two", task_id=task.id))
                await is_taken.wait()
                async with serving(Scripted(execute), new_store(), role=WORKER):
                    may_ask.set()  # it stops, without the message: its sender leaves that to anybody
                    await until(lambda: calls == ["one", "two"])
                    back.set()
                    await task_of(front, request("three", task_id=task.id))
            done = await until_state(front, task.id, TaskState.INPUT_REQUIRED)
    assert said(done) == ["one", "two", "three"]
    assert calls == said(done)
