"""A reader of a task's events, over both stores: it gets every event in order, or an error that says how far the log was.

In no case does it turn without waiting, whatever the store has deleted meanwhile.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Self

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.a2a.errors import EventsLost
from discreet.a2a.types import (
    Artifact,
    ArtifactChanged,
    Part,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
    TaskStatus,
)
from discreet.agents import live_task
from discreet.agents.live_task import EventReader, LiveTask, TaskMemory
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import EventLog, LoggedEvent, TaskStore
from discreet.agents.stores.memory import MemoryStore, StoreLimits
from discreet.agents.stores.sqlite.store import SqliteStore
from support.sqlite_files import opened
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

MAX_READS = 200
"""Reads of the store by one reader in one of these tests: far fewer are needed."""


class CountedLog:
    """A log that fails when it is read again and again: a reader that never waits could not be interrupted."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._reads = 0

    async def read(self, task_id: str, *, after: int, limit: int = 3) -> Sequence[LoggedEvent]:
        self._reads += 1
        assert self._reads < MAX_READS, "the reader turns without waiting"
        return await self._log.read(task_id, after=after, limit=limit)

    def retain(self, task_id: str) -> None:
        self._log.retain(task_id)

    def release(self, task_id: str) -> None:
        self._log.release(task_id)


class Scene:
    """A task that a store has, and one reader of its later events, which reads whenever it is let go on."""

    reader: EventReader

    def __init__(self, store: TaskStore, *, buffered: bool = True, task_id: str = "t") -> None:
        memory = TaskMemory()
        if not buffered:
            memory.add_buffered(live_task.MAX_TOTAL_BYTES)  # as if the tasks of other readers had taken it
        self.store = store
        task = Task(task_id, "c", TaskStatus(TaskState.WORKING, timestamp=""))
        self.live = LiveTask(task, 0, "me", store.owner_id, lambda live: None, memory)
        self.live.publish(TaskCreated(task))
        self.read: list[LoggedEvent] = []
        self.lost: EventsLost | None = None
        self.go_on = anyio.Event()

    @classmethod
    async def begin(cls, store: TaskStore, *, buffered: bool = True) -> Self:
        scene = cls(store, buffered=buffered)
        await scene.commit()
        scene.reader = EventReader(scene.live, CountedLog(store.event_log))
        return scene

    def publish(self, text: str) -> None:
        self.live.publish(ArtifactChanged(Artifact("a", (Part(text=text),)), append=True))

    def end(self) -> None:
        self.live.publish(StatusChanged(TaskStatus(TaskState.COMPLETED, timestamp="")))

    async def commit(self) -> None:
        if self.live.pending:
            change = self.live.next_change()
            assert await self.store.commit([change]) == [None]
            self.live.mark_committed(change)

    async def follow(self) -> None:
        """Read to the end, a batch each time that the scene goes on."""
        try:
            while True:
                await self.go_on.wait()
                batch = await self.reader.next_batch()
                if not batch:
                    return
                self.read += batch
        except EventsLost as exc:
            self.lost = exc

    def check(self, published: Sequence[TaskEvent]) -> None:
        """What was read are the first events, all of them unless the reader was told that the rest is lost."""
        assert [logged.generation for logged in self.read] == [*range(2, len(self.read) + 2)]
        assert [logged.event for logged in self.read] == [*published[: len(self.read)]]
        if self.lost is None:
            assert len(self.read) == len(published)
        else:
            assert self.lost.taskId == "t"
            assert len(self.read) < self.lost.lastGeneration <= len(published) + 1


