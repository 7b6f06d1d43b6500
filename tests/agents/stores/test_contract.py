"""The contract of `TaskStore` and `EventLog`, tested on every store and both event loops."""

from __future__ import annotations

import itertools
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.task import apply_events
from discreet.a2a.types import Artifact, ArtifactChanged, Part, Task, TaskCreated, TaskQuery, TaskState, TaskStatus
from discreet.agents.stores.interface import CommitConflict, LogTruncatedError, StoredTask, TaskStore, Unserializable
from support.task_changes import a_task, at, change_to, chunk, commit_all, current, ids, said, to_create

pytestmark = pytest.mark.anyio

WORKING, COMPLETED, ASKING = TaskState.WORKING, TaskState.COMPLETED, TaskState.INPUT_REQUIRED


# -- commit and load -------------------------------------------------------------------------------------------


async def test_a_task_is_loaded_as_it_was_created(store: TaskStore) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task))
    assert await store.load("t") == StoredTask(task, 1, (), "me", None)


@pytest.mark.parametrize("after", [0, 5])
async def test_a_task_that_does_not_exist_is_none_and_reading_its_log_is_an_error(store: TaskStore, after: int) -> None:
    assert await store.load("t") is None
    with pytest.raises(LogTruncatedError) as gone:
        await store.event_log.read("t", after=after)
    assert gone.value.generation == 0


@pytest.mark.parametrize("snapshot", [False, True])
async def test_events_count_from_one_without_gaps(store: TaskStore, snapshot: bool) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task, said("1"), said("2"), snapshot=snapshot))
    stored = await store.load("t")
    assert stored is not None and stored.generation == 3
    later = [said(str(n)) for n in range(200)]
    await commit_all(store, change_to(current(stored), 3, later))
    read = [*await store.event_log.read("t", after=3)]
    assert [logged.generation for logged in read] == [*range(4, 204)]
    assert [logged.event for logged in read] == later
    stored = await store.load("t")
    assert stored is not None and stored.generation == 203
    assert [logged.generation for logged in stored.later_events] == [*range(stored.snapshot_generation + 1, 204)]
    assert current(stored) == apply_events(task, [said("1"), said("2"), *later])


async def test_a_snapshot_is_loaded_with_its_generation(store: TaskStore) -> None:
    task = a_task("t")
    after = apply_events(task, [said("1")])
    await commit_all(store, to_create(task), change_to(a_task("u"), 0, [TaskCreated(a_task("u"))]))
    await commit_all(store, change_to(after, 1, [said("1")], snapshot=True))
    assert await store.load("t") == StoredTask(after, 2, (), "me", None)


async def test_a_change_of_another_generation_conflicts_and_changes_nothing(store: TaskStore) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task))
    before = await store.load("t")
    for expected in (2, 7):
        (refusal,) = await store.commit([change_to(a_task("t", state=WORKING), expected, [said("x")], snapshot=True)])
        assert isinstance(refusal, CommitConflict) and refusal.generation == 1
    (refusal,) = await store.commit([to_create(task)])
    assert isinstance(refusal, CommitConflict) and refusal.generation == 1
    (refusal,) = await store.commit([change_to(a_task("none"), 3, [said("x")])])
    assert isinstance(refusal, CommitConflict) and refusal.generation == 0
    assert await store.load("t") == before
    assert await store.load("none") is None


