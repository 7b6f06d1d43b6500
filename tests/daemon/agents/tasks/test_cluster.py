"""Daemons on one file, one after the other or at once: tasks go on after an end or a kill, and every caller is answered."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest

from discreet.daemon.agents.errors import EventsLost
from discreet.daemon.agents.model.types import (
    Message,
    Part,
    Role,
    SendConfiguration,
    StatusChanged,
    Task,
    TaskState,
)
from discreet.daemon.agents.requests import Caller, SendRequest, StreamItem, TaskUpdate
from discreet.daemon.agents.service import cancellation
from discreet.daemon.agents.service.request_handler import RequestHandler
from discreet.daemon.agents.stores.interface import TaskQuery
from discreet.daemon.agents.stores.sqlite.schema import COVERED_EVENTS_KEPT
from discreet.daemon.agents.tasks import cluster
from discreet.daemon.agents.tasks.executor import RequestContext
from discreet.daemon.agents.tasks.runner import MAX_EXECUTIONS
from discreet.daemon.agents.tasks.status_messages import ORPHANED_TEXT
from discreet.daemon.agents.tasks.task_events import TaskEvents
from discreet.errors import FailureError, TaskNotCancelable, TimedOut, UnsupportedOperation
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

ME = Caller("me", "1.0")
AT_ONCE = SendConfiguration(return_immediately=True)
Execute = Callable[[RequestContext, TaskEvents], Awaitable[None]]


class Worker:
    """An executor whose work is a function; it has a `resume` only as `Resumer`."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        await self._execute(context, events)

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


class Resumer(Worker):
    """Continues where another daemon was killed, and remembers the order of its calls."""

    def __init__(self, execute: Execute) -> None:
        super().__init__(execute)
        self.take_owner_requests: list[str] = []
        self.may_end = anyio.Event()
        self.may_end.set()
        self._news = anyio.Event()

    async def are_asked(self, count: int) -> None:
        while len(self.take_owner_requests) < count:
            self._news = anyio.Event()
            await self._news.wait()

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.take_owner_requests.append("execute")
        await super().execute(context, events)

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        assert context.message is None
        self.take_owner_requests.append("resume")
        self._news.set()
        await self.may_end.wait()
        await events.artifact("resumed")
        await events.complete()


async def for_ever(context: RequestContext, events: TaskEvents) -> None:
    await events.working()
    await anyio.sleep_forever()


async def ask_then_echo(context: RequestContext, events: TaskEvents) -> None:
    if len([m for m in context.task.history if m.role is Role.USER]) == 1:
        await events.require_input("What else?")
    else:
        await events.artifact(context.text)
        await events.complete()


def request(text: str = "hi", *, task_id: str | None = None, at_once: bool = False) -> SendRequest:
    message = Message("m-1", Role.USER, (Part(text=text),), task_id=task_id)
    return SendRequest(message, AT_ONCE if at_once else SendConfiguration())


async def begun(handler: RequestHandler, sent: SendRequest) -> Task:
    task = await handler.send(sent, ME)
    assert isinstance(task, Task)
    return task


async def until_state(handler: RequestHandler, task_id: str, state: TaskState) -> Task:
    async def has_it() -> bool:
        return (await handler.get(task_id, ME)).status.state is state

    await until(has_it)
    return await handler.get(task_id, ME)


async def until_ended(handler: RequestHandler, count: int) -> None:
    async def are_there() -> bool:
        return (await handler.list(TaskQuery(scope="me", state=TaskState.COMPLETED, page_size=1))).total_size >= count

    await until(are_there)


class Watching:
    """A subscriber in the background, and what it got."""

    def __init__(self) -> None:
        self.seen: list[StreamItem] = []
        self.first = anyio.Event()
        self.second = anyio.Event()

    async def run(self, handler: RequestHandler, task_id: str) -> None:
        async for each in handler.subscribe(task_id, ME):
            (self.second if self.seen else self.first).set()
            self.seen.append(each)

    @property
    def states(self) -> list[TaskState]:
        return [
            each.event.status.state
            for each in self.seen
            if isinstance(each, TaskUpdate) and isinstance(each.event, StatusChanged)
        ]


@asynccontextmanager
async def watching(handler: RequestHandler, task_id: str) -> AsyncIterator[Watching]:
    """On exit it waits for the end of the task."""
    watcher = Watching()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.run, handler, task_id)
            await watcher.first.wait()
            yield watcher


def said_last(task: Task) -> str | None:
    assert task.status.message is not None
    return task.status.message.parts[0].text


