"""The Redis store in a cluster: the node that has its keys is found, also after a fail-over."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from discreet.a2a.types import TaskQuery
from discreet.agents.stores.interface import QUEUED, StoreError
from support.places import store_at
from support.redis import Server, running_cluster
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Server]]:
    with running_cluster() as nodes:
        yield nodes


async def test_any_node_leads_to_the_store_and_prefixes_spread_over_the_nodes(cluster: list[Server]) -> None:
    for prefix in "abcdef":
        urls = [node.url(prefix) for node in cluster]
        async with opened(store_at(urls[0])) as one, opened(store_at(urls[1])) as other:
            assert await one.commit([change(a_task("t"), said("x")), change(a_task("u"), owner=QUEUED)]) == [None, None]
            with anyio.fail_after(DEADLINE_SECONDS):
                assert (await other.wait_for_changes(1)).queued
            assert list(await other.claim(5)) == ["u"]
        for url in urls[2:]:
            async with opened(store_at(url)) as store:
                assert (await store.list(TaskQuery(scope="me"))).total_size == 2
    assert all(node.client().dbsize() for node in cluster[:3])


async def test_a_database_with_a_number_is_refused(cluster: list[Server]) -> None:
    with pytest.raises(StoreError) as error:
        await store_at(cluster[0].url().replace("/0", "/1")).open()
    assert "cluster mode" in str(error.value) or "out of range" in str(error.value)  # Redis, Valkey


async def test_a_store_moves_with_its_slot_to_another_node(cluster: list[Server]) -> None:
    """A planned fail-over, and then the death of the node, which the address names."""
    first, replica = cluster[0], cluster[3]
    prefix = next(
        name for name in map(str, range(100)) if int(first.ask("CLUSTER", "KEYSLOT", f"{{{name}}}:store")) < 5461
    )
    async with opened(store_at(first.url(prefix))) as store:
        owner_id = store.owner_id
        assert await store.commit([change(a_task("t"), owner=owner_id)]) == [None]
        replica.ask("CLUSTER", "FAILOVER")
        await until(lambda: replica.ask("ROLE").startswith("master"))
        assert await store.commit([change(a_task("t"), said("1"), expected=1, owner=owner_id)]) == [None]
        first.kill()
        assert await store.commit([change(a_task("t"), said("2"), expected=2, owner=owner_id)]) == [None]
        stored = await store.load("t")
        assert stored is not None and stored.generation == 3
        replica.client().client_kill_filter(_type="normal", skipme=True)
        assert await store.commit([change(a_task("t"), said("3"), expected=3, owner=owner_id)]) == [None]
    first.start()
