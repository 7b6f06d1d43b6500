"""Steps of executions: what they return, what is stored of them, and that none that is stored runs again."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import msgspec
import pytest

from discreet.a2a.task import new_task, size_of_step
from discreet.a2a.types import CallFacts, Step, StepStored, StreamItem, Task, TaskState, TaskUpdate, WaitingMessage
from discreet.agents import Agent, RequestContext, Retry, StepError, TaskEvents
from discreet.agents.live_task import LiveTask
from discreet.agents.skills import AgentAndOperations, SkillExecutor
from discreet.agents.steps import MAX_STEP_BYTES, MAX_STEPS_BYTES, StepLog, StepThreads
from discreet.agents.stores.interface import CommitConflict, CommitRefusal, StoreUnavailableError, TaskChange
from discreet.agents.stores.memory import MemoryStore
from discreet.daemon.operations.service import DeclarationError
from discreet.testing import in_memory
from support.daemons import until_ended
from support.executors import ME, Execute, Scripted, request, task_of, until_state
from support.roles import AlteredStore
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


class Receipt(msgspec.Struct, frozen=True):
    number: int
    paid: datetime


async def pay(number: int) -> Receipt:
    return Receipt(number, datetime(2026, 1, 1, tzinfo=UTC))


def count_to(number: int) -> tuple[int, ...]:
    return tuple(range(number))


def untyped(*args: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201 - what this is about
    return {"args": args}


async def outcome_of(serving, execute: Execute, **options: Any) -> Task:
    async with serving(Scripted(execute), MemoryStore(), steps=True, **options) as handler:
        return await task_of(handler, request())


async def test_an_execution_has_a_bounded_number_of_steps(serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.agents.steps.MAX_STEPS", 3)
    problems: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        for number in range(3):
            await events.step(f"s{number}", pay, number)
        try:
            await events.step("s3", pay, 3)
        except StepError as error:
            problems.append(str(error))
        await events.complete()

    assert (await outcome_of(serving, execute)).status.state is TaskState.COMPLETED
    (problem,) = problems
    assert "'s3'" in problem and "at most 3 steps" in problem


@pytest.mark.parametrize("stored", [Step("a", b"1"), Step("a", due=5.0), Step("a", None, 1, 5.0), Step("a", answer=0)])
async def test_a_name_that_stood_for_another_kind_of_step_is_an_error(stored: Step) -> None:
    live = LiveTask(
        new_task(request().message),
        1,
        "me",
        "o",
        lambda _: None,
        None,
        [WaitingMessage(0, CallFacts(), True, (stored,))],
    )
    log = StepLog(live, StepThreads(), lambda due: None)

    async def published() -> None:
        raise AssertionError("it is stored as another step")

    ways: dict[str, Callable[[], Any]] = {
        "step": lambda: log.run("a", pay, (1,), Any, None),
        "sleep": lambda: log.sleep("a", 1.0),
        "ask": lambda: log.ask("a", published),
    }
    own = {
        "step": stored.result is not None or stored.failures > 0,
        "sleep": stored == Step("a", due=5.0),
        "ask": stored.answer is not None,
    }
    assert sum(own.values()) == 1
    for way, call in ways.items():
        if not own[way]:
            with pytest.raises(StepError, match="another kind"):
                await call()
            log._used.discard("a")


# -- what a step gives -------------------------------------------------------------------------------------------------


async def test_a_step_returns_what_its_function_returns_in_the_annotated_type(serving) -> None:
    got: list[object] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        got.append(await events.step("pay", pay, 7))
        got.append(await events.step("count", count_to, 3))
        got.append(await events.step("as list", count_to, 3, returns=list[int]))
        got.append(await events.step("untyped", untyped, 1))
        got.append(await events.step("thread", threading.get_ident))
        await events.complete()

    task = await outcome_of(serving, execute)
    assert task.status.state is TaskState.COMPLETED
    assert got[:4] == [await pay(7), (0, 1, 2), [0, 1, 2], {"args": [1]}]
    assert got[4] != threading.get_ident()


@dataclass
class Odd:
    value: object


def odd() -> Odd:
    return Odd(object())


def wrong() -> int:
    return "text"  # type: ignore[return-value]  # what this is about


def nan() -> float:
    return float("nan")


def large() -> str:
    return "x" * MAX_STEP_BYTES


def hidden() -> Unknown:  # type: ignore[name-defined]  # noqa: F821 - what this is about
    return 1


def ambiguous() -> list[int] | tuple[int, ...]:
    raise AssertionError("it must not run")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (odd, "returned Odd, which can't be written as JSON"),
        (wrong, "returned str, which is not what is declared"),
        (nan, "returned float, which can't be written as JSON"),
        (large, f"at most {MAX_STEP_BYTES} are stored"),
        (hidden, "give the type as returns="),
        (ambiguous, "JSON can't be decoded to its type"),
        (lambda: pay(1), "returned a coroutine"),
        (pay(1), "takes a function and its arguments"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_what_can_not_be_stored_is_an_error_that_names_the_step(serving, call: Any, problem: str) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        with pytest.raises(StepError) as refused:
            await events.step("it", call)
        assert refused.value.step == "it"
        assert problem in str(refused.value)
        await events.complete()

    assert (await outcome_of(serving, execute)).status.state is TaskState.COMPLETED
    if not callable(call):
        call.close()


async def test_a_name_stands_for_one_step_and_may_be_tried_again_if_it_failed(serving) -> None:
    tries: list[int] = []

    def fail_once() -> int:
        tries.append(1)
        return 1 // (len(tries) - 1)

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        with pytest.raises(ZeroDivisionError):
            await events.step("a", fail_once)
        assert await events.step("a", fail_once) == 1
        with pytest.raises(StepError, match="number them"):
            await events.step("a", fail_once)
        with pytest.raises(StepError, match="lone surrogates"):
            await events.step("\ud800", fail_once)
        for name in ("", "n" * 201, 5):
            with pytest.raises(StepError, match="1 to 200"):
                await events.step(name, fail_once)  # type: ignore[arg-type]  # what this is about
        await events.complete()

    assert (await outcome_of(serving, execute)).status.state is TaskState.COMPLETED
    assert len(tries) == 2


async def test_all_steps_of_an_execution_together_are_bounded(serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        with pytest.raises(StepError, match=f"{MAX_STEPS_BYTES} bytes together"):
            for number in range(10):
                await events.step(f"{number}", lambda: "x" * (MAX_STEP_BYTES - 100))
        await events.complete(f"{number}")

    task = await outcome_of(serving, execute)
    assert task.status.message is not None
    assert task.status.message.parts[0].text == "7"


async def test_steps_are_for_executions_of_agents_that_are_declared_with_them(serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        with pytest.raises(RuntimeError, match="steps=True"):
            await events.step("a", count_to, 1)
        await events.complete()

    async with serving(Scripted(execute)) as handler:
        assert (await task_of(handler, request())).status.state is TaskState.COMPLETED


def test_an_agent_with_steps_has_no_resume() -> None:
    class Both(Scripted):
        async def resume(self, context: RequestContext, events: TaskEvents) -> None: ...

    with pytest.raises(DeclarationError, match="remove the executor's resume"):
        Agent(Both(pay), name="both", description="Has both.", steps=True)  # type: ignore[arg-type]


async def test_a_step_after_the_task_has_stopped_is_an_error(serving) -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.step("a", count_to, 1)
        await events.require_input()
        await events.working()
        with pytest.raises(StepError, match="has stopped its task"):
            await events.step("b", count_to, 1)
        await events.complete()

    assert (await outcome_of(serving, execute)).status.state is TaskState.COMPLETED


async def test_steps_are_in_no_task_and_no_stream_and_count_while_they_are_stored(serving, store) -> None:
    sizes: list[int] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        live = events._live
        sizes.append(live._size)
        await events.step("secret step", lambda: "x" * 10_000)
        sizes.append(live._size)
        await events.complete()
        sizes.append(live._size)

    async with serving(Scripted(execute), store, steps=True) as handler:
        items: list[StreamItem] = [item async for item in handler.stream(request(), ME)]
        assert isinstance(items[0], Task)
        steps = [i for i in items if isinstance(i, TaskUpdate) and isinstance(i.event, StepStored)]
        task = await handler.get(items[0].id, ME)
        assert steps
        assert b"secret" not in msgspec.json.encode(task)
    assert sizes[1] - sizes[0] > 10_000
    assert sizes[2] - sizes[0] < 2_000


async def test_callers_see_nothing_of_steps_on_the_wire() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.step("secret step", count_to, 3)
        await events.complete()

    agent = Agent(Scripted(execute), name="stepper", description="Takes steps.", steps=True)
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    async with in_memory(agent) as peer:
        events = [event async for event in peer.subscribe("SendStreamingMessage", {"message": message})]
        task = await peer.call("GetTask", {"id": events[0]["task"]["id"]})
    assert [*map(list, events)] == [["task"], ["statusUpdate"]]
    assert "secret" not in f"{events}{task}"


async def test_a_cancelled_task_stores_no_step(serving) -> None:
    begun = anyio.Event()

    async def wait() -> None:
        begun.set()
        await anyio.sleep_forever()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.step("wait", wait)

    async with serving(Scripted(execute), steps=True) as handler:
        task = await task_of(handler, request(at_once=True))
        with anyio.fail_after(DEADLINE_SECONDS):
            await begun.wait()
            cancelled = await handler.cancel(task.id, None, ME)
            assert cancelled.status.state is TaskState.CANCELED


async def test_a_plain_function_does_not_keep_a_cancelled_task(serving) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        may_end.wait(DEADLINE_SECONDS)

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.step("block", block)

    async with serving(Scripted(execute), steps=True) as handler:
        task = await task_of(handler, request(at_once=True))
        with anyio.fail_after(DEADLINE_SECONDS):
            await anyio.to_thread.run_sync(begun.wait)
            assert (await handler.cancel(task.id, None, ME)).status.state is TaskState.CANCELED
        may_end.set()


async def test_functions_that_go_on_after_their_steps_were_cancelled_are_bounded_and_logged(
    serving, logged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.agents.steps.MAX_THREADS", 1)
    begun, may_end = threading.Semaphore(0), threading.Event()

    def block() -> None:
        begun.release()
        may_end.wait(DEADLINE_SECONDS)

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.step("block", block)
        await events.complete()

    def named(wanted: str) -> list[str]:
        return [fields["step"] for name, fields in logged() if name == wanted]

    async with serving(Scripted(execute), steps=True) as handler:
        with anyio.fail_after(DEADLINE_SECONDS):
            first = await task_of(handler, request(at_once=True))
            await anyio.to_thread.run_sync(begun.acquire)
            await handler.cancel(first.id, None, ME)
            await until(lambda: named("step.abandoned") == ["block"])
            second = await task_of(handler, request("two", at_once=True))
            await until(lambda: named("step.no_thread") == ["block"])
            assert not begun.acquire(blocking=False)
            may_end.set()
            await until_state(handler, second.id, TaskState.COMPLETED)


async def test_beside_operations_that_run_as_tasks_an_agent_with_steps_is_executed_again() -> None:
    seen: list[str] = []

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        seen.append(context.text)

    both = AgentAndOperations(Scripted(execute), SkillExecutor(lambda _: None, pay), steps=True)  # type: ignore[arg-type]
    task = new_task(request("hi").message)
    live = LiveTask(task, 0, "", "me", lambda _: None)
    await both.resume(RequestContext(task, task.history[0]), TaskEvents(live))
    assert (seen, live.ended) == (["hi"], False)
    await both.resume(RequestContext(task), TaskEvents(live))  # cut off behind a question
    assert (seen, live.state) == (["hi"], TaskState.FAILED)


# -- attempts ----------------------------------------------------------------------------------------------------------

QUICK = Retry(attempts=3, first_pause=0, on=(OSError,))


class Flaky:
    """Raises each of these in turn, None standing for a result; waits at a number of `hangs`."""

    def __init__(self, *faults: Exception | None, hangs: int = 0) -> None:
        self.calls = 0
        self.hung = anyio.Event()
        self._faults = [*faults]
        self._hangs = hangs

    async def call(self) -> int:
        self.calls += 1
        if self.calls == self._hangs:
            self.hung.set()
            await anyio.sleep_forever()
        fault = self._faults.pop(0)
        if fault is not None:
            raise fault
        return self.calls


async def test_a_step_is_tried_again_as_its_policy_says(serving, logged) -> None:
    late, other = Flaky(OSError(), OSError(), None), Flaky(OSError(), KeyError())
    never = Flaky(*[OSError(str(number)) for number in range(3)])

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        assert await events.step("late", late.call, retry=QUICK) == 3
        with pytest.raises(KeyError):
            await events.step("other", other.call, retry=QUICK)
        with pytest.raises(OSError, match="2"):
            await events.step("never", never.call, retry=QUICK)
        assert len(events._live.waiting[0].steps) == 3
        sizes = sum(map(size_of_step, events._live.waiting[0].steps))
        assert events._live.steps_size == sizes
        await events.complete()

    assert (await outcome_of(serving, execute)).status.state is TaskState.COMPLETED
    assert (late.calls, other.calls, never.calls) == (3, 2, 3)
    failed = [fields["attempt"] for name, fields in logged() if name == "step.failed"]
    assert failed == [1, 2, 1, 1, 2]


@pytest.mark.parametrize("outcome", [StoreUnavailableError("away"), CommitConflict(3, "other")])
async def test_an_agent_is_not_blamed_for_a_task_that_is_lost_while_a_step_is_stored(serving, logged, outcome) -> None:
    class Losing(AlteredStore):
        async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
            if not any(isinstance(event, StepStored) for each in changes for event in each.events):
                return await self._inner.commit(changes)
            if isinstance(outcome, Exception):
                raise outcome
            return [outcome]

    over = anyio.Event()

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        try:
            await events.step("pay", pay, 1)
        finally:
            over.set()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with serving(Scripted(execute), Losing(MemoryStore()), steps=True) as handler:
            await task_of(handler, request(at_once=True))
            await over.wait()
            await anyio.wait_all_tasks_blocked()
            assert "agent.failed" not in [name for name, _ in logged()]


async def test_a_crash_costs_one_attempt_at_most(serving, daemon_on, tmp_path: Path) -> None:
    flaky = Flaky(*[OSError()] * 3, hangs=2)

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        with pytest.raises(OSError):
            await events.step("flaky", flaky.call, retry=QUICK)
        await events.complete()

    path = tmp_path / "tasks.db"
    async with daemon_on(path, Scripted(execute), killed=True, steps=True) as first:
        await task_of(first, request(at_once=True))
        with anyio.fail_after(DEADLINE_SECONDS):
            await flaky.hung.wait()
    async with daemon_on(path, Scripted(execute), steps=True) as second:
        with anyio.fail_after(DEADLINE_SECONDS):
            await until_ended(second, 1)
    assert flaky.calls == 4  # one failed, one was cut off, two more failed


async def test_the_time_of_the_next_attempt_is_stored(serving) -> None:
    flaky = Flaky(OSError(), None)
    policy = Retry(first_pause=3600, longest_pause=3600)

    async def execute(context: RequestContext, events: TaskEvents) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(events.step, "flaky", flaky.call, retry=policy))
            await until(lambda: events._live.find_step("flaky") is not None)
            step = events._live.find_step("flaky")
            assert step is not None
            assert (step.failures, step.result) == (1, None)
            assert 3500 < step.due - time.time() <= 3600
            await events.complete()
            tasks.cancel_scope.cancel()

    assert (await outcome_of(serving, execute)).status.state is TaskState.COMPLETED


def test_pauses_grow_up_to_the_longest() -> None:
    policy = Retry(attempts=1000, first_pause=0.5, factor=3, longest_pause=10)
    assert [policy.pause_after(failures) for failures in (1, 2, 3, 4, 999)] == [0.5, 1.5, 4.5, 10, 10]


@pytest.mark.parametrize(
    "given",
    [
        {"attempts": 0},
        {"attempts": 1001},
        {"first_pause": -1},
        {"longest_pause": math.inf},
        {"factor": 0.5},
        {"on": OSError},
        {"on": (int,)},
    ],
    ids=str,
)
def test_a_policy_without_sense_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        Retry(**given)


# -- crashes -----------------------------------------------------------------------------------------------------------

When = Literal["before", "after"]


class Dying:
    """A store whose daemon dies at its commit number `at`: `before` the file has it, or `after`."""

    def __init__(self, inner: Any, at: int, when: When) -> None:
        self.inner = inner
        self.died = anyio.Event()
        self._at = at
        self._when = when
        self._count = 0
        self.steps: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        self._count += 1
        if self._count > self._at or (self._count == self._at and self._when == "before"):
            self.died.set()
            await anyio.sleep_forever()
        results: Sequence[CommitRefusal | None] = await self.inner.commit(changes)
        self.steps += [each.step.name for change in changes for each in change.events if isinstance(each, StepStored)]
        if self._count == self._at:
            self.died.set()
            await anyio.sleep_forever()
        return results


class Shop:
    """Takes five steps, of both kinds, and keeps what it has done, and what was stored when it was done again."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.results: list[object] = []

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        results: list[object] = [await events.step("pay 1", self._pay, 1)]
        await events.working("paid")
        results += [await events.step(f"pack {number}", self._pack, number) for number in range(3)]
        results.append(await events.step("pay 2", self._pay, 2))
        self.results = results
        await events.complete()

    async def _pay(self, number: int) -> Receipt:
        self.effects.append(f"pay {number}")
        return await pay(number)

    def _pack(self, number: int) -> tuple[int, ...]:
        self.effects.append(f"pack {number}")
        return count_to(number)


