"""One task is damaged, by something else than a store: kinds of damage × calls, on every store that daemons share.

Only calls for that task may fail, and they say so. No call hangs, none gives another task's content, and reads go on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, ids, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what is found in a store does not depend on it."""
    return "asyncio"


T_KEY: Final = "(SELECT key FROM {}tasks WHERE id = 't')"
ONE_SQL: Final = {
    "no snapshot": "DELETE FROM {}snapshots WHERE task_key = " + T_KEY,
    "a snapshot of another task": "UPDATE {}snapshots SET body = (SELECT body FROM {}snapshots WHERE task_key ="
    " (SELECT key FROM {}tasks WHERE id = 'a')) WHERE task_key = " + T_KEY,
    "no events": "DELETE FROM {}events WHERE task_key = " + T_KEY,
    "an event less": "DELETE FROM {}events WHERE last_generation = 3 AND task_key = " + T_KEY,
}
SQLITE: Final = {name: statement.format(*[""] * 9) for name, statement in ONE_SQL.items()} | {
    "a snapshot that is none": "UPDATE snapshots SET body = x'c1' WHERE task_key = (SELECT key FROM tasks WHERE id = 't')",
    "a snapshot that is text": "UPDATE snapshots SET body = 'x' WHERE task_key = (SELECT key FROM tasks WHERE id = 't')",
    "events that are none": "UPDATE events SET bodies = x'c1' WHERE task_key = (SELECT key FROM tasks WHERE id = 't')",
    "another snapshot": "UPDATE snapshots SET body = CAST(replace(body, 'TASK', 'task') AS BLOB) WHERE task_key ="
    " (SELECT key FROM tasks WHERE id = 't')",
    "another event": "UPDATE events SET bodies = CAST(replace(bodies, '2', '3') AS BLOB) WHERE task_key ="
    " (SELECT key FROM tasks WHERE id = 't')",
    "events of other numbers": "UPDATE events SET first_generation = first_generation + 1 WHERE task_key ="
    " (SELECT key FROM tasks WHERE id = 't')",
    "another owner": "UPDATE tasks SET owner = 'x' WHERE id = 't'",
    "another state": "UPDATE tasks SET state = 3 WHERE id = 't'",
    "another generation": "UPDATE tasks SET generation = 1 WHERE id = 't'",
    "an older snapshot generation": "UPDATE tasks SET snapshot_generation = 0 WHERE id = 't'",
    "another context": "UPDATE tasks SET context_id = 'x' WHERE id = 't'",
    "a context that is no text": "UPDATE tasks SET context_id = x'00' WHERE id = 't'",
    "a text that is not UTF-8": "UPDATE tasks SET status_timestamp = CAST(x'ff' AS TEXT) WHERE id = 't'",
    "a number that is none": "UPDATE tasks SET generation = 'x' WHERE id = 't'",
    "an end that is no time": "UPDATE tasks SET ended_ms = 'x' WHERE id = 't'",
}
POSTGRES: Final = {name: statement.format(*["discreet."] * 9) for name, statement in ONE_SQL.items()} | {
    "a snapshot that is none": "UPDATE discreet.snapshots SET body = '\\xc1' WHERE task_key ="
    " (SELECT key FROM discreet.tasks WHERE id = 't')",
    "events that are none": "UPDATE discreet.events SET bodies = '\\xc1' WHERE task_key ="
    " (SELECT key FROM discreet.tasks WHERE id = 't')",
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
    options: Mapping[str, Any] = {"retention": Retention(max_tasks=2)}
    if kind == "sqlite":
        from discreet.agents.stores.sqlite.store import SqliteStore

        path = str(folder / "tasks.db")
        return partial(SqliteStore, path, **options), partial(run_sql, path, SQLITE[name])
    if kind == "postgres":
        server = request.getfixturevalue("postgres")
        import psycopg

        from discreet.agents.stores.postgres.store import PostgresStore

        url = server.new_database()

        def run() -> None:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(POSTGRES[name])

        return partial(PostgresStore, url, **options), run
    redis_server = request.getfixturevalue("redis_server")
    from discreet.agents.stores.redis.store import RedisStore

    url = redis_server.new_store()
    prefix = url.rpartition("=")[2]

    def send() -> None:
        client = redis_server.client()
        command, key, *rest = REDIS[name]
        if command == "SET":
            client.delete(f"{{{prefix}}}:{key}")
        client.execute_command(command, f"{{{prefix}}}:{key}", *rest)

    return partial(RedisStore, url, **options), send


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
