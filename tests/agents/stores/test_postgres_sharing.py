"""Several daemons on one PostgreSQL database: changes at once, what is queued, and what one hears of the others."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from discreet.a2a.types import PushConfig, TaskQuery
from discreet.agents.stores.interface import MESSAGE, QUEUED, CommitConflict, OwnerRequest, PushTarget, TaskStore
from support.postgres import Server
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

NewStore = Callable[..., Any]  # Any: the module of the store may not be importable


@pytest.fixture
def url(postgres: Server) -> str:
    """That of a database of the test's own."""
    return postgres.new_database()


@pytest.fixture
def new_store(url: str) -> NewStore:
    """Another daemon's store on the same database."""
    from discreet.agents.stores.postgres.store import PostgresStore

    return lambda address=url, **options: PostgresStore(address, **options)


@pytest.fixture
async def pair(new_store: NewStore) -> AsyncIterator[tuple[TaskStore, TaskStore]]:
    """Two daemons."""
    async with opened(new_store()) as one, opened(new_store()) as other:
        yield one, other


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
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {_CLAIM}", (5, "x")).fetchall())
    assert "tasks_queued" in plan and "Seq Scan" not in plan
