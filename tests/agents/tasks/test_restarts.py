"""Daemons that end: executions at a shutdown, and tasks that go on at the next daemon after an end or a kill."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest

from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.agents.runtime import Role
from discreet.agents.stores.interface import PushTarget
from discreet.agents.stores.sqlite.store import SqliteStore
from discreet.testing import in_memory
from support.daemons import Resumer, until_ended
from support.executors import ME, Scripted, for_ever, request, task_of
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_more_tasks_than_may_run_at_once_are_all_resumed(daemon_on, tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    max_runs = 100
    count = max_runs + 10
    async with daemon_on(path, Scripted(for_ever), killed=True) as first:
        async with anyio.create_task_group() as senders:  # together, so that few commits are made
            for _ in range(max_runs):
                senders.start_soon(task_of, first, request(at_once=True))
        async with daemon_on(path, Scripted(for_ever), killed=True) as second:
            for _ in range(count - max_runs):
                await task_of(second, request(at_once=True))
    heir = Resumer(for_ever)
    heir.may_end = anyio.Event()
    async with daemon_on(path, heir, role=Role(max_runs=max_runs)) as handler:
        with anyio.fail_after(DEADLINE_SECONDS):
            await heir.are_asked(max_runs)
        await anyio.wait_all_tasks_blocked()
        heir.may_end.set()
        await until_ended(handler, count)


AT_ONCE = {
    "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
    "configuration": {"returnImmediately": True},
}


async def test_an_execution_that_nobody_waits_for_has_the_drain_window_to_finish(tmp_path: Path) -> None:
    ending, ended = anyio.Event(), anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await ending.wait()
        await anyio.lowlevel.checkpoint()
        await events.complete()
        ended.set()

    slow = Agent(Scripted(execute), name="slow", description="Takes its time.")
    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with in_memory(slow, store=store) as peer:
        task = (await peer.call("SendMessage", AT_ONCE))["task"]
        assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
        ending.set()
    assert ended.is_set()
    async with in_memory(slow, store=store) as peer:
        kept = await peer.call("GetTask", {"id": task["id"]})
        assert kept["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_one_that_does_not_end_is_cancelled_when_the_window_closes() -> None:
    cancelled = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    agent = Agent(Scripted(execute), name="endless", description="Never ends.")
    with anyio.fail_after(DEADLINE_SECONDS):
        async with in_memory(agent, drain_timeout=0.1) as peer:
            await peer.call("SendMessage", AT_ONCE)
    assert cancelled.is_set()


WHO: ContextVar[str] = ContextVar("who", default="no caller")


async def test_what_another_daemon_has_begun_does_not_go_on_with_the_variables_of_the_next_caller(
    daemon_on, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Heir(Resumer):
        async def resume(self, context: RequestContext, events: TaskEvents) -> None:
            seen.append(WHO.get())
            await events.require_input()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        seen.append(WHO.get())
        await events.complete()

    async def load_late(store: SqliteStore, task_id: str) -> Sequence[PushTarget]:
        taken_over.set()  # by a daemon that has the task in memory, and has not gone on with it
        await was_sent.wait()
        return await load(store, task_id)

    load, taken_over, was_sent = SqliteStore.load_push_targets, anyio.Event(), anyio.Event()
    seen: list[str] = []
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Heir(execute)) as handler:
        async with daemon_on(path, Scripted(for_ever), killed=True) as first:
            task = await task_of(first, request(at_once=True))
            stream = handler.subscribe(task.id, ME)
            await anext(stream)
            monkeypatch.setattr(SqliteStore, "load_push_targets", load_late)
        WHO.set("the caller")
        await task_of(handler, request())  # its task in the pool is idle afterwards
        with anyio.fail_after(DEADLINE_SECONDS):
            await taken_over.wait()
            await task_of(handler, request(task_id=task.id))
        was_sent.set()
        await stream.aclose()
    assert seen == ["the caller", "no caller", "the caller"]
