"""One task is damaged, by something else than a store: kinds of damage × calls, on every store that daemons share.

Only calls for that task may fail, and they say so. No call hangs, none gives another task's content, and reads go on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import pytest

from discreet.a2a.types import PushConfig, TaskQuery, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import (
    CANCEL,
    QUEUED,
    CommitConflict,
    DamagedTask,
    LogTruncatedError,
    OwnerRequest,
    PushTarget,
    StoreError,
    TaskStore,
)
from support.logged_events import LoggedEvents
from support.places import places_of
from support.redis import Server
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, ids, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


OF_T: Final = "WHERE task_key = (SELECT key FROM {}tasks WHERE id = 't')"
ONE_SQL: Final = {
    "no snapshot": f"DELETE FROM {{}}snapshots {OF_T}",
    "a snapshot of another task": "UPDATE {}snapshots SET body = (SELECT body FROM {}snapshots WHERE task_key ="
    f" (SELECT key FROM {{}}tasks WHERE id = 'a')) {OF_T}",
    "no events": f"DELETE FROM {{}}events {OF_T}",
    "an event less": f"DELETE FROM {{}}events {OF_T} AND last_generation = 3",
}
SQLITE: Final = {name: statement.format(*[""] * 9) for name, statement in ONE_SQL.items()} | {
    name: f"UPDATE {change} " + ("WHERE id = 't'" if change.startswith("tasks") else OF_T.format(""))
    for name, change in {
        "a snapshot that is none": "snapshots SET body = x'c1'",
        "events that are none": "events SET bodies = x'c1'",
        "another snapshot": "snapshots SET body = CAST(replace(body, 'TASK', 'task') AS BLOB)",
        "another event": "events SET bodies = CAST(replace(bodies, '2', '3') AS BLOB)",
        "events of other numbers": "events SET first_generation = first_generation + 1",
        "another owner": "tasks SET owner = 'x'",
        "another generation": "tasks SET generation = 1",
        "a context that is no text": "tasks SET context_id = x'00'",
        "a text that is not UTF-8": "tasks SET status_timestamp = CAST(x'ff' AS TEXT)",
        "a number that is none": "tasks SET generation = 'x'",
        "an end that is no time": "tasks SET ended_ms = 'x'",
    }.items()
}
POSTGRES: Final = {name: statement.format(*["discreet."] * 9) for name, statement in ONE_SQL.items()} | {
    "a snapshot that is none": f"UPDATE discreet.snapshots SET body = '\\xc1' {OF_T}".format("discreet."),
    "events that are none": f"UPDATE discreet.events SET bodies = '\\xc1' {OF_T}".format("discreet."),
}
REDIS: Final = {
    "no snapshot": ("HDEL", "task:t", "snapshot"),
    "no generation": ("HDEL", "task:t", "generation"),
    "a snapshot that is none": ("HSET", "task:t", "snapshot", b"\xc1"),
    "a task of another type": ("SET", "task:t", "x"),
    "events of another type": ("SET", "events:t", "x"),
    "no events": ("DEL", "events:t"),
    "a generation that is no number": ("HSET", "task:t", "generation", "x"),
    "an evicted task": ("DEL", "task:t"),
}


class Damaged(NamedTuple):
    """Two daemons on a store with the tasks `a`, `t` and `z`. `harm()` damages `t`."""

    ours: TaskStore
    theirs: TaskStore
    harm: Callable[[], None]


def run_sql(path: str, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def of_kind(
    kind: str, name: str, request: pytest.FixtureRequest, folder: Path
) -> tuple[Callable[[], Any], Callable[[], None]]:
    """How a store is made, and how it is damaged. Any: the store's class may not be importable."""
    made: Any = partial(places_of(kind, request)(folder).new_store, retention=Retention(max_tasks=2))
    (address,) = made.args
    if kind == "sqlite":
        return made, partial(run_sql, address, SQLITE[name])
    if kind == "redis":
        return made, partial(run_redis, request.getfixturevalue("redis_server"), address, *REDIS[name])

    def run() -> None:
        server = request.getfixturevalue("postgres")
        with server.connect(address.rpartition("/")[2]) as connection:
            connection.execute(POSTGRES[name])

    return made, run


def run_redis(server: Server, address: str, command: str, key: str, *more: Any) -> None:
    client, name = server.client(), f"{{{address.rpartition('=')[2]}}}:{key}"
    if command == "SET":
        client.delete(name)
    client.execute_command(command, name, *more)


