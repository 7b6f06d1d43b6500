"""The PostgreSQL store: which databases open and which are refused, what persists, and what a daemon hears of the others."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from discreet.a2a.types import ExecutionBegun, PushConfig, StatusChanged, TaskCreated, TaskQuery, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import (
    MESSAGE,
    QUEUED,
    CommitConflict,
    OwnerRequest,
    PushTarget,
    StoreError,
    TaskStore,
)
from discreet.agents.stores.sql import conditions_of
from discreet.errors.redaction import scrub
from support.places import NewStore, store_at
from support.postgres import PASSWORD, WITH_PASSWORD, Server
from support.sqlite_files import opened, refusal
from support.task_changes import a_task, change, change_to, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

KINDS = ["postgres"]
COMPLETED = TaskState.COMPLETED


# -- opening ---------------------------------------------------------------------------------------------------


async def test_a_database_that_is_not_there_is_refused(url: str) -> None:
    assert "does not exist" in await refusal(store_at(f"{url}nowhere"))


async def test_a_server_that_is_not_there_is_refused_and_the_password_is_not_shown() -> None:
    line = await refusal(store_at("postgresql://me:s3cret-of-mine@127.0.0.1:1/tasks"))
    assert "127.0.0.1" in line and "s3cret" not in line


async def test_a_password_comes_by_any_way_of_libpq_and_a_wrong_one_is_refused(
    postgres: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.url(url.rpartition("/")[2], WITH_PASSWORD)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    assert "password" in await refusal(store_at(address))
    line = await refusal(store_at(address.replace("@", ":wr0ng-one@")))
    assert "authentication failed" in line and "wr0ng" not in line
    async with opened(store_at(address.replace("@", f":{PASSWORD}@"))) as store:
        assert PASSWORD not in scrub(f"it is {PASSWORD}")
        await store.commit([change(a_task("t"))])
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    async with opened(store_at(address)) as store:
        assert await store.load("t") is not None


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret%zz@h/d",
        "postgresql://me:s3@cret@h/d",
        "postgresql://h/d?nothing=s3cret",
        "postgres://[s3cret",
    ],
)
async def test_an_address_that_is_wrong_is_refused_and_nothing_of_it_shown(address: str) -> None:
    with pytest.raises(StoreError) as error:
        store_at(address)
    assert "s3cret" not in str(error.value) and "cret" not in str(error.value)


async def test_a_database_with_another_encoding_is_refused(postgres: Server) -> None:
    with postgres.connect() as connection:
        connection.execute("DROP DATABASE IF EXISTS latin")
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    assert "UTF8" in await refusal(store_at(postgres.url("latin")))


async def test_a_store_of_another_version_is_refused(postgres: Server, new_store: NewStore, url: str) -> None:
    with postgres.connect(url.rpartition("/")[2]) as connection:
        connection.execute("UPDATE discreet.store SET version = version + 1")
    assert "is a store of version 2" in await refusal(new_store())


async def test_a_role_without_privileges_is_refused(postgres: Server, url: str) -> None:
    name = url.rpartition("/")[2]
    with postgres.connect(name) as connection:
        connection.execute(f"DROP ROLE IF EXISTS r_{name}")
        connection.execute(f"CREATE ROLE r_{name} LOGIN")
    assert "privilege" in await refusal(store_at(postgres.url(name, f"r_{name}")))


async def test_a_closed_store_leaves_no_session(postgres: Server, new_store: NewStore, url: str) -> None:
    async with opened(new_store()):
        pass
    with postgres.connect() as connection:
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        await until(lambda: connection.execute(count, (url.rpartition("/")[2],)).fetchone() == (0,))


# -- what stays, and what goes ---------------------------------------------------------------------------------


async def test_of_a_caller_whose_tasks_are_all_deleted_no_count_stays(
    postgres: Server, new_store: NewStore, url: str
) -> None:
    async with opened(new_store()) as ours, opened(new_store(retention=Retention(max_tasks=1))) as theirs:
        new, ended = a_task("gone"), a_task("gone", COMPLETED)
        await ours.commit([change_to(new, 0, [TaskCreated(new)], scope="gone")])
        await theirs.commit([change_to(ended, 1, [StatusChanged(ended.status)], scope="gone")])
        await theirs.commit([change(a_task("t", COMPLETED))])
        await theirs.delete_expired_tasks()
        assert (await theirs.count())[COMPLETED] == 1
    with postgres.connect(url.rpartition("/")[2]) as connection:
        scopes = connection.execute(
            "SELECT DISTINCT scope FROM discreet.task_counts WHERE tasks <> 0 OR scope = 'gone'"
        )
        assert sorted(scope for (scope,) in scopes) == ["\x1a", "me"]


@pytest.mark.parametrize("token", ["", "30"])
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"context_id": "context"},
        {"state": TaskState.SUBMITTED},
        {"context_id": "context", "state": TaskState.SUBMITTED},
    ],
    ids=str,
)
async def test_a_page_is_read_without_a_table_scan_or_a_sort(
    new_store: NewStore, url: str, query: dict[str, Any], token: str
) -> None:
    from discreet.agents.stores.postgres.session import connect, read_address

    async with opened(new_store()) as store:
        await store.commit([change(a_task(f"{n}")) for n in range(50)])
        page = await store.list(TaskQuery(scope="me", page_size=5, page_token=token, **query))
        assert len(page.tasks) == 5
    conditions, values = conditions_of(TaskQuery(scope="me", **query))
    with connect(read_address(url)) as connection:
        connection.execute("ANALYZE discreet.tasks")
        rows = connection.execute(
            f"EXPLAIN SELECT key FROM discreet.tasks WHERE {conditions} AND sequence < 100 ORDER BY sequence DESC LIMIT 6",
            values,
        ).fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert "Index" in plan and "Sort" not in plan and "Seq Scan" not in plan


async def test_the_requests_to_a_daemon_are_found_from_its_tasks_however_many_tasks_are_queued(
    new_store: NewStore, url: str
) -> None:
    from discreet.agents.stores.postgres.reader import HAS_REQUESTS
    from discreet.agents.stores.postgres.session import connect, read_address
    from discreet.agents.stores.postgres.writer import TAKE_REQUESTS

    async with opened(new_store()) as store:
        await store.commit(
            [
                change(a_task(f"{n}"), owner=QUEUED, requests=(OwnerRequest(f"{n}", MESSAGE, b"hello"),))
                for n in range(500)
            ]
        )
        assert await store.claim(2) == ["0", "1"]
        with connect(read_address(url)) as connection:
            connection.execute("ANALYZE discreet.tasks, discreet.owner_requests")
            for statement in (HAS_REQUESTS, TAKE_REQUESTS):
                plan = connection.execute(f"EXPLAIN {statement}", (store.owner_id,)).fetchall()
                assert any("Index Cond: (task_key = own.key)" in line for (line,) in plan), plan
        assert [each.task_id for each in await store.take_owner_requests()] == ["0", "1"]


async def test_a_pooler_that_shares_sessions_is_found_out(url: str) -> None:
    """Two sessions of which the server's process is the same."""
    from discreet.agents.stores.postgres.session import check_own_sessions, connect, read_address

    with connect(read_address(url)) as one, connect(read_address(url)) as other:
        check_own_sessions((one, other), "it")
        with pytest.raises(StoreError, match="session"):
            check_own_sessions((one, other, one), "it")


