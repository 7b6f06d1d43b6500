"""The PostgreSQL store while its server ends sessions, restarts, or is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import Task, TaskState, TaskStatus
from discreet.agents.stores.interface import CommitConflict, StoreUnavailableError, TaskStore
from support.postgres import Server, running_server
from support.sqlite_files import opened
from support.task_changes import change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that tests may restart."""
    with running_server() as server:
        yield server


@pytest.fixture
async def pair(server: Server) -> AsyncIterator[tuple[Any, Any]]:  # Any: the module of the store may not be importable
    """Two daemons on one database."""
    from discreet.agents.stores.postgres.store import PostgresStore

    url = server.new_database()
    async with opened(PostgresStore(url)) as one, opened(PostgresStore(url)) as other:
        yield one, other


def a_task(task_id: str) -> Task:
    return Task(task_id, "c", TaskStatus(TaskState.WORKING, timestamp="2026-01-01T00:00:00.000Z"))


def end_sessions(server: Server, store: Any, condition: str = "true") -> None:  # Any: as above
    """End those of one daemon."""
    from discreet.agents.stores.postgres.schema import AnyConnection

    opened = store._open_store
    connections: list[AnyConnection] = [
        session.connection for session in (opened.writing.session, opened.reading.session, opened.listening)
    ]
    pids = [connection.info.backend_pid for connection in connections]
    with server.connect() as connection:
        connection.execute(
            f"SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS ended (pid) WHERE {condition}", (pids,)
        )


async def test_a_daemon_that_lost_its_session_goes_on_with_its_tasks_under_a_new_name(
    server: Server, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    end_sessions(server, ours)
    assert await ours.commit([change(a_task("t"), said("x"), expected=1, owner=former)]) == [None]
    assert ours.owner_id != former
    stored = await theirs.load("t")
    assert (stored.generation, stored.owner) == (2, ours.owner_id)
    assert list(await theirs.list_orphans()) == []
    with anyio.fail_after(DEADLINE_SECONDS):
        while not (await ours.wait_for_changes(0.0)).may_concern("another"):
            pass
        await theirs.commit([change(a_task("u"))])
        while not (await ours.wait_for_changes(0.0)).may_concern("u"):
            pass


async def test_an_idle_daemon_notices_that_its_session_was_lost_and_keeps_its_tasks(
    server: Server, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    end_sessions(server, ours)
    await until(lambda: ours.owner_id != former)
    assert (await theirs.load("t")).owner == ours.owner_id


async def test_a_daemon_whose_task_was_taken_over_meanwhile_is_told_so(server: Server, pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former), change(a_task("u"), owner=former)])
    taken = change(a_task("t"), said("theirs"), expected=1, owner=theirs.owner_id, previous_owner=former)
    assert await theirs.commit([taken]) == [None]
    end_sessions(server, ours)
    late = [change(a_task(name), said("ours"), expected=1, owner=former) for name in "tu"]
    refusal, made = await ours.commit(late)
    assert isinstance(refusal, CommitConflict) and refusal.owner == theirs.owner_id
    assert made is None
    assert [logged.event for logged in await ours.event_log.read("t", after=1)] == [said("theirs")]


@pytest.mark.parametrize("how", ["restart", "end"])
async def test_every_change_is_made_once_while_the_server_ends_its_sessions(
    server: Server, pair: tuple[Any, Any], how: str
) -> None:
    """Many times, in the midst of commits: whether one that nobody heard the end of was made, the server still knows."""
    store, _ = pair
    await store.commit([change(a_task("t"), owner=store.owner_id)])
    count = 60 if how == "end" else 20

    def disturb() -> None:
        if how == "restart":
            return server.restart()
        with server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'discreet%'"
            )

    for n in range(count):
        async with anyio.create_task_group() as group:
            if n % 10 == 5:
                group.start_soon(anyio.to_thread.run_sync, disturb)
            assert await store.commit([change(a_task("t"), said(f"{n}"), expected=n + 1, owner=store.owner_id)]) == [
                None
            ]
    read = await store.event_log.read("t", after=1, limit=count + 1)
    assert [logged.event for logged in read] == [said(f"{n}") for n in range(count)]


