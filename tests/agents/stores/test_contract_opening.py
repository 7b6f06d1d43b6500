"""The contract of stores about opening and closing, and about what they take as an id. Tested on every store that is no memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from discreet.a2a.types import TaskQuery
from discreet.agents.stores.interface import CANCEL, OwnerRequest, StoreError
from support.places import SHARED, NewStore, places_of
from support.postgres import Server
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, ids

pytestmark = pytest.mark.anyio


@pytest.fixture(params=SHARED)
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Where nothing has been created yet."""
    if request.param != "postgres":
        return places_of(request)(tmp_path).new_store
    server: Server = request.getfixturevalue("postgres")
    from discreet.agents.stores.postgres.store import PostgresStore

    url = server.new_database()
    with server.connect(url.rpartition("/")[2]) as connection:
        connection.execute("DROP SCHEMA discreet CASCADE")
    return partial(PostgresStore, url)


async def test_several_daemons_may_create_a_store_at_once(nowhere: NewStore) -> None:
    stores = [nowhere() for _ in range(6)]
    async with anyio.create_task_group() as group:
        for store in stores:
            group.start_soon(store.open)
    assert len({store.owner_id for store in stores}) == 6
    for n, store in enumerate(stores):
        await commit_all(store, change(a_task(f"{n}")))
    assert (await stores[0].list(TaskQuery(scope="me"))).total_size == 6
    for store in stores:
        await store.close()


async def test_a_closed_store_refuses_calls(shared: NewStore) -> None:
    async with opened(shared()) as store:
        pass
    with pytest.raises(StoreError):
        await store.load("t")


async def test_a_store_that_was_opened_before_the_loop_works_on_it_or_is_closed_without_one(shared: NewStore) -> None:
    unused = shared()
    unused.open_early()
    unused.close_early()
    store = shared()
    store.open_early()
    async with opened(store):
        assert await ids(store) == []
        assert not await store.delete_push_target("t", "p")
    store.close_early()


async def test_any_string_may_be_an_id(shared: NewStore) -> None:
    names = ["\0", "a\0b", "a\x1a0000b", "\x1a", "{x}", ":", "*", "é\U0001f600", "'; --", "%s", ""]
    async with opened(shared()) as store:
        for name in names:
            await commit_all(store, change(a_task(name, context_id=name), owner=store.owner_id))
            assert await store.send_owner_request(OwnerRequest(name, CANCEL))
            assert await ids(store, context_id=name) == [name]
        assert await ids(store) == names[::-1]
        assert list(await store.take_owner_requests()) == [OwnerRequest(name, CANCEL) for name in names]


@pytest.mark.parametrize("shared", ["postgres", "redis"], indirect=True)
async def test_a_string_that_is_no_text_is_nobodys_id(shared: NewStore) -> None:
    async with opened(shared()) as store:
        assert await store.load("\ud800") is None
        assert not await store.delete_push_target("\ud800", "\ud800")
