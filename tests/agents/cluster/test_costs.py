"""What a task costs on PostgreSQL that a front passes on to a worker: commits, notifications and statements, which are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from discreet.agents.cluster import EventFollower
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.live_task import TaskCache
from discreet.agents.stores.interface import Changes
from support.executors import ME, Scripted, for_ever, request, task_of
from support.places import NewStore
from support.roles import FRONT, WORKER, Idle, begun
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

KINDS = ["postgres"]
TASKS = 5


async def at_once(context: RequestContext, events: TaskEvents) -> None:
    await events.artifact(context.text)
    await events.complete()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Those of all daemons of this process, as they are run."""
    import psycopg

    run: list[str] = []
    execute: Any = psycopg.Connection.execute  # Any: its overloads

    def counted(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        run.append(query if isinstance(query, str) else bytes(query).decode())
        return execute(self, query, *args, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    return run


def counts(statements: Sequence[str], **parts: str) -> Counter[str]:
    """How many statements have each of these parts."""
    return Counter(name for each in statements for name, part in parts.items() if part in each)


PARTS = {
    "commits": "discreet.writers (base",
    "notifications": "pg_notify",
    "writes of tasks and events": "discreet.tasks (key",
    "reads of many tasks": "AS wanted (id, after)",
    "reads of one task": "LEFT JOIN discreet.snapshots ON task_key = key WHERE id =",
    "reads of the events of one task": "before < %(size)s",
    "reads of push targets": "FROM discreet.push_targets JOIN",
}


async def test_a_short_task_of_a_front_is_three_commits_two_notifications_and_one_read(
    serving: Any, on_any_store: NewStore, statements: list[str]
) -> None:
    found = Counter[str]()
    async with (
        serving(Idle(), on_any_store(), role=FRONT) as front,
        serving(Scripted(at_once), on_any_store(), role=WORKER),
    ):
        with anyio.fail_after(DEADLINE_SECONDS):
            await task_of(front, request("first"))
            statements.clear()
            for number in range(TASKS):
                await task_of(front, request(str(number)))
        found = counts(statements, **PARTS)
    assert found["commits"] == 3 * TASKS  # stored, claimed and begun, ended
    assert found["reads of one task"] == found["reads of push targets"] == 0
    assert found["reads of many tasks"] + found["reads of the events of one task"] <= 2 * TASKS
    assert found["notifications"] <= 3 * TASKS  # the third where a task lasts longer than a heartbeat


async def test_those_who_follow_other_tasks_cost_no_statement(
    serving: Any, on_any_store: NewStore, statements: list[str]
) -> None:
    found = Counter[str]()
    async with (
        serving(Idle(), on_any_store(), role=FRONT) as front,
        serving(Scripted(for_ever), on_any_store(), role=WORKER),
        anyio.create_task_group() as followers,
    ):

        async def follow(task_id: str, is_there: anyio.Event) -> None:
            async for _ in front.subscribe(task_id, ME):
                is_there.set()

        with anyio.fail_after(DEADLINE_SECONDS):
            for number in range(TASKS):
                is_there = anyio.Event()
                followers.start_soon(follow, (await begun(front, str(number))).id, is_there)
                await is_there.wait()
            async with serving(Scripted(at_once), on_any_store()) as other:
                await task_of(other, request("first"))
                await anyio.sleep(0.2)  # until what was heard of the followed tasks is read
                statements.clear()
                for number in range(TASKS):
                    await task_of(other, request(f"other {number}"))
        found = counts(statements, **PARTS)
        followers.cancel_scope.cancel()
    assert found["commits"] == 2 * TASKS
    reads = [name for name in found if name.startswith("reads")]
    assert sum(found[name] for name in reads) == 0


async def test_the_news_of_many_tasks_are_one_read(on_any_store: NewStore, statements: list[str]) -> None:
    tasks = [a_task(f"t{number}") for number in range(20)]
    async with opened(on_any_store()) as theirs, opened(on_any_store()) as ours:
        cache = TaskCache(ours)
        follower = EventFollower(cache)
        await commit_all(theirs, *(change(task, owner=theirs.owner_id) for task in tasks))
        lives = [await cache.pin(task.id, None) for task in tasks]
        await commit_all(theirs, *(change(task, said("news"), expected=1, owner=theirs.owner_id) for task in tasks))
        statements.clear()
        follower.hear(Changes(lambda _: True))
        await follower.catch_up()
        assert [live.generation for live in lives] == [2] * len(tasks)
        assert counts(statements, **PARTS) == {"reads of many tasks": 1}
        assert {live.remote_owner for live in lives} == {theirs.owner_id}


async def test_only_tasks_that_are_named_are_read(on_any_store: NewStore) -> None:
    async with opened(on_any_store()) as theirs, opened(on_any_store()) as ours:
        cache = TaskCache(ours)
        follower = EventFollower(cache)
        await commit_all(theirs, *(change(a_task(each), owner=theirs.owner_id) for each in "ab"))
        await ours.wait_for_changes(0.0)
        first, second = [await cache.pin(each, None) for each in "ab"]
        await commit_all(theirs, change(a_task("b"), said("news"), expected=1, owner=theirs.owner_id))
        changes = await ours.wait_for_changes(0.0)
        assert changes.names is not None
        assert cache.find_named(changes.names, changes.name_of) == [second]
        follower.hear(changes)
        await follower.catch_up()
        assert (first.generation, second.generation) == (1, 2)
        cache.unpin(second)
        cache.evict(second)
        assert cache.find_named(changes.names, changes.name_of) == []
