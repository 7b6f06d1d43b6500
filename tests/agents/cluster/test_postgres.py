"""Daemons on one database of PostgreSQL: each sees what the other does, and they go on after their server was away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from discreet.a2a.types import TaskState
from discreet.agents.executor import RequestContext, TaskEvents
from support.daemons import Resumer, Watching
from support.executors import ME, Scripted, for_ever, request, task_of, until_state
from support.postgres import Server, running_server
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that tests may stop."""
    with running_server() as server:
        yield server


def store_on(url: str) -> Any:  # Any: its module may not be importable
    from discreet.agents.stores.postgres.store import PostgresStore

    return PostgresStore(url)


async def test_another_daemon_watches_and_cancels_and_takes_over(serving: Any, server: Server) -> None:
    url = server.new_database()
    watcher, heir = Watching(), Resumer(for_ever)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with serving(heir, store_on(url)) as other:
            async with serving(Scripted(for_ever), store_on(url)) as one, anyio.create_task_group() as watching:
                first, second = [await task_of(one, request(at_once=True)) for _ in range(2)]
                await until_state(other, first.id, TaskState.WORKING)
                watching.start_soon(watcher.run, other, first.id)
                await watcher.first.wait()
                await other.cancel(first.id, None, ME)
                assert (await one.get(first.id, ME)).status.state is TaskState.CANCELED
            await until_state(other, second.id, TaskState.COMPLETED)
    assert watcher.states[-1] is TaskState.CANCELED


async def test_work_goes_on_over_a_restart_of_the_server(serving: Any, server: Server) -> None:
    go_on = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await events.artifact("before")
        await go_on.wait()
        await events.artifact("after")
        await events.complete()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with serving(Scripted(execute), store_on(server.new_database())) as handler:
            task = await task_of(handler, request(at_once=True))
            await until_state(handler, task.id, TaskState.WORKING)
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.to_thread.run_sync, server.restart)
                go_on.set()
            await until_state(handler, task.id, TaskState.COMPLETED)
            done = await handler.get(task.id, ME)
    assert [part.text for artifact in done.artifacts for part in artifact.parts] == ["before", "after"]