EFFECTS = ["pay 1", "pack 0", "pack 1", "pack 2", "pay 2"]
COMMITS = 8
"""Of the new task, of each step, of the status between them, and of the end."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(1, COMMITS + 1))
async def test_a_daemon_that_is_killed_at_any_commit_runs_no_stored_step_again(
    serving, killable: Callable[[Path], Any], tmp_path: Path, at: int, when: When
) -> None:
    path, shop = tmp_path / "tasks.db", Shop()
    dying = Dying(killable(path), at, when)
    async with serving(shop, dying, steps=True) as first, anyio.create_task_group() as clients:
        clients.start_soon(_send, first)
        with anyio.fail_after(DEADLINE_SECONDS):
            await dying.died.wait()
        dying.inner.killed = True
        clients.cancel_scope.cancel()
    async with serving(shop, killable(path), steps=True) as second:
        if (at, when) == (1, "before"):  # nothing was ever stored, nor acknowledged
            return await _send(second)
        with anyio.fail_after(DEADLINE_SECONDS):
            await until_ended(second, 1)
    assert [shop.effects.count(effect) for effect in dying.steps] == [1] * len(dying.steps)
    assert [effect for effect in shop.effects if shop.effects.count(effect) > 1] in (
        [],
        *([each, each] for each in EFFECTS),
    )
    assert sorted({*shop.effects}) == sorted(EFFECTS)
    assert shop.results in ([await pay(1), (), (0,), (0, 1), await pay(2)], [])


async def _send(handler: Any) -> None:
    await task_of(handler, request())