CASES: Final = [
    (kind, name) for kind, table in (("sqlite", SQLITE), ("postgres", POSTGRES), ("redis", REDIS)) for name in table
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
async def damaged(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Damaged]:
    new_store, harm = of_kind(*request.param, request, tmp_path)
    async with opened(new_store()) as ours, opened(new_store()) as theirs:
        for name in "atz":
            working = a_task(name, state=TaskState.WORKING)
            await commit_all(ours, change(working, snapshot=True, owner=ours.owner_id))
            for n in range(1, 4):
                await commit_all(ours, change(working, said(f"{n}"), expected=n, owner=ours.owner_id))
            assert await ours.put_push_target(name, PushTarget(PushConfig("https://example.org", "p", name), "1.0"))
        yield Damaged(ours, theirs, harm)


async def test_the_list_leaves_it_out_and_says_so_and_later_reads_see_later_changes(
    damaged: Damaged, logged: LoggedEvents
) -> None:
    ours, theirs, harm = damaged
    harm()
    with anyio.fail_after(DEADLINE_SECONDS):
        for store in (ours, theirs):
            for _ in range(2):
                page = await store.list(TaskQuery(scope="me"))
                assert [task.id for task in page.tasks] == ["z", "a"]
                assert [each.id for each in page.unreadable] in (["t"], [])
        assert logged.names() == ["store.failed"] * 2
        for size in (1, 2):  # page by page
            seen: list[str] = []
            token = ""
            while True:
                page = await ours.list(TaskQuery(scope="me", page_size=size, page_token=token))
                seen += [task.id for task in page.tasks]
                token = page.next_page_token
                if not token:
                    break
            assert seen == ["z", "a"]
        for n, store in enumerate((theirs, ours)):
            await commit_all(store, change(a_task(f"new-{n}")))
            assert f"new-{n}" in await ids(ours)
            assert f"new-{n}" in await ids(theirs)
            assert await ours.load(f"new-{n}") is not None


async def test_calls_for_it_fail_honestly_and_no_other_call_fails_or_hangs(damaged: Damaged) -> None:
    ours, theirs, harm = damaged
    harm()
    mine: list[Callable[[], Awaitable[object]]] = [
        lambda: ours.load("t"),
        lambda: ours.event_log.read("t", after=1),
        lambda: ours.load_push_targets("t"),
        lambda: ours.send_owner_request(OwnerRequest("t", CANCEL)),
        lambda: ours.put_push_target("t", PushTarget(PushConfig("https://example.org", "q", "t"), "1.0")),
        lambda: ours.delete_push_target("t", "q"),
    ]
    working = partial(a_task, state=TaskState.WORKING)
    with anyio.fail_after(DEADLINE_SECONDS):
        for call in mine:
            try:
                await call()
            except (StoreError, LogTruncatedError):
                pass
        with_it, without = await ours.commit(
            [
                change(working("t"), said("x"), expected=4, owner=ours.owner_id),
                change(working("a"), said("x"), expected=4, owner=ours.owner_id),
            ]
        )
        assert without is None
        assert with_it is None or isinstance(with_it, (DamagedTask, CommitConflict))
        for name, generation in (("a", 5), ("z", 4)):
            stored = await theirs.load(name)
            assert stored is not None and stored.generation == generation
            assert len(await theirs.event_log.read(name, after=1)) == generation - 1
            assert len(await theirs.load_push_targets(name)) == 1
            assert await theirs.send_owner_request(OwnerRequest(name, CANCEL))
        assert {"a", "z"} <= {request.task_id for request in await ours.take_owner_requests()}
        assert {"a", "z"} <= {*await ours.list_owned()}
        await commit_all(ours, change(a_task("q"), owner=QUEUED))
        assert await theirs.count_queued() == 1
        assert list(await theirs.claim(5)) == ["q"]
        assert list(await ours.list_orphans()) in ([], ["t"])
        assert sum((await ours.count()).values()) in (3, 4)
        await ours.probe()


async def test_its_content_is_never_that_of_another_task(damaged: Damaged) -> None:
    ours, _, harm = damaged
    before = await ours.load("t")
    harm()
    try:
        stored = await ours.load("t")
    except StoreError:
        return
    assert stored in (None, before)


async def test_tasks_that_have_ended_are_still_deleted(damaged: Damaged) -> None:
    store: Any = damaged.ours  # Any: the stores' own call
    for name in "atz":
        ended = a_task(name, state=TaskState.COMPLETED)
        await commit_all(store, change(ended, said("end"), expected=4, snapshot=name != "t"))
    damaged.harm()
    with anyio.fail_after(DEADLINE_SECONDS):
        for n in range(3):
            await commit_all(store, change(a_task(f"{n}", state=TaskState.COMPLETED)))
        for _ in range(3):
            await store.delete_expired_tasks()
        left = await ids(store)
    assert "2" in left and "z" not in left
