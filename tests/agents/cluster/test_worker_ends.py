"""Workers that end, and stores that fail between the steps in which a worker takes a task."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from discreet.a2a.task import apply_events
from discreet.a2a.types import StatusChanged, Task, TaskState, TaskStatus
from discreet.agents import delegator
from discreet.agents.executor import ORPHANED_TEXT, RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.runtime import Role, Runtime
from discreet.agents.stores.interface import DamagedTaskError, OwnerRequest, StoredTask, StoreError
from discreet.agents.stores.sqlite.store import SqliteStore
from support.daemons import Resumer, Watching
from support.executors import (
    ME,
    Scripted,
    for_ever,
    request,
    task_of,
    until_state,
)
from support.places import NewStore
from support.races import texts_of
from support.roles import FRONT, WORKER, AlteredStore, Counting, Idle, begun
from support.sqlite_files import opened
from support.task_changes import change_to, commit_all
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("resumes", [False, True])
async def test_the_tasks_of_a_worker_that_ended_wait_for_another_one_while_fronts_watch(
    serving: Any, on_any_store: NewStore, resumes: bool
) -> None:
    new_store = on_any_store
    heir = Resumer(for_ever) if resumes else Scripted(for_ever)
    watcher, store = Watching(), new_store()

    async def is_orphan() -> bool:
        return list(await store.list_orphans()) == [task.id]

    async with serving(Idle(), store, role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                async with serving(Scripted(for_ever), new_store(), role=WORKER):
                    task = await begun(front)
                    watchers.start_soon(watcher.run, front, task.id)
                    await watcher.first.wait()
                await until(is_orphan)
                await anyio.wait_all_tasks_blocked()
                assert (await front.get(task.id, ME)).status.state is TaskState.WORKING
                async with serving(heir, new_store(), role=WORKER):
                    ended = TaskState.COMPLETED if resumes else TaskState.FAILED
                    done = await until_state(front, task.id, ended)
    assert watcher.states[-1] is ended
    if not resumes:
        assert done.status.message is not None and done.status.message.parts[0].text == ORPHANED_TEXT


async def test_a_subscriber_sees_the_end_of_a_task_that_another_daemon_has_taken_from_a_living_one(
    serving: Any, tmp_path: Path
) -> None:
    new_store = partial(SqliteStore, str(tmp_path / "tasks.db"))  # Redis knows who lives
    watcher, interrupted = Watching(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        try:
            await anyio.sleep_forever()
        finally:
            interrupted.set()

    store, other = new_store(), new_store()
    async with serving(Scripted(execute), store) as one, opened(other), anyio.create_task_group() as watchers:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await until_state(one, (await task_of(one, request("one", at_once=True))).id, TaskState.WORKING)
            watchers.start_soon(watcher.run, one, task.id)
            await watcher.first.wait()
            end = StatusChanged(TaskStatus(TaskState.COMPLETED, timestamp=task.status.timestamp))
            taken = apply_events(task, [end])
            await commit_all(other, change_to(taken, 2, [end], previous_owner=store.owner_id))
            await interrupted.wait()
    assert watcher.states == [TaskState.COMPLETED]


async def test_tasks_of_the_dead_that_can_not_be_read_keep_no_other_from_being_taken_over(
    serving: Any, new_store: NewStore
) -> None:
    class Damaged(AlteredStore):
        async def load(self, task_id: str) -> StoredTask | None:
            if task_id in unreadable:
                raise DamagedTaskError("rows are missing")
            return await self._inner.load(task_id)

    unreadable: list[str] = []
    async with serving(Idle(), new_store(), role=FRONT) as front:
        async with serving(Scripted(for_ever), new_store(), role=WORKER):
            for _ in range(3):
                task = await begun(front)
                unreadable.append(task.id)
            unreadable.pop()
        with anyio.fail_after(DEADLINE_SECONDS):
            narrow = msgspec.structs.replace(WORKER, max_runs=1)
            async with serving(Resumer(for_ever), Damaged(new_store()), role=narrow):
                await until_state(front, task.id, TaskState.COMPLETED)


async def test_a_daemon_that_is_about_to_end_takes_nothing_more(new_store: NewStore, serving: Any) -> None:
    worker = Counting()
    async with serving(Idle(), new_store(), role=FRONT) as front:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                runtime = Runtime(tasks.start_soon, new_store(), worker, None, role=WORKER)
                await runtime.handler.ready()
                await task_of(front, request("one"))
                runtime.drain(DEADLINE_SECONDS)
                task = await task_of(front, request("two", at_once=True))
                async with serving(Counting(), new_store(), role=WORKER):
                    await until_state(front, task.id, TaskState.COMPLETED)
                tasks.cancel_scope.cancel()
    assert worker.texts == ["one"]


@pytest.mark.parametrize("role", [FRONT, Role()], ids=["front", "both"])
async def test_a_daemon_at_the_end_of_its_time_answers_senders_with_the_stored_tasks(
    role: Role, new_store: NewStore, serving: Any
) -> None:
    async def send() -> None:
        told.append(await task_of(runtime.handler, request("two", task_id=task.id)))

    told: list[Task] = []
    async with serving(Scripted(for_ever), new_store(), role=WORKER) as worker:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as tasks:
                runtime = Runtime(tasks.start_soon, new_store(), Scripted(for_ever), None, role=role)
                task = await begun(await runtime.handler.ready())
                async with anyio.create_task_group() as senders:
                    senders.start_soon(send)
                    await until(lambda: has_two(worker, task.id))
                    assert not told
                    runtime.drain(0.0)
                tasks.cancel_scope.cancel()
    assert [(each.status.state, texts_of(each)) for each in told] == [(TaskState.WORKING, ["one", "two"])]


async def has_two(handler: RequestHandler, task_id: str) -> bool:
    return "two" in texts_of(await handler.get(task_id, ME))


class LosesClaims(AlteredStore):
    """The answers to its first claims are lost."""

    failures = 2

    async def claim(self, limit: int) -> Sequence[str]:
        claimed: Sequence[str] = await self._inner.claim(limit)
        if claimed and self.failures:
            self.failures -= 1
            raise StoreError("the answer was lost")
        return claimed


class ReadsLater(AlteredStore):
    """It can read no task at first."""

    failures = 2

    async def load(self, task_id: str) -> StoredTask | None:
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is slow today")
        found: StoredTask | None = await self._inner.load(task_id)
        return found


@pytest.mark.parametrize("failing", [LosesClaims, ReadsLater])
async def test_what_was_claimed_when_the_store_failed_is_executed_when_it_works_again(
    serving: Any, new_store: NewStore, failing: type[AlteredStore]
) -> None:
    worker, store = Counting(), failing(new_store())
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, store, role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            for text in ("one", "two", "three"):
                assert (await task_of(front, request(text))).status.state is TaskState.COMPLETED
    assert worker.texts == ["one", "two", "three"]


@pytest.mark.parametrize("loss", ["the answer", "the words"])
async def test_a_message_that_its_owner_could_not_take_is_sent_again(
    serving: Any, new_store: NewStore, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    class Losing(AlteredStore):
        lost = False

        async def take_owner_requests(self) -> Sequence[OwnerRequest]:
            requests = await self._inner.take_owner_requests()
            if self.lost or not requests:
                return requests
            self.lost = True
            if loss == "the answer":
                raise StoreError("what was taken is lost")
            return [OwnerRequest(each.task_id, each.kind, b"\x00" + each.body) for each in requests]

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "one":
            await may_ask.wait()
        await events.require_input()

    may_ask = anyio.Event()
    monkeypatch.setattr(delegator, "RESEND_SECONDS", 0.05)
    worker, losing = Counting(execute), Losing(new_store())
    async with serving(Idle(), new_store(), role=FRONT) as front, serving(worker, losing, role=WORKER):
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await begun(front)
            await task_of(front, request("two", task_id=task.id, at_once=True))
            assert losing.lost
            may_ask.set()
            await task_of(front, request("three", task_id=task.id))
    assert worker.texts == ["one", "two", "three"]


async def test_an_answer_without_a_task_ends_the_task_that_a_front_has_made(serving: Any, new_store: NewStore) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.reply("hello")

    worker = serving(Scripted(execute), new_store(), role=WORKER, replies_without_task=True)
    async with serving(Idle(), new_store(), role=FRONT, replies_without_task=True) as front, worker:
        with anyio.fail_after(DEADLINE_SECONDS):
            task = await task_of(front, request("one"))
    assert task.status.state is TaskState.COMPLETED
    assert task.status.message is not None and task.status.message.parts[0].text == "hello"