# -- what is missing in the database ---------------------------------------------------------------------------


MISSING = [
    *(f"DROP TABLE discreet.{table}" for table in ("tasks", "snapshots", "events", "push_targets", "owner_requests")),
    *(f"DROP TABLE discreet.{table}" for table in ("writers", "task_counts")),
    "DROP SEQUENCE discreet.changes",
    "ALTER TABLE discreet.tasks DROP COLUMN ended_ms",
    "ALTER TABLE discreet.events RENAME COLUMN bodies TO body",
]


@pytest.mark.parametrize("statement", MISSING)
async def test_a_store_that_lacks_something_is_refused_and_makes_a_running_daemon_unready(
    new_store: NewStore, url: str, statement: str
) -> None:
    import psycopg

    async with opened(new_store()) as store:
        await store.probe()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement)
        with pytest.raises(StoreError, match="is not a store of this version"):
            await store.probe()
        assert "is not a store of this version" in await refusal(new_store())


# -- changes ---------------------------------------------------------------------------------------------------


async def test_of_tasks_that_two_daemons_create_and_change_at_once_each_change_is_made_once(
    pair: tuple[TaskStore, TaskStore],
) -> None:
    """Both commit all tasks, in different orders, in one transaction each: neither waits for the other for ever."""
    made: list[tuple[str, int]] = []

    async def contend(store: TaskStore, names: list[str]) -> None:
        for expected in range(4):
            tasks = [change(a_task(name), *([said("x")] if expected else []), expected=expected) for name in names]
            refusals = await store.commit(tasks)
            made.extend((name, expected) for name, refusal in zip(names, refusals, strict=True) if refusal is None)
            assert all(refusal is None or isinstance(refusal, CommitConflict) for refusal in refusals)

    names = [f"{n}" for n in range(20)]
    async with anyio.create_task_group() as group:
        group.start_soon(contend, pair[0], names)
        group.start_soon(contend, pair[1], names[::-1])
    assert len(made) == len(set(made))
    for name in names:
        stored = await pair[0].load(name)
        assert stored is not None
        assert stored.generation == max(expected for task, expected in made if task == name) + 1
    assert (await pair[0].list(TaskQuery(scope="me"))).total_size == len(names)


