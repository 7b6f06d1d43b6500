"""Executions that sleep: none waits meanwhile, the time is stored, and some daemon goes on with the task when it has come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import Task, TaskQuery, TaskState
from discreet.agents import RequestContext, TaskEvents, cluster, executor, runner, steps
from discreet.agents.request_handler import RequestHandler
from discreet.agents.runner import Alarms
from discreet.agents.runtime import Role
from discreet.agents.stores.memory import MemoryStore
from support.daemons import until_ended
from support.executors import ME, request, task_of
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

HOUR = 3600.0


class Clock:
    """The clock of agents, which only the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (executor, runner, steps):
        monkeypatch.setattr(module, "time", made)
    monkeypatch.setattr(runner, "MAX_CLOCK_WAIT_SECONDS", 0.01)
    return made


class Sleeper:
    """Takes a step, sleeps for an hour, takes another one. `log` has what it did."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.resting = 0

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        self.log.append("begins")
        try:
            await events.step(f"before {context.text}", self.log.append, f"before {context.text}")
            if context.text == "sleep":
                await events.sleep_for("an hour", HOUR)
            await events.step(f"after {context.text}", self.log.append, f"after {context.text}")
            await (events.require_input() if context.text == "sleep" else events.complete())
        finally:
            self.log.append("ends")
            self.resting += 1

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


SLEPT = ["begins", "before sleep", "ends"]
WOKEN = ["begins", "after sleep", "ends"]


async def asleep(handler: RequestHandler, **options: Any) -> Task:
    """A task that sleeps."""
    task = await task_of(handler, request("sleep", at_once=True, **options))
    await until(lambda: handler._runner.is_asleep(task.id) and not handler._runner.count)
    return task


async def state_of(handler: RequestHandler, task: Task) -> TaskState:
    return (await handler.get(task.id, ME)).status.state


async def until_it_waits(handler: RequestHandler) -> None:
    async def waits() -> bool:
        return (await handler.list(TaskQuery(scope="me", state=TaskState.INPUT_REQUIRED))).total_size == 1

    await until(waits)


async def test_an_execution_that_sleeps_has_ended_and_goes_on_behind_its_steps(serving, store, clock: Clock) -> None:
    sleeper = Sleeper()
    async with serving(sleeper, store, steps=True) as handler:
        task = await asleep(handler)
        assert sleeper.log == SLEPT
        assert await state_of(handler, task) is TaskState.SUBMITTED
        assert not handler._cache.knows(task.id)
        clock.now += HOUR - 1
        await anyio.wait_all_tasks_blocked()
        assert sleeper.log == SLEPT
        clock.now += 1
        await until_it_waits(handler)
    assert sleeper.log == SLEPT + WOKEN


async def test_its_sender_waits_over_the_sleep(serving, store, clock: Clock) -> None:
    sleeper = Sleeper()
    async with serving(sleeper, store, steps=True) as handler, anyio.create_task_group() as tasks:

        async def send() -> None:
            task = await task_of(handler, request("sleep"))
            sleeper.log.append(task.status.state.name)

        tasks.start_soon(send)
        await until(lambda: sleeper.resting)
        await anyio.wait_all_tasks_blocked()
        clock.now += HOUR
    assert sleeper.log == [*SLEPT, *WOKEN, "INPUT_REQUIRED"]


async def test_messages_to_tasks_that_sleep_take_no_room_of_others(
    serving, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_EXECUTIONS", 3)
    sleeper = Sleeper()
    async with serving(sleeper, MemoryStore(), steps=True) as handler:
        sleeping = [await asleep(handler)]
        for _ in range(3):
            await task_of(handler, request("later", task_id=sleeping[0].id, at_once=True))
        await anyio.wait_all_tasks_blocked()
        assert (handler._runner.count, handler._runner.active) == (3, 0)
        await task_of(handler, request("other"))  # there is room for it
        clock.now += HOUR
        await until(lambda: sleeper.log.count("after later") == 1)  # it completes the task


async def test_not_more_are_woken_at_a_time_than_may_be_executed(
    serving, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MAX_EXECUTIONS", 2)
    running, most = 0, 0

    class Counting(Sleeper):
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                await events.sleep_for("an hour", HOUR)
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                await events.complete()
            finally:
                running -= 1

    async with serving(Counting(), MemoryStore(), steps=True) as handler:
        tasks = [await asleep(handler) for _ in range(8)]
        clock.now += HOUR
        for task in tasks:

            async def ended(task: Task = task) -> bool:
                clock.now += runner.POSTPONED_SECONDS
                return await state_of(handler, task) is TaskState.COMPLETED

            await until(ended)
    assert most == 2


async def test_a_message_that_comes_meanwhile_is_executed_afterwards(serving, store, clock: Clock) -> None:
    sleeper = Sleeper()
    async with serving(sleeper, store, steps=True) as handler:
        task = await asleep(handler)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(task_of, handler, request("next", task_id=task.id))
            await anyio.wait_all_tasks_blocked()
            assert sleeper.log == SLEPT
            clock.now += HOUR
        assert await state_of(handler, task) is TaskState.COMPLETED
    assert sleeper.log == [*SLEPT, *WOKEN, "begins", "before next", "after next", "ends"]


@pytest.mark.parametrize("others", [0, 1])
async def test_a_task_that_sleeps_is_canceled_at_once(serving, store, clock: Clock, others: int) -> None:
    sleeper = Sleeper()
    async with serving(sleeper, store, steps=True) as handler:
        task = await asleep(handler)
        for _ in range(others):
            await task_of(handler, request("next", task_id=task.id, at_once=True))
        assert (await handler.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
        await until(lambda: not handler._runner.count)
        assert not handler._runner.is_asleep(task.id)
        clock.now += HOUR
        await anyio.wait_all_tasks_blocked()
    assert sleeper.log == SLEPT


@pytest.mark.parametrize("killed", [True, False])
async def test_another_daemon_wakes_it_where_its_own_has_ended(
    daemon_on, tmp_path: Path, clock: Clock, killed: bool
) -> None:
    sleeper, path = Sleeper(), tmp_path / "tasks.db"
    async with daemon_on(path, sleeper, killed=killed, steps=True) as first:
        task = await asleep(first)
        await task_of(first, request("next", task_id=task.id, at_once=True))
    async with daemon_on(path, sleeper, steps=True) as second:
        await until(lambda: sleeper.log == [*SLEPT, "begins", "ends"])
        assert second._runner.is_asleep(task.id)
        clock.now += HOUR
        with anyio.fail_after(DEADLINE_SECONDS):
            await until_ended(second, 1)
    assert sleeper.log == [*SLEPT, "begins", "ends", *WOKEN, "begins", "before next", "after next", "ends"]


async def test_a_daemon_beside_leaves_it_to_its_owner(
    daemon_on, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "IDLE_POLL_SECONDS", 0.01)
    monkeypatch.setattr(cluster, "OWNED_TURNS", 1)
    looks: list[str] = []
    sleeper, path = Sleeper(), tmp_path / "tasks.db"
    async with daemon_on(path, sleeper, steps=True) as one, daemon_on(path, sleeper, steps=True) as other:
        task = await asleep(one)
        list_owned = one._store.store.list_owned

        async def looked() -> Any:
            looks.append("")
            return await list_owned()

        monkeypatch.setattr(one._store.store, "list_owned", looked)
        await until(lambda: len(looks) > 3)
        assert sleeper.log == SLEPT
        assert (await other.cancel(task.id, None, ME)).status.state is TaskState.CANCELED


async def test_a_worker_leaves_a_task_that_sleeps_when_it_gets_a_message_for_it(
    daemon_on, tmp_path: Path, clock: Clock
) -> None:
    sleeper, path = Sleeper(), tmp_path / "tasks.db"
    async with daemon_on(path, sleeper, steps=True, role=Role(queues=True)) as worker:
        task = await task_of(worker, request("sleep", at_once=True))
        await until(lambda: worker._runner.is_asleep(task.id) and not worker._runner.count)
        await task_of(worker, request("next", task_id=task.id, at_once=True))
        clock.now += HOUR
        with anyio.fail_after(DEADLINE_SECONDS):
            await until_ended(worker, 1)
    assert [each for each in sleeper.log if each not in ("begins", "ends")] == [
        "before sleep",
        "after sleep",
        "before next",
        "after next",
    ]


async def test_a_moment_that_has_passed_is_no_wait_and_one_without_an_offset_an_error(serving, clock: Clock) -> None:
    moment = datetime.fromtimestamp(clock.now, UTC)

    class Quick(Sleeper):
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            for wrong in (moment.replace(tzinfo=None), 5):
                with pytest.raises(ValueError, match="with an offset"):
                    await events.sleep_until("a", wrong)  # type: ignore[arg-type]  # what this is about
            for seconds in (-1, 1e9, float("nan"), "3"):
                with pytest.raises(ValueError, match="from 0 and below"):
                    await events.sleep_for("a", seconds)  # type: ignore[arg-type]  # as above
            for content in (5, [], [5]):
                with pytest.raises(TypeError, match="content is text, or at least one Part"):
                    await events.complete(content)  # type: ignore[arg-type]  # as above
            await events.sleep_until("a", moment)
            await events.sleep_until("b", moment - timedelta(hours=1))
            await events.sleep_for("c", 0)
            await events.complete()

    async with serving(Quick(), steps=True) as handler:
        assert (await task_of(handler, request())).status.state is TaskState.COMPLETED


async def test_alarms_ring_in_their_order_once_and_hold_nothing_of_those_that_were_cleared(clock: Clock) -> None:
    rung: list[str] = []
    counted: list[int] = []
    alarms = Alarms(rung.append, counted.append)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(alarms.run)
        for number in range(100):
            alarms.set(f"t{number}", clock.now + number)
        alarms.set("t1", clock.now + 50.5)
        for number in range(52, 100):
            alarms.clear(f"t{number}")
        clock.now += 200
        await until(lambda: "t51" in rung)
        tasks.cancel_scope.cancel()
    assert rung == ["t0", *(f"t{number}" for number in range(2, 51)), "t1", "t51"]
    assert not alarms._heap
    assert (counted.count(1), counted.count(-1)) == (100, 100)
    assert "t1" not in alarms