async def test_each_change_of_a_commit_succeeds_or_fails_by_itself(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")))
    results = await store.commit(
        [to_create(a_task("u")), change_to(a_task("t"), 5, [said("x")]), to_create(a_task("v"), said("y"))]
    )
    assert [type(result) for result in results] == [type(None), CommitConflict, type(None)]
    assert await ids(store) == ["v", "u", "t"]


async def test_two_changes_of_one_task_and_a_task_without_its_first_event_are_errors(store: TaskStore) -> None:
    with pytest.raises(ValueError):
        await store.commit([to_create(a_task("t")), to_create(a_task("t"))])
    with pytest.raises(ValueError):
        await store.commit([change_to(a_task("t"), 0, [said("x")])])
    with pytest.raises(ValueError):
        await store.commit([change_to(a_task("t"), 0, snapshot=True)])
    assert await ids(store) == []


async def test_a_change_that_is_not_json_is_refused_and_the_others_are_made(store: TaskStore) -> None:
    endless: list[Any] = []  # Any: JSON
    endless.append(endless)
    bad = [a_task(name) for name in ("set", "deep", "surrogate")]
    parts = [Part(data={1, 2, object()}), Part(data=endless), Part(text="\ud800")]
    changes = [to_create(task, ArtifactChanged(Artifact("a", (part,)))) for task, part in zip(bad, parts, strict=True)]
    results = await store.commit([*changes, to_create(a_task("good"))])
    assert [type(result) for result in results] == [Unserializable] * 3 + [type(None)]
    assert await ids(store) == ["good"]


async def test_any_json_is_loaded_as_it_was_stored(store: TaskStore) -> None:
    data = {"n": 10**40, "m": -(10**40), "f": 1.5, "t": [True, None, "é", {"": []}]}
    parts = (
        Part(data=data),
        Part(data=None),
        Part(raw=bytes(range(256))),
        Part(text=""),
        Part(url="x:y", media_type="a/b"),
    )
    task = Task("t", "c", TaskStatus(WORKING), (Artifact("a", parts, metadata=data),), metadata={"big": 2**64})
    await commit_all(store, to_create(task, ArtifactChanged(Artifact("b", parts), metadata=data)))
    assert current(await store.load("t")).artifacts == (Artifact("a", parts, metadata=data), Artifact("b", parts))
    assert current(await store.load("t")).metadata == {"big": 2**64}


async def test_a_change_without_events_saves_snapshot_and_owner_and_nothing_else(store: TaskStore) -> None:
    task = a_task("t", minute=5)
    await commit_all(store, to_create(task, said("1"), owner=store.owner_id), to_create(a_task("u")))
    after = apply_events(task, [said("1")])
    moved = change_to(a_task("t", context_id="other", state=COMPLETED, minute=9), 2, scope="you")
    await commit_all(store, moved)
    assert await store.load("t") != StoredTask(after, 2, (), "me", None)
    await commit_all(store, change_to(after, 2, snapshot=True))
    assert await store.load("t") == StoredTask(after, 2, (), "me", None)
    assert await ids(store) == ["u", "t"]
    assert await ids(store, context_id="context", state=TaskState.SUBMITTED, status_timestamp_after=at(5)) == ["t"]


async def test_a_cancelled_commit_is_done_completely_or_not_at_all(store: TaskStore) -> None:
    for delay in range(6):
        changes = [
            to_create(a_task(f"{delay}-{n}", context_id=f"{delay}"), said("x"), snapshot=True) for n in range(20)
        ]
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(store.commit, changes)
                for _ in range(delay):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        for _ in range(3):
            assert (await store.list(TaskQuery(scope="me", context_id=f"{delay}"))).total_size in (0, 20)
    await commit_all(store, to_create(a_task("afterwards")))


async def test_of_concurrent_changes_of_one_task_one_succeeds(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")))
    results: list[Any] = []  # Any: refusals

    async def change(n: int) -> None:
        results.extend(await store.commit([change_to(a_task("t"), 1, [said(str(n))])]))

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(change, n)
    assert results.count(None) == 1
    stored = await store.load("t")
    assert stored is not None and stored.generation == 2


# -- the log ---------------------------------------------------------------------------------------------------


async def test_read_continues_after_the_last_event_read(store: TaskStore) -> None:
    events = [said(str(n)) for n in range(300)]
    await commit_all(store, to_create(a_task("t")))
    for start, end in itertools.pairwise([0, 1, 100, 300]):
        await commit_all(store, change_to(a_task("t"), 1 + start, events[start:end]))
    for limit in (1, 7, 64, 256, 1000):
        read: list[Any] = []  # Any: Logged
        while batch := await store.event_log.read("t", after=read[-1].generation if read else 1, limit=limit):
            assert len(batch) <= limit
            read += batch
        assert [logged.event for logged in read] == events
        assert [logged.generation for logged in read] == [*range(2, 302)]
    assert list(await store.event_log.read("t", after=301)) == []
    assert list(await store.event_log.read("t", after=999)) == []


async def test_one_read_returns_a_bounded_number_of_bytes(store: TaskStore) -> None:
    await commit_all(store, to_create(a_task("t")))
    large = [chunk("x" * 1_000_000) for _ in range(20)]
    await commit_all(store, change_to(a_task("t"), 1, large))
    batch = await store.event_log.read("t", after=1)
    assert 1 <= len(batch) < 20
    assert [logged.event for logged in batch] == large[: len(batch)]


async def test_events_that_a_snapshot_covers_can_still_be_read(store: TaskStore) -> None:
    events = [said(f"{n}") for n in range(6)]
    task = apply_events(a_task("t"), events[:2])
    await commit_all(store, to_create(a_task("t"), *events[:2], snapshot=True))
    await commit_all(store, change_to(task, 3, events[2:4]))
    task = apply_events(task, events[2:])
    await commit_all(store, change_to(task, 5, events[4:], snapshot=True))
    for after in range(1, 8):
        read = await store.event_log.read("t", after=after)
        assert [(logged.generation, logged.event) for logged in read] == [*enumerate(events, 2)][after - 1 :]
    stored = await store.load("t")
    assert stored is not None and (stored.snapshot_generation, stored.snapshot) == (7, task)


async def test_reading_truncated_events_is_an_error_and_events_after_the_snapshot_stay(store: TaskStore) -> None:
    task = a_task("t")
    await commit_all(store, to_create(task))
    for generation in range(1, 7, 2):
        task = apply_events(task, [said("1"), said("2")])
        await commit_all(store, change_to(task, generation, [said("1"), said("2")], snapshot=True))
    await commit_all(store, change_to(task, 7, [said("3")]))
    stored = await store.load("t")
    assert stored is not None and (stored.snapshot_generation, stored.generation) == (7, 8)
    assert [logged.generation for logged in await store.event_log.read("t", after=7)] == [8]
    with pytest.raises(LogTruncatedError) as moved:
        await store.event_log.read("t", after=0)
    assert moved.value.generation == 8