# -- the same file again -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_a_task_that_was_worked_on_has_failed_when_the_next_daemon_runs(
    daemon_on, tmp_path: Path, killed: bool
) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Worker(for_ever), killed=killed) as handler:
        task = await begun(handler, request(at_once=True))
        await until_state(handler, task.id, TaskState.WORKING)
    async with daemon_on(path, Worker(for_ever)) as handler:
        found = await until_state(handler, task.id, TaskState.FAILED)
        assert said_last(found) == ORPHANED_TEXT
        with pytest.raises(FailureError) as caught:
            await handler.send(request(task_id=task.id), ME)
        assert isinstance(caught.value.failure, UnsupportedOperation)


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_an_executor_that_can_resume_goes_on(daemon_on, tmp_path: Path, killed: bool) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Worker(for_ever), killed=killed) as handler:
        task = await begun(handler, request(at_once=True))
        await until_state(handler, task.id, TaskState.WORKING)
    async with daemon_on(path, Resumer(for_ever)) as handler:
        found = await until_state(handler, task.id, TaskState.COMPLETED)
        assert [part.text for artifact in found.artifacts for part in artifact.parts] == ["resumed"]


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_an_interrupted_task_still_waits_and_can_be_watched_and_answered(
    daemon_on, tmp_path: Path, killed: bool
) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Worker(ask_then_echo), killed=killed) as handler:
        asked = await begun(handler, request("one"))
    async with daemon_on(path, Worker(ask_then_echo)) as handler:
        assert await handler.get(asked.id, ME) == asked
        async with watching(handler, asked.id) as watcher:
            done = await begun(handler, request("two", task_id=asked.id))
        assert watcher.seen[0] == asked
        assert watcher.states == [TaskState.WORKING, TaskState.COMPLETED]
        assert [m.parts[0].text for m in done.history] == ["one", "What else?", "two"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_more_tasks_than_may_run_at_once_are_all_resumed(daemon_on, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    count = MAX_EXECUTIONS + 10
    async with daemon_on(path, Worker(for_ever), killed=True) as first:
        for _ in range(MAX_EXECUTIONS):
            await begun(first, request(at_once=True))
        async with daemon_on(path, Worker(for_ever), killed=True) as second:
            for _ in range(count - MAX_EXECUTIONS):
                await begun(second, request(at_once=True))
    heir = Resumer(for_ever)
    heir.may_end = anyio.Event()
    async with daemon_on(path, heir) as handler:
        with anyio.fail_after(DEADLINE_SECONDS):
            await heir.are_asked(MAX_EXECUTIONS)
        await anyio.wait_all_tasks_blocked()
        heir.may_end.set()
        await until_ended(handler, count)


# -- side by side --------------------------------------------------------------------------------------------------


async def test_a_cancel_that_the_other_daemon_does_only_later_has_timed_out_and_is_done_later(
    daemon_on, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tasks.db"
    cancelling, go_on = anyio.Event(), anyio.Event()

    class Stopped(Worker):
        async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
            cancelling.set()
            await go_on.wait()

    monkeypatch.setattr(cancellation, "CANCEL_SECONDS", 0.3)
    async with daemon_on(path, Stopped(for_ever)) as one, daemon_on(path, Worker(for_ever)) as other:
        task = await begun(one, request(at_once=True))
        await until_state(other, task.id, TaskState.WORKING)
        with pytest.raises(FailureError) as caught:
            await other.cancel(task.id, None, ME)
        assert caught.value.failure == TimedOut()
        await cancelling.wait()
        go_on.set()
        await until_state(other, task.id, TaskState.CANCELED)


async def test_another_daemon_sees_watches_and_cancels_what_one_works_on(daemon_on, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await go_on.wait()
        await events.artifact("late")
        await anyio.sleep_forever()

    async with daemon_on(path, Worker(execute)) as one, daemon_on(path, Worker(for_ever)) as other:
        task = await begun(one, request(at_once=True))
        await until_state(other, task.id, TaskState.WORKING)
        assert [each.id for each in (await other.list(TaskQuery(scope="me"))).tasks] == [task.id]
        async with watching(other, task.id) as watcher:
            go_on.set()
            await watcher.second.wait()
            canceled = await other.cancel(task.id, None, ME)
            assert canceled.status.state is TaskState.CANCELED
        assert watcher.states == [TaskState.CANCELED]
        assert await one.get(task.id, ME) == canceled
        with pytest.raises(FailureError) as caught:
            await one.cancel(task.id, None, ME)
        assert isinstance(caught.value.failure, TaskNotCancelable)


async def test_a_watcher_of_an_interrupted_task_sees_what_another_daemon_does_with_it(
    daemon_on, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Worker(ask_then_echo)) as one, daemon_on(path, Worker(ask_then_echo)) as other:
        asked = await begun(one, request("one"))
        async with watching(one, asked.id) as watcher:
            done = await begun(other, request("two", task_id=asked.id))
            assert await one.get(asked.id, ME) == done
        assert watcher.states == [TaskState.WORKING, TaskState.COMPLETED]


@pytest.mark.parametrize("at_once", [False, True])
async def test_a_message_to_a_task_that_another_daemon_works_on_waits_for_its_turn(
    daemon_on, tmp_path: Path, at_once: bool
) -> None:
    path = tmp_path / "tasks.db"
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await go_on.wait()
        await events.require_input()

    answers: list[Task] = []

    async def follow_up(handler: RequestHandler, task_id: str) -> None:
        answers.append(await begun(handler, request("two", task_id=task_id, at_once=at_once)))

    async with daemon_on(path, Worker(execute)) as one, daemon_on(path, Worker(ask_then_echo)) as other:
        task = await begun(one, request("one", at_once=True))
        await until_state(other, task.id, TaskState.WORKING)
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as senders:
                senders.start_soon(follow_up, other, task.id)
                await anyio.wait_all_tasks_blocked()
                go_on.set()
        done = await until_state(one, task.id, TaskState.COMPLETED)
        assert [m.parts[0].text for m in done.history] == ["one", "two"]
    assert [m.parts[0].text for m in answers[0].history] == ["one", "two"]


@pytest.mark.parametrize("resumes", [False, True])
async def test_a_caller_that_waits_for_a_killed_daemon_is_answered_by_the_one_that_takes_over(
    daemon_on, tmp_path: Path, resumes: bool
) -> None:
    path = tmp_path / "tasks.db"
    heir = Resumer(for_ever) if resumes else Worker(for_ever)
    answers: list[object] = []

    async def follow_up(handler: RequestHandler, task_id: str) -> None:
        try:
            answers.append(await handler.send(request("two", task_id=task_id), ME))
        except FailureError as exc:
            answers.append(exc.failure)

    watcher = Watching()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with daemon_on(path, heir) as other:
            async with anyio.create_task_group() as waiting, daemon_on(path, Worker(for_ever), killed=True) as one:
                task = await begun(one, request(at_once=True))
                await until_state(other, task.id, TaskState.WORKING)
                waiting.start_soon(follow_up, other, task.id)
                waiting.start_soon(watcher.run, other, task.id)
                await watcher.first.wait()
            found = await other.get(task.id, ME)
    assert found.status.state is (TaskState.COMPLETED if resumes else TaskState.FAILED)
    if resumes:  # it came before the task ended
        assert answers == [found]
        assert [m.parts[0].text for m in found.history] == ["hi", "two"]
    else:
        assert [type(failure) for failure in answers] == [UnsupportedOperation]
    assert watcher.states[-1] is found.status.state
    if isinstance(heir, Resumer):
        assert heir.take_owner_requests == ["resume"]


async def test_of_two_daemons_that_find_the_same_orphans_one_adopts_each(daemon_on, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    count = 100
    async with daemon_on(path, Worker(for_ever), killed=True) as handler:
        for _ in range(count):
            await begun(handler, request(at_once=True))
    heirs = [Resumer(for_ever), Resumer(for_ever)]
    ended = TaskQuery(scope="me", state=TaskState.COMPLETED, page_size=100)

    async def look_after(heir: Resumer) -> None:
        async with daemon_on(path, heir) as handler:
            await until_ended(handler, count)

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as daemons:
            for heir in heirs:
                daemons.start_soon(look_after, heir)
    async with daemon_on(path, Worker(for_ever)) as handler:
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


async def test_a_watcher_too_far_behind_another_daemon_is_told_the_last_generation(
    daemon_on, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cluster, "SHARED_POLL_SECONDS", 1.0
    )  # so rarely that a slow machine has stored a snapshot meanwhile
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

    async with daemon_on(path, Worker(ask_again)) as one, daemon_on(path, Worker(ask_again)) as other:
        keep_nothing_behind(path)
        task = await begun(one, request())
        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as watchers:
                first = anyio.Event()
                watchers.start_soon(watch, other, task.id, first)
                await first.wait()
                while not lost:
                    await begun(one, request(task_id=task.id))
        assert (await other.get(task.id, ME)).status.state is TaskState.INPUT_REQUIRED
        assert (lost[0].taskId, lost[0].lastGeneration > 1) == (task.id, True)
