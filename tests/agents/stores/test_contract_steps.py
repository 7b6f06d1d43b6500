"""Steps of executions, on every store: what is stored of one outlives its daemon, in the log and in snapshots."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from discreet.a2a.types import CallFacts, ExecutionBegun, Step, StepStored, TaskState, WaitingMessage
from discreet.agents import RequestContext, TaskEvents
from discreet.agents.live_task import TaskCache
from discreet.agents.stores.interface import TaskStore
from support.daemons import until_ended
from support.executors import ME, Scripted, request, task_of
from support.places import NewStore, Place
from support.task_changes import a_task, commit_all, to_create
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


async def test_steps_are_loaded_from_the_log_and_from_a_snapshot(store: TaskStore) -> None:
    cache, call = TaskCache(store), CallFacts()
    first, second = Step("first", b"1"), Step("second", b'"\xc3\xa9"')
    await commit_all(store, to_create(a_task("t")))
    live = await cache.pin("t", None)
    live.add_message(live.message(0), call, begun=False)
    for event in (ExecutionBegun(1), StepStored(Step("first", b"0")), StepStored(first), StepStored(second)):
        live.publish(event)
    change = replace(live.next_change(), snapshot=None, waiting=())
    at_rest = replace(
        change, expected_generation=change.generation, events=(), snapshot=live.task(), waiting=tuple(live.waiting)
    )
    for each in (change, at_rest):
        await commit_all(store, each)
        loaded = await TaskCache(store).pin("t", None)
        assert [*loaded.waiting] == [WaitingMessage(1, call, begun=True, steps=(first, second))]
        assert loaded.steps_size > 0


async def test_another_daemon_goes_on_behind_the_last_stored_step(
    serving: Any, new_place: Any, shared: NewStore
) -> None:
    place: Place = new_place()
    done: list[str] = []
    hangs = anyio.Event()

    async def work(name: str) -> str:
        done.append(name)
        if name == "c" and done.count("c") == 1:
            hangs.set()
            await anyio.sleep_forever()
        return name * 2

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.complete("".join([await events.step(name, work, name) for name in "abcd"]))

    dying = place.new_store()
    async with serving(Scripted(execute), place.new_store(), steps=True) as second:
        async with serving(Scripted(execute), dying, steps=True) as first:
            task = await task_of(first, request(at_once=True))
            with anyio.fail_after(DEADLINE_SECONDS):
                await hangs.wait()
            await place.kill(dying)
            with anyio.fail_after(2 * DEADLINE_SECONDS):
                await until_ended(second, 1)
        ended = await second.get(task.id, ME)
    assert ended.status.state is TaskState.COMPLETED
    assert ended.status.message is not None
    assert ended.status.message.parts[0].text == "aabbccdd"
    assert done == ["a", "b", "c", "c", "d"]
