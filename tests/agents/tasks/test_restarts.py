"""Daemons on one file, one after the other: tasks go on after an end or a kill."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from discreet.agents.runtime import Role
from support.daemons import Resumer, until_ended
from support.executors import Scripted, for_ever, request, task_of
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
