"""Daemons on one file at once: each sees what the other does, and one takes over from the dead."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.a2a.errors import EventsLost
from discreet.a2a.task import NOT_EXECUTED, NOT_EXECUTED_TEXT
from discreet.a2a.types import Part, Task, TaskQuery, TaskState
from discreet.agents.executor import RequestContext, TaskEvents, wait_for_client
from discreet.agents.request_handler import RequestHandler
from discreet.agents.stores.checks import COVERED_EVENTS_KEPT
from discreet.agents.stores.interface import LoggedEvent, OwnerRequest
from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.agents.task_inputs import InputRequest, asked_part, inputs_of
from discreet.errors import FailureError, Internal, TaskNotCancelable, TimedOut, UnsupportedOperation
from support.daemons import Resumer, Watching, until_ended, watching
from support.executors import ME, Scripted, ask_then_echo, failure_of, for_ever, request, task_of, until_state
from support.places import NewStore
from support.roles import begun
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


async def test_a_cancel_that_the_other_daemon_does_only_later_has_timed_out_and_is_done_later(
    daemon_on, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.db"
    cancelling, go_on = anyio.Event(), anyio.Event()

    async def stop_slowly(context: RequestContext, events: TaskEvents) -> None:
        cancelling.set()
        await go_on.wait()

    impatient = daemon_on(path, Scripted(for_ever), remote_cancel_seconds=0.3)
    async with daemon_on(path, Scripted(for_ever, stop_slowly)) as one, impatient as other:
        task = await begun(one)
        with pytest.raises(FailureError) as caught:
            await other.cancel(task.id, None, ME)
        assert caught.value.failure == TimedOut()
        await cancelling.wait()
        go_on.set()
        await until_state(other, task.id, TaskState.CANCELED)


class Ordered:
    """A store on a file that does something before it sends its first request to an owner, takes such requests, or reads
    events."""

    def __init__(
        self,
        path: Path,
        *,
        before_send: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint,
        before_take: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint,
        before_read: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint,
    ) -> None:
        self._inner = SqliteStore(str(path))
        self._before_send = before_send
        self._before_take = before_take
        self._before_read = before_read
        self.sent = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def event_log(self) -> Ordered:
        return self

    async def read(self, task_id: str, *, after: int) -> Sequence[LoggedEvent]:
        await self._before_read()
        return await self._inner.read(task_id, after=after)

    async def send_owner_request(self, request: OwnerRequest) -> bool:
        if not self.sent.is_set():
            await self._before_send()
        sent = await self._inner.send_owner_request(request)
        self.sent.set()
        return sent

    async def take_owner_requests(self) -> Sequence[OwnerRequest]:
        await self._before_take()
        return await self._inner.take_owner_requests()


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("meanwhile", ["before it is asked", "before it sees that it was asked"])
async def test_a_cancel_also_ends_a_task_that_stops_before_the_other_daemon_cancels_it(
    serving, tmp_path: Path, meanwhile: str, goes_on: bool
) -> None:
    path = tmp_path / "tasks.db"
    may_ask, stopped = anyio.Event(), anyio.Event()

    async def ask_once(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        if context.text == "two":
            await anyio.sleep_forever()
        await may_ask.wait()
        await events.require_input()

    async def stop() -> None:
        if may_ask.is_set():
            return
        may_ask.set()
        await until_state(one, task.id, TaskState.INPUT_REQUIRED)
        if goes_on:
            await task_of(one, request("two", task_id=task.id, at_once=True))
        stopped.set()

    async def stop_once_asked() -> None:
        await others.sent.wait()
        await stop()

    if meanwhile == "before it is asked":
        its, others = Ordered(path), Ordered(path, before_send=stop, before_read=stopped.wait)
    else:
        its, others = Ordered(path, before_take=stop_once_asked), Ordered(path, before_read=stopped.wait)
    async with serving(Scripted(ask_once), its) as one, serving(Scripted(for_ever), others) as other:
        task = await begun(one)
        with anyio.fail_after(DEADLINE_SECONDS):
            canceled = await other.cancel(task.id, None, ME)
        assert canceled.status.state is TaskState.CANCELED
        assert await one.get(task.id, ME) == canceled


async def ask_a_client(context: RequestContext, events: TaskEvents) -> None:
    await events.working([Part(text="?"), asked_part("key", InputRequest("ask", {}))])
    while "key" not in (answers := inputs_of(events.task).answers):
        await wait_for_client(events)
    await events.complete(str(answers["key"]["it"]))


async def test_answers_that_the_other_daemon_takes_only_later_have_timed_out_and_are_taken_later(
    serving, daemon_on, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.db"
    go_on = anyio.Event()
    its = Ordered(path, before_take=go_on.wait)
    impatient = daemon_on(path, Scripted(for_ever), remote_cancel_seconds=0.3)
    async with serving(Scripted(ask_a_client), its) as one, impatient as other:
        task = await begun(one)
        await until(lambda: has_asked(one, task.id))
        await other.answer(task.id, {"unknown": {}}, ME)  # is not awaited
        with pytest.raises(FailureError) as caught:
            await other.answer(task.id, {"key": {"it": 1}}, ME)
        assert caught.value.failure == TimedOut()
        go_on.set()
        await until_state(other, task.id, TaskState.COMPLETED)


async def has_asked(handler: RequestHandler, task_id: str) -> bool:
    return bool(inputs_of(await handler.get(task_id, ME)).open)


async def test_the_first_answer_stands_wherever_it_comes(serving, on_any_store: NewStore) -> None:
    async with (
        serving(Scripted(ask_a_client), on_any_store()) as one,
        serving(Scripted(for_ever), on_any_store()) as other,
    ):
        task = await begun(one)
        await until(lambda: has_asked(other, task.id))
        await other.answer(task.id, {"key": {"it": "first"}}, ME)
        await one.answer(task.id, {"key": {"it": "second"}}, ME)
        done = await until_state(other, task.id, TaskState.COMPLETED)
        assert done.status.message is not None
        assert done.status.message.parts[0].text == "first"


async def test_another_daemon_sees_watches_and_cancels_what_one_works_on(serving, on_any_store: NewStore) -> None:
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await go_on.wait()
        await events.artifact("late")
        await anyio.sleep_forever()

    async with serving(Scripted(execute), on_any_store()) as one, serving(Scripted(for_ever), on_any_store()) as other:
        task = await begun(one)
        assert [each.id for each in (await other.list(TaskQuery(scope="me"))).tasks] == [task.id]
        async with watching(other, task.id) as watcher:
            go_on.set()
            await watcher.second.wait()
            canceled = await other.cancel(task.id, None, ME)
            assert canceled.status.state is TaskState.CANCELED
        assert watcher.states == [TaskState.CANCELED]
        assert await one.get(task.id, ME) == canceled
        assert isinstance(await failure_of(one.cancel(task.id, None, ME)), TaskNotCancelable)


async def test_a_watcher_of_an_interrupted_task_sees_what_another_daemon_does_with_it(
    daemon_on, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Scripted(ask_then_echo)) as one, daemon_on(path, Scripted(ask_then_echo)) as other:
        asked = await task_of(one, request("one"))
        async with watching(one, asked.id) as watcher:
            done = await task_of(other, request("two", task_id=asked.id))
            assert await one.get(asked.id, ME) == done
        assert watcher.states == [TaskState.WORKING, TaskState.COMPLETED]


def damage_new_events_of(path: Path, task_id: str) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        (key,) = file.execute("SELECT key FROM tasks WHERE id = ?", (task_id,)).fetchone()
        file.execute(
            f"CREATE TRIGGER damage AFTER INSERT ON events WHEN new.task_key = {key}"
            " BEGIN UPDATE events SET bodies = x'c1' WHERE row = new.row; END"
        )


async def test_a_task_whose_events_can_not_be_read_is_lost_and_the_others_are_followed(
    daemon_on, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.db"
    go_on = anyio.Event()
    failures: list[object] = []

    async def publish_later(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await go_on.wait()
        await events.artifact("late")
        await anyio.sleep_forever()

    async def fail(watcher: Watching, handler: RequestHandler, task_id: str) -> None:
        failures.append(await failure_of(watcher.run(handler, task_id)))

    async with daemon_on(path, Scripted(publish_later)) as one, daemon_on(path, Scripted(for_ever)) as other:
        bad, good = [await task_of(one, request(at_once=True)) for _ in range(2)]
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                watcher = Watching()
                watchers.start_soon(fail, watcher, other, bad.id)
                await watcher.first.wait()
                async with watching(other, good.id) as other_watcher:
                    damage_new_events_of(path, bad.id)
                    go_on.set()
                    await other_watcher.second.wait()
                    await other.cancel(good.id, None, ME)
        assert failures == [Internal()]


@pytest.mark.parametrize("resumes", [False, True])
async def test_a_caller_that_waits_for_a_killed_daemon_is_answered_by_the_one_that_takes_over(
    daemon_on, tmp_path: Path, resumes: bool
) -> None:
    path = tmp_path / "tasks.db"
    heir = Resumer(for_ever) if resumes else Scripted(for_ever)
    answers: list[object] = []

    async def follow_up(handler: RequestHandler, task_id: str) -> None:
        try:
            answers.append(await handler.send(request("two", task_id=task_id), ME))
        except FailureError as exc:
            answers.append(exc.failure)

    watcher = Watching()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with daemon_on(path, heir) as other:
            async with anyio.create_task_group() as waiting, daemon_on(path, Scripted(for_ever), killed=True) as one:
                task = await task_of(one, request(at_once=True))
                await until_state(other, task.id, TaskState.WORKING)
                waiting.start_soon(follow_up, other, task.id)
                waiting.start_soon(watcher.run, other, task.id)
                await watcher.first.wait()
            found = await other.get(task.id, ME)
    assert found.status.state is (TaskState.COMPLETED if resumes else TaskState.FAILED)
    (answer,) = answers
    if isinstance(answer, Task):  # it came before the task ended
        assert answer == found
        assert [m.parts[0].text for m in found.history] == ["hi", "two"]
        assert found.history[1].metadata == {NOT_EXECUTED: NOT_EXECUTED_TEXT}
    else:
        assert isinstance(answer, UnsupportedOperation)
    assert watcher.states[-1] is found.status.state
    if isinstance(heir, Resumer):
        assert heir.calls == ["resume"]


async def test_of_two_daemons_that_find_the_same_orphans_one_adopts_each(daemon_on, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    count = 100
    async with daemon_on(path, Scripted(for_ever), killed=True) as handler:
        for _ in range(count):
            await task_of(handler, request(at_once=True))
    heirs = [Resumer(for_ever), Resumer(for_ever)]
    ended = TaskQuery(scope="me", state=TaskState.COMPLETED, page_size=100)

    async def look_after(heir: Resumer) -> None:
        async with daemon_on(path, heir) as handler:
            await until_ended(handler, count)

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as daemons:
            for heir in heirs:
                daemons.start_soon(look_after, heir)
    async with daemon_on(path, Scripted(for_ever)) as handler:
        assert {len(task.artifacts) for task in (await handler.list(ended)).tasks} == {1}


def keep_nothing_behind(path: Path) -> None:
    """Make the store delete at once the events before a snapshot, which it keeps for a while."""
    with closing(sqlite3.connect(path)) as file:
        (trigger,) = file.execute("SELECT sql FROM sqlite_master WHERE name = 'snapshot_replaced'").fetchone()
        shorter = trigger.replace(f"AND last_generation <= new.snapshot_generation - {COVERED_EVENTS_KEPT}", "")
        assert shorter != trigger
        file.execute("DROP TRIGGER snapshot_replaced")
        file.execute(shorter)
        file.commit()


async def test_a_watcher_too_far_behind_another_daemon_is_told_the_last_generation(daemon_on, tmp_path: Path) -> None:
    rarely = 1.0  # so that a slow machine has stored a snapshot meanwhile
    path = tmp_path / "tasks.db"
    lost: list[EventsLost] = []

    async def ask_again(context: RequestContext, events: TaskEvents) -> None:
        await events.artifact(
            "x" * 100_000, artifact_id="a"
        )  # replaced each time, so that every other time is a snapshot
        await events.require_input()

    async def watch(handler: RequestHandler, task_id: str, first: anyio.Event) -> None:
        try:
            async for _ in handler.subscribe(task_id, ME):
                first.set()
        except EventsLost as exc:
            lost.append(exc)

    async with (
        daemon_on(path, Scripted(ask_again)) as one,
        daemon_on(path, Scripted(ask_again), shared_poll_seconds=rarely) as other,
    ):
        keep_nothing_behind(path)
        task = await task_of(one, request())
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                first = anyio.Event()
                watchers.start_soon(watch, other, task.id, first)
                await first.wait()
                while not lost:
                    await task_of(one, request(task_id=task.id))
        assert (await other.get(task.id, ME)).status.state is TaskState.INPUT_REQUIRED
        assert (lost[0].taskId, lost[0].lastGeneration > 1) == (task.id, True)
