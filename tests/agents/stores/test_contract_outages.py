"""Stores on a server that ends sessions, restarts, or is away: what was asked is done once, or its caller is told when to try again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.agents.stores import server_store
from discreet.agents.stores.interface import StoreUnavailableError
from support import redis
from support.postgres import Server, running_server
from support.sqlite_files import works
from support.task_changes import a_task, change, commit_all, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


KINDS = ["postgres", "redis"]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """One that tests may stop."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def redis_server() -> Iterator[redis.Server]:
    """One that tests may stop; what it has acknowledged is on its disk."""
    with redis.running_server("--appendfsync", "always") as server:
        yield server


@pytest.fixture
def server(kind: str, request: pytest.FixtureRequest) -> Any:  # Any: either class
    return request.getfixturevalue("postgres" if kind == "postgres" else "redis_server")


def end_sessions(server: Any) -> None:
    if isinstance(server, redis.Server):
        server.client().client_kill_filter(_type="normal", skipme=True)
        return
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'discreet%'"
        )


def kill(server: Any) -> None:
    (server.kill if isinstance(server, redis.Server) else server.stop)()


async def test_daemons_that_lost_their_sessions_go_on_and_say_that_anything_may_have_changed(
    server: Any, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await commit_all(ours, change(a_task("t"), owner=former))
    end_sessions(server)
    await commit_all(ours, change(a_task("t"), said("x"), expected=1, owner=former))
    stored = await theirs.load("t")
    assert (stored.generation, stored.owner) == (2, ours.owner_id)
    assert list(await theirs.list_orphans()) == []
    with anyio.fail_after(DEADLINE_SECONDS):
        changes = await ours.wait_for_changes(1)
        assert changes.may_concern("anything")
        for n in count():
            await commit_all(theirs, change(a_task(f"u{n}")))
            changes = await ours.wait_for_changes(1)
            if not changes.may_concern("anything"):  # it listens again
                break
    assert changes.may_concern(f"u{n}")


@pytest.mark.parametrize("how", ["end", "crash"])
async def test_every_change_is_made_once_while_sessions_are_lost(server: Any, pair: tuple[Any, Any], how: str) -> None:
    """Many times, in the midst of commits: whether one that nobody heard the end of was made, the server still knows."""
    store, _ = pair
    await commit_all(store, change(a_task("t"), owner=store.owner_id))
    times = 60 if how == "end" else 20
    disturb = partial(end_sessions, server) if how == "end" else server.restart
    for n in range(times):
        async with anyio.create_task_group() as group:
            if n % 10 == 5:
                group.start_soon(anyio.to_thread.run_sync, disturb)
            await commit_all(store, change(a_task("t"), said(f"{n}"), expected=n + 1, owner=store.owner_id))
    read = await store.event_log.read("t", after=1, limit=times + 1)
    assert [logged.event for logged in read] == [said(f"{n}") for n in range(times)]


async def test_while_the_server_is_away_calls_are_told_when_to_try_again_and_then_it_goes_on(
    server: Any, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    ours, theirs = pair
    former = ours.owner_id
    await commit_all(ours, *(change(a_task(name), owner=former) for name in "tu"))
    await anyio.to_thread.run_sync(kill, server)
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
    await until(lambda: works(ours))
    await until(lambda: works(theirs))
    # The task of which a commit failed is as it is in the store, for whoever takes it over; the other is the daemon's still.
    await commit_all(ours, change(a_task("u"), said("x"), expected=1, owner=former))
    given_up = await ours.load("t")
    assert given_up.generation == 1 and given_up.owner not in (None, ours.owner_id)

    async def lists_it() -> bool:
        return list(await theirs.list_orphans()) == ["t"]

    await until(lists_it)
    await commit_all(theirs, change(a_task("t"), expected=1, owner=theirs.owner_id, previous_owner=given_up.owner))


async def test_a_commit_waits_for_the_server_when_no_new_call_is_let_in_any_more(
    server: Any, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.05)
    ours, _ = pair
    ours._open_store.writing._patience = 1e9
    owner = ours.owner_id
    await commit_all(ours, change(a_task("t"), owner=owner))
    made = anyio.Event()

    async def publish() -> None:
        await commit_all(ours, change(a_task("t"), said("x"), expected=1, owner=owner))
        made.set()

    def is_refused() -> bool:
        try:
            ours.check_reachable()
        except StoreUnavailableError as exc:
            return exc.retry_after_ms > 0
        return False

    with anyio.fail_after(DEADLINE_SECONDS):
        await anyio.to_thread.run_sync(kill, server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            await until(is_refused)
            with pytest.raises(StoreUnavailableError):
                await ours.probe()
            assert not made.is_set()
            await anyio.to_thread.run_sync(server.start)
    assert made.is_set() and not is_refused()


async def test_a_store_closes_while_its_server_is_away(server: Any, pair: tuple[Any, Any]) -> None:
    await anyio.to_thread.run_sync(kill, server)
    try:
        with anyio.fail_after(DEADLINE_SECONDS / 4):
            for store in pair:
                await store.close()
    finally:
        await anyio.to_thread.run_sync(server.start)
