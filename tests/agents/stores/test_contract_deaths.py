"""Daemons that are killed amid commits, and daemons that change the same tasks at once: no acknowledged change is lost. Each is a
process, on every store that daemons share."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import anyio
import pytest

from discreet.a2a.types import Task, TaskQuery, TaskState
from discreet.agents.stores.interface import StoredTask, TaskStore
from support.mounts import LIBRARY
from support.places import NewStore
from support.programs import environment
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, current
from support.waits import until

pytestmark = pytest.mark.anyio

BEGINNING = """
import os, sys
import anyio
from discreet.a2a.types import *
from discreet.agents.stores.{kind}.store import {name} as Store
from support.task_changes import *
from discreet.a2a.task import apply_events

async def work(store, name):
    {work}

async def main():
    store = Store(sys.argv[1])
    await store.open()
    async with anyio.create_task_group() as group:
        for n in range(int(sys.argv[3])):
            group.start_soon(work, store, sys.argv[2] + "-" + str(n))
    await store.close()

anyio.run(main)
"""

COMMITS_AND_TELLS = """
    n = 0
    while True:
        n += 1
        task = a_task(f"{name}-{n}")
        await commit_all(store, change(task, owner=store.owner_id))
        generation = 1
        for step in range(2, 9):
            state = TaskState.COMPLETED if step == 8 else TaskState.WORKING
            events = (said(str(generation + 1)), status_changed(state), said(str(generation + 3)))
            owner = None if step == 8 else store.owner_id
            await commit_all(store, change(task, *events, expected=generation, owner=owner, snapshot=step % 3 == 0))
            task = apply_events(task, events)
            generation += 3
            os.write(1, f"{task.id} {generation}\\n".encode())
"""

TAKES_TURNS = """
    turns = 20
    while turns:
        stored = await store.load("ab"[turns % 2])
        more = change(current(stored), said(sys.argv[2]), expected=stored.generation, snapshot=turns % 5 == 0)
        (refusal,) = await store.commit([more])
        turns -= refusal is None
"""

CLASSES = {"sqlite": "SqliteStore", "postgres": "PostgresStore", "redis": "RedisStore"}


@pytest.fixture
def place(kind: str, shared: NewStore) -> tuple[str, Any, str]:
    """The kind of a store, how another daemon's is made, and its address. Any: its module may not be importable."""
    made: Any = shared
    return kind, made, made.args[0]


def start(kind: str, work: str, address: str, name: str, tasks: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", BEGINNING.format(kind=kind, name=CLASSES[kind], work=work)]
    return subprocess.Popen(
        [*command, address, name, str(tasks)],
        env=environment(LIBRARY),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )


def acknowledged_until_killed(kind: str, address: str, name: str, lines: int) -> dict[str, int]:
    """Kill a writing daemon after so many lines. Returns the generation that it acknowledged for each task."""
    with start(kind, COMMITS_AND_TELLS, address, name, 8) as process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        *rest, _cut = process.stdout.read().split("\n")
    return {task_id: int(generation) for task_id, generation in map(str.split, (*told, *rest))}


def check(stored: StoredTask | None) -> None:
    """Its messages are numbered by their generations, and each commit of three events is complete."""
    assert stored is not None and stored.generation % 3 == 1
    numbers = [logged.generation for logged in stored.later_events]
    assert numbers == [*range(stored.snapshot_generation + 1, stored.generation + 1)]
    spoken = [message.message_id for message in current(stored).history[1:]]
    assert spoken == [str(n) for n in range(2, stored.generation + 1) if n % 3 != 0]


async def test_acknowledged_commits_survive_a_kill_at_any_moment(place: tuple[str, Any, str]) -> None:
    kind, new_store, address = place
    seed = random.Random(20260101)
    kept: dict[str, int] = {}
    for turn in range(3 if kind == "sqlite" else 1):
        kept |= await anyio.to_thread.run_sync(
            acknowledged_until_killed, kind, address, str(turn), seed.randrange(1, 300)
        )
        async with opened(new_store()) as store:
            for task_id, generation in kept.items():
                stored = await store.load(task_id)
                assert stored is not None and stored.generation >= generation
            tasks = await everything(store)
            assert kept.keys() <= {task.id for task in tasks}
            for task in tasks:
                check(await store.load(task.id))
            live = sorted(task.id for task in tasks if task.status.state is not TaskState.COMPLETED)

            async def lists_the_live(store: TaskStore = store, live: list[str] = live) -> bool:
                return sorted(await store.list_orphans()) == live

            await until(lists_the_live)  # a lease takes seconds to run out


async def everything(store: TaskStore) -> list[Task]:
    found: list[Task] = []
    token = ""
    while True:
        page = await store.list(TaskQuery(scope="me", page_size=100, page_token=token))
        found += page.tasks
        if not (token := page.next_page_token):
            assert page.total_size == len(found)
            return found


async def test_daemons_that_change_the_same_tasks_lose_no_change(place: tuple[str, Any, str]) -> None:
    kind, new_store, address = place
    async with opened(new_store()) as store:
        await commit_all(store, *(change(a_task(name)) for name in "ab"))
        daemons = [start(kind, TAKES_TURNS, address, who, 4) for who in ("one", "two")]
        for daemon in daemons:
            await anyio.to_thread.run_sync(daemon.communicate)
            assert daemon.returncode == 0
        spoken = [message.message_id for name in "ab" for message in current(await store.load(name)).history[1:]]
        assert spoken.count("one") == spoken.count("two") == 4 * 20
