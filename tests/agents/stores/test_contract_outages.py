"""Stores on a server that ends sessions, restarts, or is away: what was asked is done once, or its caller is told when to try again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel
import pytest

from discreet.agents.stores import server_store
from discreet.agents.stores.interface import StoreUnavailableError
from support import postgres, redis
from support.sqlite_files import opened, works
from support.task_changes import a_task, change, commit_all, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


class Place(NamedTuple):
    """A server that tests may stop; what it has acknowledged is on its disk. Any: the stores' modules may not be importable."""

    server: Any
    new_url: Callable[[], str]
    store_at: Callable[[str], Any]
    end_sessions: Callable[[], None]
    kill: Callable[[], None]


def end_postgres_sessions(server: postgres.Server) -> None:
    with server.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'discreet%'"
        )


@pytest.fixture(scope="module", params=["postgres", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "postgres":
        with postgres.running_server() as server:
            from discreet.agents.stores.postgres.store import PostgresStore

            yield Place(server, server.new_database, PostgresStore, partial(end_postgres_sessions, server), server.stop)
        return
    with redis.running_server("--appendfsync", "always") as redis_server:
        from discreet.agents.stores.redis.store import RedisStore

        def end_sessions() -> None:
            redis_server.client().client_kill_filter(_type="normal", skipme=True)

        yield Place(redis_server, redis_server.new_store, RedisStore, end_sessions, redis_server.kill)


@pytest.fixture
async def pair(place: Place) -> AsyncIterator[tuple[Any, Any]]:
    """Two daemons."""
    url = place.new_url()
    async with opened(place.store_at(url)) as one, opened(place.store_at(url)) as other:
        yield one, other


async def test_daemons_that_lost_their_sessions_go_on_and_say_that_anything_may_have_changed(
    place: Place, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    former = ours.owner_id
    await commit_all(ours, change(a_task("t"), owner=former))
    place.end_sessions()
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
async def test_every_change_is_made_once_while_sessions_are_lost(place: Place, pair: tuple[Any, Any], how: str) -> None:
    """Many times, in the midst of commits: whether one that nobody heard the end of was made, the server still knows."""
    store, _ = pair
    await commit_all(store, change(a_task("t"), owner=store.owner_id))
    times = 60 if how == "end" else 20
    disturb = place.end_sessions if how == "end" else place.server.restart
    for n in range(times):
        async with anyio.create_task_group() as group:
            if n % 10 == 5:
                group.start_soon(anyio.to_thread.run_sync, disturb)
            await commit_all(store, change(a_task("t"), said(f"{n}"), expected=n + 1, owner=store.owner_id))
    read = await store.event_log.read("t", after=1, limit=times + 1)
    assert [logged.event for logged in read] == [said(f"{n}") for n in range(times)]


async def test_while_the_server_is_away_calls_are_told_when_to_try_again_and_then_it_goes_on(
    place: Place, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    ours, theirs = pair
    former = ours.owner_id
    await commit_all(ours, *(change(a_task(name), owner=former) for name in "tu"))
    await anyio.to_thread.run_sync(place.kill)
    for call in (
        lambda: ours.commit([change(a_task("t"), said("x"), expected=1, owner=former)]),
        lambda: ours.load("t"),
        ours.probe,
        ours.list_orphans,
    ):
        with pytest.raises(StoreUnavailableError) as error:
            await call()
        assert error.value.retry_after_ms > 0
    await anyio.to_thread.run_sync(place.server.start)
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
    place: Place, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
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
        await anyio.to_thread.run_sync(place.kill)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(publish)
            await until(is_refused)
            with pytest.raises(StoreUnavailableError):
                await ours.probe()
            assert not made.is_set()
            await anyio.to_thread.run_sync(place.server.start)
    assert made.is_set() and not is_refused()


async def test_a_store_closes_while_its_server_is_away(place: Place, pair: tuple[Any, Any]) -> None:
    await anyio.to_thread.run_sync(place.kill)
    try:
        with anyio.fail_after(DEADLINE_SECONDS / 4):
            for store in pair:
                await store.close()
    finally:
        await anyio.to_thread.run_sync(place.server.start)
