"""The memory store: what it evicts, what it never evicts, and how much memory a task takes."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.a2a.task import apply_events
from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskEvent,
    TaskQuery,
    TaskState,
    TaskStatus,
    new_id,
    now,
)
from discreet.agents.stores import memory
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import (
    LogTruncatedError,
    StoreFull,
)
from discreet.agents.stores.memory import MemoryStore, StoreLimits, TaskIndex
from discreet.daemon.memory import MemoryBudget
from support import task_changes

pytestmark = pytest.mark.anyio

WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED


change = partial(task_changes.change, snapshot=True)


def a_task(task_id: str, state: TaskState = COMPLETED, text: str = "") -> Task:
    return Task(task_id, "c", TaskStatus(state, Message("m", Role.AGENT, (Part(text=text),))))


async def listed_ids(store: MemoryStore) -> list[str]:
    return [task.id for task in (await store.list(TaskQuery(scope="me", page_size=100))).tasks]


async def test_ended_tasks_that_are_too_large_together_are_evicted() -> None:
    store = MemoryStore(StoreLimits(ended_bytes=10_000))
    await store.commit([change(a_task("live", WORKING, "x" * 50_000))])
    for n in range(4):
        await store.commit([change(a_task(f"{n}", text="x" * 3000))])
    assert await listed_ids(store) == ["3", "2", "1", "live"]
    grown = a_task("2", text="x" * 6000)
    await store.commit([change(grown, expected=1)])
    assert await listed_ids(store) == ["3", "2", "live"]


async def test_a_full_store_refuses_new_tasks_until_one_ends() -> None:
    store = MemoryStore(StoreLimits(active_tasks=2))
    assert await store.commit([change(a_task("1", WORKING)), change(a_task("2", ASKING))]) == [None, None]
    (refusal,) = await store.commit([change(a_task("3", WORKING))])
    assert isinstance(refusal, StoreFull)
    said = MessageAdded(Message("m", Role.USER, (Part(text=""),)))
    assert await store.commit([change(a_task("1"), said, expected=1)]) == [None]
    assert await store.commit([change(a_task("3", WORKING))]) == [None]


@pytest.mark.parametrize(
    "limits", [StoreLimits(log_events=10, tail_bytes=0), StoreLimits(log_bytes=2000, tail_bytes=0)]
)
async def test_a_log_that_grows_too_long_becomes_part_of_the_snapshot(limits: StoreLimits) -> None:
    store = MemoryStore(limits)
    task = a_task("t", WORKING)
    await store.commit([change(task)])
    events: Sequence[TaskEvent] = [
        ArtifactChanged(Artifact("a", (Part(text=f"{n} " * 40),)), append=True) for n in range(99)
    ]
    for n, event in enumerate(events, 1):
        assert await store.commit([change(task, event, expected=n, snapshot=False)]) == [None]
    stored = await store.load("t")
    assert stored is not None and stored.generation == 100 and len(stored.later_events) <= 20
    assert apply_events(stored.snapshot, [logged.event for logged in stored.later_events]) == apply_events(task, events)
    with pytest.raises(LogTruncatedError) as moved:
        await store.event_log.read("t", after=1)
    assert moved.value.generation == 100


async def in_chunks(store: MemoryStore, task_id: str, *texts: str) -> None:
    """A task that publishes these texts one by one, and ends with a small snapshot."""
    task = a_task(task_id, WORKING)
    await store.commit([change(task, snapshot=False)])
    for n, text in enumerate(texts, 1):
        chunk = ArtifactChanged(Artifact("a", (Part(text=text),)))
        await store.commit([change(task, chunk, expected=n, snapshot=False)])
    ended = StatusChanged(TaskStatus(COMPLETED))
    assert await store.commit([change(task, ended, expected=len(texts) + 1)]) == [None]


async def numbers_of(store: MemoryStore, task_id: str, after: int) -> list[int] | None:
    """The numbers of the events after this one; None where the store does not have them any more."""
    try:
        return [logged.generation for logged in await store.read(task_id, after=after)]
    except LogTruncatedError:
        return None


async def test_the_last_events_of_ended_tasks_stay_within_their_bytes_and_the_oldest_go_first() -> None:
    store = MemoryStore(StoreLimits(tail_bytes=16_000))
    for n in range(10):
        await in_chunks(store, f"{n}", "x" * 1500, "y" * 1500)
    assert [await numbers_of(store, f"{n}", 1) for n in range(10)] == [None] * 6 + [[2, 3, 4]] * 4
    assert await listed_ids(store) == [f"{n}" for n in reversed(range(10))]


async def test_of_one_large_task_the_last_events_stay_and_those_of_others_do_too() -> None:
    store = MemoryStore(StoreLimits(tail_bytes=16_000))
    await in_chunks(store, "small", "x")
    await in_chunks(store, "large", *("x" * 1000 for _ in range(50)))
    assert await numbers_of(store, "small", 1) == [2, 3]
    assert await numbers_of(store, "large", 47) is None
    assert await numbers_of(store, "large", 48) == [49, 50, 51, 52]
    await in_chunks(store, "one event", "x" * 5000)
    assert [await numbers_of(store, "one event", after) for after in (1, 2, 3)] == [None, [3], []]


async def test_the_last_events_count_in_the_memory_budget_and_make_room_before_any_task_does() -> None:
    budget = MemoryBudget(1024 * 1024)
    store = MemoryStore(budget=budget)
    await in_chunks(store, "t", "x" * 10_000)
    assert budget.held("tasks") > 10_000
    store.free(1)
    assert await numbers_of(store, "t", 1) is None
    assert await store.load("t") is not None
    assert budget.held("tasks") < 10_000
    for n in range(50):
        await in_chunks(store, f"{n}", "x" * 10_000)
    assert await numbers_of(store, "49", 1) == [2, 3]
    store.free(budget.limit)
    assert budget.held("tasks") == 0


async def test_the_last_events_of_a_task_are_deleted_with_it() -> None:
    budget = MemoryBudget(1024 * 1024)
    store = MemoryStore(StoreLimits(retention=Retention(0)), budget=budget)
    await in_chunks(store, "t", "x")
    assert await numbers_of(store, "t", 1) is None
    assert budget.held("tasks") == 0


def parked() -> Task:
    task_id, context_id = new_id(), new_id()
    question = Message(new_id(), Role.AGENT, (Part(text="What colour should it be?"),), context_id, task_id)
    request = Message(new_id(), Role.USER, (Part(text="Please paint the house"),), context_id, task_id)
    return Task(task_id, context_id, TaskStatus(ASKING, question, now()), history=(request,))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
async def test_a_parked_task_takes_at_most_two_kilobytes() -> None:
    store, count = MemoryStore(), 3000
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(count):
            await store.commit([change(parked())])
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (await store.list(TaskQuery(scope="me"))).total_size == count
    assert (after - before) / count <= 2048


numbers_and_times = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60)


@given(numbers_and_times, st.integers(0, 70), st.one_of(st.none(), st.integers(0, 20)))
def test_an_index_is_always_in_order_and_complete(steps: list[tuple[int, bool]], below: int, after: int | None) -> None:
    index, there = TaskIndex(), dict[int, str]()
    for number, (time, remove) in enumerate(steps):
        if remove and there:
            gone = [*there][time % len(there)]
            index.remove(gone, there.pop(gone))
        else:
            there[number] = f"{time:02}"
            index.add(number, f"{time:02}")
    limit = None if after is None else f"{after:02}"
    late = {number: time for number, time in there.items() if limit is None or time >= limit}
    assert len(index) == len(there)
    assert index.count(limit) == len(late)
    listed = [*index.descending(below, limit)]
    assert listed == sorted(listed, reverse=True) and set(listed) <= set(there)
    assert [number for number in listed if number in late] == sorted((n for n in late if n < below), reverse=True)


async def test_a_page_of_all_callers_looks_at_the_tasks_before_its_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store, looked = MemoryStore(), list[str]()
    await store.commit([change(a_task(f"{n}")) for n in range(100)])
    matches = memory._matches
    monkeypatch.setattr(memory, "_matches", lambda record, query: looked.append(record.id) or matches(record, query))
    page = await store.list(TaskQuery(scope=None, page_size=5))
    page = await store.list(TaskQuery(scope=None, page_size=5, page_token=page.next_page_token))
    assert [task.id for task in page.tasks] == ["94", "93", "92", "91", "90"]
    assert (page.total_size, len(looked) <= 20) == (100, True)