async def test_while_the_server_is_away_calls_are_told_when_to_try_again_and_then_it_goes_on(
    server: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores import server_store
    from discreet.agents.stores.postgres import store as postgres_store

    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    monkeypatch.setattr(postgres_store, "SETTLE_SECONDS", 0.0)
    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task(name), owner=former) for name in "tu"])
    await anyio.to_thread.run_sync(server.stop)
    for call in (
        lambda: ours.commit([change(a_task("t"), said("x"), expected=1, owner=former)]),
        lambda: ours.load("t"),
        ours.probe,
        ours.list_orphans,
    ):
        with pytest.raises(StoreUnavailableError) as error:
            await call()
        assert error.value.retry_after_ms > 0
    await anyio.to_thread.run_sync(server.start)
    await until(lambda: _works(ours))
    await until(lambda: _works(theirs))
    # The task of which a commit failed is as it is in the store, for whoever takes it over; the other is the daemon's still.
    assert list(await theirs.list_orphans()) == ["t"]
    assert await ours.commit([change(a_task("u"), said("x"), expected=1, owner=former)]) == [None]
    taken = change(a_task("t"), expected=1, owner=ours.owner_id, previous_owner=former)
    assert await ours.commit([taken]) == [None]


async def test_after_an_outage_no_daemon_takes_others_for_dead_that_are_not_back_yet(
    server: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.postgres import store as postgres_store

    ours, theirs = pair
    former = ours.owner_id
    await ours.commit([change(a_task("t"), owner=former)])
    await ours.close()
    end_sessions(server, theirs)
    monkeypatch.setattr(postgres_store, "SETTLE_SECONDS", 1e9)
    await theirs.probe()
    assert list(await theirs.list_orphans()) == []
    monkeypatch.setattr(postgres_store, "SETTLE_SECONDS", 0.0)
    assert list(await theirs.list_orphans()) == ["t"]


async def test_a_commit_waits_for_the_server_when_no_new_call_is_let_in_any_more(
    server: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores import server_store

    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.05)
    ours, _ = pair
    ours._open_store.writing._patience = 1e9
    owner = ours.owner_id
    await ours.commit([change(a_task("t"), owner=owner)])
    results: list[object] = []

    async def publish() -> None:
        results.extend(await ours.commit([change(a_task("t"), said("x"), expected=1, owner=owner)]))

    def is_refused() -> bool:
        try:
            ours.check_reachable()
        except StoreUnavailableError as exc:
            return exc.retry_after_ms > 0
        return False

    with anyio.fail_after(DEADLINE_SECONDS):
        await anyio.to_thread.run_sync(server.stop)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            await until(is_refused)
            with pytest.raises(StoreUnavailableError):
                await ours.probe()
            assert not results
            await anyio.to_thread.run_sync(server.start)
    assert results == [None]
    assert not is_refused()


async def _works(store: TaskStore) -> bool:
    try:
        await store.probe()
        await store.load("t")
    except StoreUnavailableError:
        return False
    return True


async def test_a_server_that_does_not_answer_is_given_up_after_a_while(
    pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.postgres import session as link

    store, _ = pair
    monkeypatch.setattr(link, "ANSWER_SECONDS", 0.0)
    sleep = f"SELECT pg_sleep({DEADLINE_SECONDS})"
    for ask in (
        lambda: store._read(lambda connection: connection.execute(sleep).fetchone()),
        lambda: store._write(lambda batch: batch.connection.execute(sleep).fetchone()),
    ):
        with anyio.fail_after(DEADLINE_SECONDS / 2), pytest.raises(StoreUnavailableError):
            await ask()
    monkeypatch.setattr(link, "ANSWER_SECONDS", DEADLINE_SECONDS)
    assert await store.commit([change(a_task("t"))]) == [None]
    assert await store.load("t") is not None


async def test_a_store_closes_while_its_server_is_away(server: Server, pair: tuple[Any, Any]) -> None:
    await anyio.to_thread.run_sync(server.stop)
    try:
        with anyio.fail_after(30):
            for store in pair:
                await store.close()
    finally:
        await anyio.to_thread.run_sync(server.start)