def delete_rows(path: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM tasks")


# -- one task --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def forgetful(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TaskStore, Callable[[], None]]:
    """A store that deletes a task under its readers: it is too large for this memory, or was deleted from the file."""
    if request.param == "memory":
        return MemoryStore(StoreLimits(ended_bytes=0)), lambda: None
    path = str(tmp_path / "tasks.db")
    return SqliteStore(path), lambda: delete_rows(path)


async def test_a_slow_reader_of_a_task_that_was_deleted_gets_an_error_with_the_last_number(
    forgetful: tuple[TaskStore, Callable[[], None]],
) -> None:
    store, forget = forgetful
    async with opened(store):
        scene = await Scene.begin(store, buffered=False)
        for n in range(5):
            scene.publish(f"{n}")
        scene.end()
        await scene.commit()
        forget()
        assert await store.load("t") is None
        with pytest.raises(EventsLost) as error, anyio.fail_after(DEADLINE_SECONDS):
            await scene.reader.next_batch()
        assert (error.value.taskId, error.value.lastGeneration) == ("t", 7)
        scene.reader.close()


async def test_a_reader_that_the_store_has_led_beyond_what_was_heard_here_skips_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    """Another daemon works on the task: its events are in the store before this daemon hears of them."""
    store = SqliteStore(str(tmp_path / "tasks.db"))
    async with opened(store):
        scene = Scene(store)
        scene.publish("0")
        await scene.commit()
        elsewhere = LiveTask(scene.live.task(), 2, "me", store.owner_id, lambda live: None)
        for n in range(1, 7):
            elsewhere.publish(ArtifactChanged(Artifact("a", (Part(text=f"{n}"),)), append=True))
        assert await store.commit([elsewhere.next_change()]) == [None]
        with closing(EventReader(scene.live, CountedLog(store.event_log), after=1)) as reader:
            read = [*await reader.next_batch()]
            assert reader.position > scene.live.generation
            for logged in await store.event_log.read("t", after=2):
                scene.live.append_stored(logged)
            with anyio.fail_after(DEADLINE_SECONDS):
                while len(read) < 7:
                    read += await reader.next_batch()
        assert [logged.generation for logged in read] == [*range(2, 9)]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_task_is_not_deleted_for_its_age_before_its_last_reader_has_gone(kind: str, tmp_path: Path) -> None:
    time = 0.0
    made: MemoryStore | SqliteStore = (
        MemoryStore(StoreLimits(retention=Retention(max_seconds=1)), clock=lambda: time)
        if kind == "memory"
        else SqliteStore(str(tmp_path / "tasks.db"), Retention(max_seconds=1), clock=lambda: time)
    )
    async with opened(made):
        scene = await Scene.begin(made)
        second = EventReader(scene.live, made.event_log)
        scene.end()
        await scene.commit()
        time = 60.0
        for reader in (scene.reader, second):
            if isinstance(made, SqliteStore):
                await made.delete_expired_tasks()
            assert await made.load("t") is not None
            reader.close()
            reader.close()
        if isinstance(made, SqliteStore):
            await made.delete_expired_tasks()
        assert await made.load("t") is None


async def test_tasks_that_are_read_do_not_push_others_out_of_the_memory_store() -> None:
    store = MemoryStore(StoreLimits(retention=Retention(1)))
    scene = await Scene.begin(store)
    scene.end()
    await scene.commit()
    for name in "uv":
        other = Scene(store, task_id=name)
        other.end()
        await other.commit()
    assert [await store.load(name) is not None for name in "tuv"] == [True, False, True]
    scene.reader.close()
    assert [await store.load(name) is not None for name in "tuv"] == [False, False, True]


# -- any course of events ----------------------------------------------------------------------------------------

STEPS = st.lists(st.sampled_from(["publish", "publish", "commit", "let go", "hold", "turn", "forget"]), max_size=40)


async def run(store: TaskStore, steps: Sequence[str], forget: Callable[[], None], *, buffered: bool) -> bool:
    """Returns whether the reader got all."""
    scene = await Scene.begin(store, buffered=buffered)
    published: list[TaskEvent] = []

    async def step(name: str) -> None:
        match name:
            case "publish":
                scene.publish(f"{len(published)}")
                published.append(scene.live.pending[-1])
            case "commit":
                await scene.commit()
            case "let go":
                scene.go_on.set()
            case "hold":
                scene.go_on = anyio.Event()
            case _:
                await anyio.lowlevel.checkpoint()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(scene.follow)
            held = [scene.go_on]
            for name in (*steps, "commit"):
                await step(name)
                held.append(scene.go_on)
            scene.end()
            published.append(scene.live.pending[-1])
            await scene.commit()
            if "forget" in steps:
                forget()
            for event in held:
                event.set()
    scene.reader.close()
    scene.check(published)
    return scene.lost is None


@given(STEPS, st.booleans(), st.booleans())
def test_a_reader_over_the_memory_store_gets_all_events_or_an_error(
    steps: list[str], buffered: bool, keeps: bool
) -> None:
    limits = StoreLimits(log_events=4, ended_bytes=10**6 if keeps else 0)

    async def main() -> None:
        assert await run(MemoryStore(limits), steps, lambda: None, buffered=buffered) or not buffered

    anyio.run(main)


@settings(max_examples=40)
@given(STEPS, st.booleans())
def test_a_reader_over_the_sqlite_store_gets_all_events_or_an_error(steps: list[str], buffered: bool) -> None:
    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/tasks.db"
            async with opened(SqliteStore(path)) as store:
                has_all = await run(store, steps, lambda: delete_rows(path), buffered=buffered)
                assert has_all or not (buffered or "forget" not in steps)

    anyio.run(main)