async def test_of_the_changes_of_others_a_daemon_hears_which_tasks_they_concern(
    pair: tuple[TaskStore, TaskStore],
) -> None:
    ours, theirs = pair
    with anyio.fail_after(DEADLINE_SECONDS):
        await ours.commit([change(a_task("own"))])
        await theirs.commit([change(a_task("t\0")), change(a_task("u"))])
        heard = await ours.wait_for_changes(0.0)
        assert [heard.may_concern(name) for name in ("t\0", "u", "own", "t")] == [True, True, False, False]
        assert not heard.requests and not heard.queued
        await theirs.put_push_target("u", PushTarget(PushConfig("https://example.org", "p"), "1.0"))
        heard = await ours.wait_for_changes(0.0)
        assert heard.may_concern("u") and not heard.may_concern("t\0")


async def test_what_a_daemon_committed_and_did_not_tell_before_it_died_is_heard_of_when_it_has_gone(
    new_store: NewStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.postgres.writer import PostgresWriter

    def die(writer: PostgresWriter, connection: Any, notice: Any) -> None:
        """The process ends between the commit and the notification."""

    monkeypatch.setattr("discreet.agents.stores.server_store.HEARTBEAT_SECONDS", 0.05)
    with anyio.fail_after(DEADLINE_SECONDS):
        async with opened(new_store()) as theirs, opened(new_store()) as ours:
            with monkeypatch.context() as patched:
                patched.setattr(PostgresWriter, "_notify", die)
                await theirs.commit([change(a_task("t"))])
            await theirs.close()
            assert (await ours.wait_for_changes(0.0)).may_concern("t")


async def test_locks_of_other_programs_are_no_daemons(new_store: NewStore, url: str) -> None:
    from discreet.agents.stores.postgres.session import connect, held_keys, read_address, shown_names

    async with opened(new_store()) as store:
        with connect(read_address(url)) as ours, connect(read_address(url)) as program:
            before, locked = shown_names(ours), held_keys(ours)
            assert sum(store.owner_id in name for name in before) == 1
            program.execute("SELECT pg_advisory_lock(4711)")
            assert held_keys(ours) - locked == {4711}
            assert shown_names(ours) == before


async def test_more_tasks_than_fit_into_a_notification_all_count_as_changed(pair: tuple[TaskStore, TaskStore]) -> None:
    ours, theirs = pair
    assert set(await theirs.commit([change(a_task(f"{n}")) for n in range(1000)])) == {None}
    with anyio.fail_after(DEADLINE_SECONDS):
        heard = await ours.wait_for_changes(0.0)
    assert heard.may_concern("0") and heard.may_concern("999") and heard.may_concern("another")
    assert not heard.requests and not heard.queued


async def test_requests_and_queued_tasks_are_told_to_who_may_want_them(pair: tuple[TaskStore, TaskStore]) -> None:
    ours, theirs = pair
    body = b"x" * 10_000  # more than an index takes

    async def heard() -> tuple[bool, bool]:
        with anyio.fail_after(DEADLINE_SECONDS):
            changes = await ours.wait_for_changes(0.0)
        return changes.requests, changes.queued

    message = OwnerRequest("t", MESSAGE, body)
    assert await theirs.commit([change(a_task("t"), owner=QUEUED, requests=(message,))]) == [None]
    assert await heard() == (False, True)
    assert await ours.claim(9) == ["t"]
    assert list(await ours.take_owner_requests()) == [message]
    assert await theirs.send_owner_request(message)
    assert await theirs.send_owner_request(message)
    assert await theirs.send_owner_request(OwnerRequest("t", MESSAGE, body + b"y"))
    assert await heard() == (True, False)
    assert len(await ours.take_owner_requests()) == 2


async def test_a_notification_that_no_daemon_has_sent_may_mean_anything(
    postgres: Server, pair: tuple[TaskStore, TaskStore], url: str
) -> None:
    for payload in ("", "someone", "someone:", "someone::short"):
        with postgres.connect(url.rpartition("/")[2]) as connection:
            connection.execute("SELECT pg_notify('discreet', %s)", (payload,))
        with anyio.fail_after(DEADLINE_SECONDS):
            assert (await pair[0].wait_for_changes(0.0)).may_concern("t")


# -- the queue -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim_first", [True, False])
async def test_a_claim_and_a_change_in_one_transaction_follow_each_other(
    new_store: NewStore, claim_first: bool
) -> None:
    """The writer joins what is queued: whichever comes second finds what the first has done."""
    begun, go_on = threading.Event(), threading.Event()

    def hold_up(_: object) -> None:
        begun.set()
        assert go_on.wait(DEADLINE_SECONDS)

    async with opened(new_store()) as store:
        await store.commit([change(a_task(name), owner=QUEUED) for name in "tu"])
        cancelled = [change(a_task(name), said("x"), expected=1, previous_owner=QUEUED) for name in "tu"]
        queue = store._open_store.writer_thread._queue
        made: dict[str, Any] = {}

        async def claim() -> None:
            made["claim"] = list(await store.claim(1))

        async def commit() -> None:
            made["commit"] = await store.commit(cancelled)

        async with anyio.create_task_group() as group:
            group.start_soon(store._write, hold_up)
            await until(begun.is_set)
            for number, work in enumerate((claim, commit) if claim_first else (commit, claim), 1):
                group.start_soon(work)
                await until(lambda expected=number: queue.qsize() == expected)
            go_on.set()
        assert made["claim"] == (["t"] if claim_first else [])
        assert made["commit"] == [CommitConflict(1, store.owner_id) if claim_first else None, None]
        stored = await store.load("t")
        assert (stored.owner, stored.generation) == ((store.owner_id, 1) if claim_first else (None, 2))


async def test_an_idle_daemon_that_looks_for_work_writes_nothing(
    postgres: Server, new_store: NewStore, url: str
) -> None:
    async with opened(new_store()) as store:
        with postgres.connect(url.rpartition("/")[2]) as connection:
            await store.commit([change(a_task("t"), owner=store.owner_id)])
            mark = "SELECT max(transaction) FROM discreet.writers"
            before = connection.execute(mark).fetchone()
            assert list(await store.claim(5)) == list(await store.take_owner_requests()) == []
            assert await store.count_queued() == 0
            assert connection.execute(mark).fetchone() == before


async def test_of_queued_tasks_none_is_looked_for_in_the_whole_table(new_store: NewStore, url: str) -> None:
    from discreet.agents.stores.postgres.session import connect, read_address
    from discreet.agents.stores.postgres.writer import _CLAIM

    async with opened(new_store()) as store:
        await store.commit([change(a_task(f"{n}"), owner=QUEUED if n % 2 else None) for n in range(50)])
    with connect(read_address(url)) as connection:
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {_CLAIM}", (5,)).fetchall())
    assert "tasks_queued" in plan and "Seq Scan" not in plan


# -- claims with which an execution begins --------------------------------------------------------------------


async def test_a_claim_brings_the_task_and_appends_that_its_execution_begins(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    asked = OwnerRequest("a", MESSAGE, b"1")
    target = PushTarget(PushConfig("https://example.com", id="p", task_id="a"), "1.0")
    await theirs.commit([change(a_task("a"), owner=QUEUED, requests=(asked,)), change(a_task("b"), owner=QUEUED)])
    await theirs.put_push_target("a", target)
    first, second = await ours.claim_begun(
        5, lambda stored: ExecutionBegun(0) if stored.snapshot.id == "a" else None, told=True
    )
    assert (first.task_id, first.begun, first.asked, [*first.push_targets]) == ("a", 2, True, [target])
    assert (second.task_id, second.begun, second.asked, [*second.push_targets]) == ("b", 0, False, [])
    for claimed in (first, second):
        assert claimed.stored == await theirs.load(claimed.task_id)
        assert claimed.stored.owner == ours.owner_id
    assert [each.event for each in await theirs.read("a", after=1)] == [ExecutionBegun(0)]
    assert await theirs.claim_begun(5, lambda _: ExecutionBegun(0), told=True) == []
    late = change(a_task("a"), said("too late"), expected=1, owner=None)
    assert await theirs.commit([late]) == [CommitConflict(2, ours.owner_id)]


async def test_others_hear_of_such_a_claim_within_a_heartbeat(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    await ours.commit([change(a_task("a"), owner=QUEUED)])
    assert (await theirs.wait_for_changes(0.0)).queued
    await ours.claim_begun(1, lambda _: ExecutionBegun(0), told=True)
    with anyio.fail_after(DEADLINE_SECONDS):
        assert (await theirs.wait_for_changes(0.0)).may_concern("a")


async def test_a_claimed_task_that_can_not_be_read_is_claimed_beside_the_others(
    postgres: Server, url: str, pair: tuple[Any, Any]
) -> None:
    ours, _ = pair
    await ours.commit([change(a_task(each), owner=QUEUED) for each in "ab"])
    with postgres.connect(url.rpartition("/")[2]) as connection:
        connection.execute(
            "DELETE FROM discreet.snapshots WHERE task_key = (SELECT key FROM discreet.tasks WHERE id = 'a')"
        )
    damaged, whole = await ours.claim_begun(2, lambda _: ExecutionBegun(0), told=True)
    assert (damaged.task_id, damaged.stored, damaged.begun) == ("a", None, 0)
    assert (whole.task_id, whole.begun) == ("b", 2)
    assert sorted(await ours.list_owned()) == ["a", "b"]
