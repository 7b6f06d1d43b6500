"""A task in memory: what its watchers read, what the store gets, and what is dropped."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.a2a.task import TaskDraft, apply_events, size_of_event
from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
    TaskStatus,
    is_new_id,
    new_id,
)
from discreet.agents.event_buffer import MAX_EVENTS
from discreet.agents.live_task import EventReader, LiveTask, TaskCache
from discreet.agents.stores.interface import TaskStore, Unserializable
from discreet.agents.stores.memory import MemoryStore
from discreet.agents.stores.serialization import encode_change
from support.task_changes import chunk
from support.waits import until


def message(text: str) -> Message:
    return Message(text, Role.AGENT, (Part(text=text),))


def task() -> Task:
    return Task("t", "c", TaskStatus(TaskState.SUBMITTED), history=(message("asked"),))


def begun() -> LiveTask:
    live = LiveTask(task(), 0, "", "me", lambda live: None)
    live.publish(TaskCreated(live.task()))
    return live


def commit(live: LiveTask) -> None:
    live.mark_committed(live.next_change())


def texts(task: Task) -> list[str | None]:
    return [part.text for artifact in task.artifacts for part in artifact.parts]


# -- the draft ----------------------------------------------------------------------------------------------------


def test_an_artifact_is_appended_to_or_replaced_and_created_where_there_is_none() -> None:
    assert texts(apply_events(task(), [chunk("a"), chunk("b")])) == ["a", "b"]
    assert texts(apply_events(task(), [chunk("a"), chunk("b", append=False)])) == ["b"]
    other = ArtifactChanged(Artifact("b", (Part(text="c"),)))
    assert texts(apply_events(task(), [chunk("a"), other, chunk("b")])) == ["a", "b", "c"]


EVENTS: st.SearchStrategy[list[TaskEvent]] = st.lists(
    st.builds(chunk, st.text(max_size=3), append=st.booleans())
    | st.builds(lambda text: MessageAdded(message(text)), st.text(max_size=3))
    | st.builds(lambda text: StatusChanged(TaskStatus(TaskState.WORKING, message(text))), st.text(max_size=3)),
    max_size=12,
)


@given(EVENTS, st.integers(0, 12))
def test_folding_in_two_steps_is_folding_at_once(events: list[TaskEvent], cut: int) -> None:
    assert apply_events(apply_events(task(), events[:cut]), events[cut:]) == apply_events(task(), events)


def test_a_frozen_task_does_not_change_any_more() -> None:
    draft = TaskDraft(task())
    draft.apply(chunk("a"))
    before = draft.freeze()
    draft.apply(chunk("b"))
    assert (texts(before), texts(draft.freeze())) == (["a"], ["a", "b"])


# -- what readers have not read ----------------------------------------------------------------------------------


def test_events_are_kept_while_there_is_a_reader() -> None:
    live = begun()
    for _ in range(1000):
        live.publish(chunk("x" * 100))
    assert live.buffer is None
    reader = EventReader(live, MemoryStore())
    live.publish(chunk("seen"))
    assert live.buffer is not None
    assert live.buffer.bytes > 0
    reader.close()
    assert live.buffer.bytes == 0


@pytest.mark.anyio
async def test_what_every_reader_has_read_is_dropped_and_a_slow_reader_keeps_a_bounded_part() -> None:
    live = begun()
    commit(live)
    fast = EventReader(live, MemoryStore())
    for limit in (600, MAX_EVENTS):
        for _ in range(MAX_EVENTS + 1):
            live.publish(chunk("x"))
            if len(live.pending) == 500:
                commit(live)
                while fast.position < live.committed:
                    await fast.next_batch()
        assert live.buffer is not None
        assert live.buffer.bytes < limit * 1000
        EventReader(live, MemoryStore())  # which reads nothing


# -- the store ---------------------------------------------------------------------------------------------------


def test_a_change_holds_what_was_not_committed_and_a_snapshot_when_the_task_stops() -> None:
    live = begun()
    first = live.next_change()
    assert (first.expected_generation, first.generation, first.owner) == (0, 1, "me")
    assert first.snapshot == live.task()
    live.mark_committed(first)
    live.publish(chunk("a"))
    second = live.next_change()
    assert (second.expected_generation, second.snapshot, second.owner) == (1, None, "me")
    live.publish(StatusChanged(TaskStatus(TaskState.COMPLETED)))  # while the second is being committed
    live.mark_committed(second)
    third = live.next_change()
    assert (third.expected_generation, len(third.events), third.owner) == (2, 1, None)
    assert third.snapshot == live.task()


def test_snapshots_of_a_growing_task_become_rarer_as_it_grows() -> None:
    live = begun()
    commit(live)
    snapshots = 0
    for _ in range(4000):
        live.publish(chunk("x" * 4096))
        change = live.next_change()
        snapshots += change.snapshot is not None
        live.mark_committed(change)
    assert 1 <= snapshots <= 5  # of 16 MiB, each about twice as much as the one before


# -- names and times ----------------------------------------------------------------------------------------------


def test_new_ids_are_random_uuids_that_are_told_from_other_texts() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(map(is_new_id, ids))
    assert not any(map(is_new_id, ["", "task-1", next(iter(ids)).upper(), next(iter(ids)) + "0", "x" * 36]))


# -- what the store is given ----------------------------------------------------------------------------------------


async def reloaded(store: MemoryStore) -> LiveTask:
    """The task as the next message finds it: nothing of it is in memory."""
    stored = await store.load("t")
    assert stored is not None
    live = LiveTask(stored.snapshot, stored.snapshot_generation, "", "memory", lambda live: None)
    for logged in stored.later_events:
        live.append_stored(logged)
    return live


@pytest.mark.anyio
@pytest.mark.parametrize("size", [10, 100_000])
async def test_what_is_written_for_a_conversation_is_linear_in_its_length(size: int) -> None:
    store, written, count = MemoryStore(), 0, 60
    live = LiveTask(task(), 0, "", "memory", lambda live: None)
    live.publish(TaskCreated(live.task()))
    for n in range(count):
        live.publish(MessageAdded(Message("m", Role.USER, (Part(text="x" * size),))))
        live.publish(StatusChanged(TaskStatus(TaskState.WORKING)))
        live.publish(StatusChanged(TaskStatus(TaskState.INPUT_REQUIRED, message(f"{n}"))))
        change = live.next_change()
        encoded = encode_change(change)
        assert not isinstance(encoded, Unserializable)
        written += sum(map(len, encoded.events)) + len(encoded.snapshot or b"")
        assert await store.commit([change]) == [None]
        before, live = live.task(), await reloaded(store)
        assert live.task() == before
    assert written < 4 * count * (size + 1000)


def test_all_that_an_event_carries_counts_in_its_size() -> None:
    part, metadata = Part(text="x" * 1000), {"note": "x" * 1000}
    spoken = Message("m", Role.USER, (part,), metadata=metadata)
    for event, thousands in (
        (MessageAdded(spoken), 2),
        (StatusChanged(TaskStatus(TaskState.WORKING, spoken), metadata), 3),
        (ArtifactChanged(Artifact("a", (part, part), metadata=metadata), metadata=metadata), 4),
        (TaskCreated(Task("t", "c", TaskStatus(TaskState.WORKING, spoken), history=(spoken,), metadata=metadata)), 5),
        (MessageAdded(Message("m", Role.USER, (Part(data=metadata), Part(raw=b"x" * 1000), Part(url="x" * 1000)))), 3),
        (MessageAdded(Message("m", Role.USER, (Part(text="", metadata=metadata),))), 1),
    ):
        assert 1000 * thousands <= size_of_event(event) < 1000 * thousands + 4000


@pytest.mark.anyio
async def test_a_task_stays_in_memory_until_the_store_knows_that_it_waits(store: TaskStore) -> None:
    await store.open()
    cache = TaskCache(store)

    async def run_until_stored(live: LiveTask) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cache.run)
            await until(lambda: live.committed == live.generation or live.lost)
            tasks.cancel_scope.cancel()

    live = cache.create(task(), "")
    live.busy = True
    live.ensure_created()
    live.set_status(TaskState.INPUT_REQUIRED)
    await run_until_stored(live)
    live.busy = False
    live.settle()  # it is committed later, as while another commit runs
    cache.unpin(live)
    again = await cache.pin("t", None)
    again.set_status(TaskState.WORKING)
    await run_until_stored(again)
    assert again.lost is None
    await store.close()
