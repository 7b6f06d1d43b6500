"""Daemons that are killed, and daemons that write at the same time: no acknowledged commit is lost."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from discreet.a2a.task import apply_events
from discreet.a2a.types import Task, TaskCreated, TaskQuery, TaskState, TaskStatus
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import StoredTask, TaskChange
from discreet.agents.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.anyio

_BEGINNING = """
import os, sys
import anyio
from discreet.a2a.task import apply_events
from discreet.a2a.types import *
from discreet.agents.stores.interface import *
from discreet.agents.stores.sqlite.store import SqliteStore

def change(task, expected, events, owner, snapshot):
    return TaskChange(task_id=task.id, expected_generation=expected, events=events, scope="me", context_id=task.context_id,
        state=task.status.state, status_timestamp="", owner=owner, snapshot=task if snapshot else None)

def said(text):
    return MessageAdded(Message(text, Role.USER, (Part(text=text),)))
"""

COMMITS_AND_TELLS = (
    _BEGINNING
    + """
async def work(store, name):
    n = 0
    while True:
        n += 1
        task = Task(f"{name}-{n}", "c", TaskStatus(TaskState.SUBMITTED))
        events = (TaskCreated(task),)
        expected = 0
        for step in range(1, 9):
            state = TaskState.COMPLETED if step == 7 else TaskState.WORKING
            task = apply_events(task, events)
            owner = None if step == 8 else store.owner_id
            assert await store.commit([change(task, expected, events, owner, snapshot=step % 3 == 0)]) == [None]
            expected += len(events)
            os.write(1, f"{task.id} {expected}\\n".encode())
            events = (said(str(expected + 1)), StatusChanged(TaskStatus(state)), said(str(expected + 3)))

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(work, store, f"{sys.argv[2]}-{n}")

anyio.run(main)
"""
)

TAKES_TURNS = (
    _BEGINNING
    + """
async def work(store, name, turns):
    while turns:
        stored = await store.load(name)
        task = apply_events(stored.snapshot, [logged.event for logged in stored.later_events])
        event = said(f"{sys.argv[2]}")
        task = apply_events(task, [event])
        result, = await store.commit([change(task, stored.generation, (event,), None, snapshot=turns % 5 == 0)])
        turns -= result is None

async def main():
    store = SqliteStore(sys.argv[1])
    await store.open()
    async with anyio.create_task_group() as group:
        for _ in range(4):
            for name in ("a", "b"):
                group.start_soon(work, store, name, int(sys.argv[3]))
    await store.close()

anyio.run(main)
"""
)


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )


def acknowledged_until_killed(path: str, name: str, lines: int) -> dict[str, int]:
    """Kill a writing daemon after so many lines. Returns the generation that it acknowledged for each task."""
    with start(COMMITS_AND_TELLS, path, name) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        *rest, _cut = process.stdout.read().split("\n")
    kept: dict[str, int] = {}
    for line in (*told, *rest):
        task_id, generation = line.split()
        kept[task_id] = int(generation)
    return kept


def check(stored: StoredTask) -> None:
    """Its messages are numbered by their generations, and each commit of three events is complete."""
    task = apply_events(stored.snapshot, [logged.event for logged in stored.later_events])
    assert [logged.generation for logged in stored.later_events] == [
        *range(stored.snapshot_generation + 1, stored.generation + 1)
    ]
    assert stored.generation % 3 == 1
    spoken = [message.message_id for message in task.history]
    assert spoken == [str(n) for n in range(2, stored.generation + 1) if n % 3 != 0]
    assert (stored.generation == 22) == (task.status.state is TaskState.COMPLETED)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the killed one's loop is what matters
async def test_acknowledged_commits_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = str(tmp_path / "tasks.db")
    seed = random.Random(20260101)
    kept: dict[str, int] = {}
    for turn in range(6):
        kept |= acknowledged_until_killed(path, str(turn), seed.randrange(1, 300))
        store = SqliteStore(path, Retention(1_000_000))
        await store.open()
        orphans = await store.list_orphans()
        listed: list[Task] = []
        token = ""
        while True:
            page = await store.list(TaskQuery(scope="me", page_size=100, page_token=token))
            listed += page.tasks
            if not (token := page.next_page_token):
                break
        assert page.total_size == len(listed)
        for task_id, generation in kept.items():
            stored = await store.load(task_id)
            assert stored is not None and stored.generation >= generation
            check(stored)
        live = [task.id for task in listed if task.status.state is not TaskState.COMPLETED]
        assert sorted(orphans) == sorted(live)
        assert kept.keys() <= {task.id for task in listed}
        await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["tasks.db"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_daemons_that_change_the_same_tasks_lose_no_change(tmp_path: Path) -> None:
    path, turns = str(tmp_path / "tasks.db"), 20
    store = SqliteStore(path)
    await store.open()
    for name in "ab":
        task = Task(name, "c", TaskStatus(TaskState.WORKING))
        assert await store.commit(
            [
                TaskChange(
                    task_id=name,
                    expected_generation=0,
                    events=(TaskCreated(task),),
                    scope="me",
                    context_id="c",
                    state=TaskState.WORKING,
                    status_timestamp="",
                    owner=None,
                )
            ]
        ) == [None]
    daemons = [start(TAKES_TURNS, path, who, str(turns)) for who in ("one", "two")]
    for daemon in daemons:
        daemon.communicate()
        assert daemon.returncode == 0
    for name in "ab":
        stored = await store.load(name)
        assert stored is not None and stored.generation == 1 + 2 * 4 * turns
        spoken = [
            message.message_id
            for message in apply_events(stored.snapshot, [e.event for e in stored.later_events]).history
        ]
        assert spoken.count("one") == spoken.count("two") == 4 * turns
    await store.close()
