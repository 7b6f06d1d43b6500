"""Daemons on one file, one after the other: tasks go on after an end or a kill."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from discreet.a2a.types import Task, TaskState
from discreet.agents.service.runtime import Role
from discreet.agents.tasks.executor import ORPHANED_TEXT
from discreet.agents.tasks.runner import MAX_EXECUTIONS
from discreet.errors import FailureError, UnsupportedOperation
from support.daemons import Resumer, until_ended, watching
from support.executors import ME, Scripted, ask_then_echo, for_ever, request, task_of, until_state
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


def said_last(task: Task) -> str | None:
    assert task.status.message is not None
    return task.status.message.parts[0].text


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_a_task_that_was_worked_on_has_failed_when_the_next_daemon_runs(
    daemon_on, tmp_path: Path, killed: bool
) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Scripted(for_ever), killed=killed) as handler:
        task = await task_of(handler, request(at_once=True))
        await until_state(handler, task.id, TaskState.WORKING)
    async with daemon_on(path, Scripted(for_ever)) as handler:
        found = await until_state(handler, task.id, TaskState.FAILED)
        assert said_last(found) == ORPHANED_TEXT
        with pytest.raises(FailureError) as caught:
            await handler.send(request(task_id=task.id), ME)
        assert isinstance(caught.value.failure, UnsupportedOperation)


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_an_executor_that_can_resume_goes_on(daemon_on, tmp_path: Path, killed: bool) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Scripted(for_ever), killed=killed) as handler:
        task = await task_of(handler, request(at_once=True))
        await until_state(handler, task.id, TaskState.WORKING)
    async with daemon_on(path, Resumer(for_ever)) as handler:
        found = await until_state(handler, task.id, TaskState.COMPLETED)
        assert [part.text for artifact in found.artifacts for part in artifact.parts] == ["resumed"]


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
async def test_an_interrupted_task_still_waits_and_can_be_watched_and_answered(
    daemon_on, tmp_path: Path, killed: bool
) -> None:
    path = tmp_path / "tasks.db"
    async with daemon_on(path, Scripted(ask_then_echo), killed=killed) as handler:
        asked = await task_of(handler, request("one"))
    async with daemon_on(path, Scripted(ask_then_echo)) as handler:
        assert await handler.get(asked.id, ME) == asked
        async with watching(handler, asked.id) as watcher:
            done = await task_of(handler, request("two", task_id=asked.id))
        assert watcher.seen[0] == asked
        assert watcher.states == [TaskState.WORKING, TaskState.COMPLETED]
        assert [m.parts[0].text for m in done.history] == ["one", "What else?", "two"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("max_runs", [100, MAX_EXECUTIONS])
async def test_more_tasks_than_may_run_at_once_are_all_resumed(daemon_on, tmp_path: Path, max_runs: int) -> None:
    path = tmp_path / "tasks.db"
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
