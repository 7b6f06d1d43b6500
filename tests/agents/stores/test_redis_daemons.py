"""Several daemons on one Redis store: leases, takeovers, and the stream that wakes them up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.agents.stores.interface import CANCEL, CommitConflict, OwnerRequest
from support.redis import Server
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(redis_server: Server) -> str:
    """That of a store of the test's own."""
    return redis_server.new_store()


@pytest.fixture
async def pair(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Any, Any]]:  # Any: the module of the store may not be importable
    """Two daemons, which renew their leases only when they write."""
    from discreet.agents.stores import server_store
    from discreet.agents.stores.redis.store import RedisStore

    monkeypatch.setattr(server_store, "HEARTBEAT_SECONDS", DEADLINE_SECONDS)
    async with opened(RedisStore(url)) as one, opened(RedisStore(url)) as other:
        yield one, other


def key(url: str, name: str) -> str:
    return f"{{{url.rpartition('=')[2]}}}:{name}"


async def test_a_task_of_a_daemon_that_is_alive_is_not_taken_over(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    take = change(a_task("t"), expected=1, owner=theirs.owner_id, previous_owner=ours.owner_id)
    (refusal,) = await theirs.commit([take])
    assert refusal == CommitConflict(1, ours.owner_id)
    assert list(await theirs.list_orphans()) == []


async def test_a_daemon_whose_lease_ran_out_is_told_what_was_taken_and_goes_on_with_the_rest(
    redis_server: Server, url: str, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    owner_id = ours.owner_id
    await ours.commit([change(a_task(name), owner=owner_id) for name in "tu"])
    redis_server.client().delete(key(url, f"lease:{owner_id}"))
    assert list(await theirs.list_orphans()) == ["t", "u"]
    taken = change(a_task("t"), said("theirs"), expected=1, owner=theirs.owner_id, previous_owner=owner_id)
    assert await theirs.commit([taken]) == [None]
    late = [change(a_task(name), said("ours"), expected=1, owner=owner_id) for name in "tu"]
    assert await ours.commit(late) == [CommitConflict(2, theirs.owner_id), None]
    assert ours.owner_id == owner_id
    assert list(await theirs.list_orphans()) == []
    assert [logged.event for logged in await ours.event_log.read("t", after=1)] == [said("theirs")]


async def test_a_daemon_that_was_without_lease_takes_no_others_for_dead_until_they_could_renew_theirs(
    redis_server: Server, url: str, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    client = redis_server.client()
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    client.delete(*(key(url, f"lease:{store.owner_id}") for store in pair))
    assert list(await theirs.list_orphans()) == []
    await theirs.probe()
    assert list(await theirs.list_orphans()) == []
    lease = key(url, f"lease:{theirs.owner_id}")
    client.set(lease, int(client.get(lease)) - 4000, keepttl=True)
    assert list(await theirs.list_orphans()) == ["t"]


async def test_a_daemon_renews_its_lease_while_it_is_idle(redis_server: Server, url: str) -> None:
    from discreet.agents.stores.redis.store import RedisStore

    client = redis_server.client()
    async with opened(RedisStore(url)) as store:
        lease = key(url, f"lease:{store.owner_id}")
        client.delete(lease)
        with anyio.fail_after(DEADLINE_SECONDS):
            while not client.pttl(lease) > 0:
                await anyio.lowlevel.checkpoint()


async def test_a_wake_up_stream_that_lost_entries_says_that_everything_may_have_changed(
    redis_server: Server, url: str, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    client = redis_server.client()
    # As if entries had been added and trimmed while the daemon did not read.
    client.hincrby(key(url, "store"), "wake", 10)
    await theirs.commit([change(a_task("t"))])
    with anyio.fail_after(DEADLINE_SECONDS):
        changes = await ours.wait_for_changes(1)
    assert changes.may_concern("anything") and changes.requests and changes.queued


async def test_a_commit_of_very_many_tasks_says_that_everything_may_have_changed(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    await theirs.commit([change(a_task(f"{n}")) for n in range(300)])
    with anyio.fail_after(DEADLINE_SECONDS):
        changes = await ours.wait_for_changes(1)
    assert changes.may_concern("anything") and not changes.requests


async def test_requests_are_told_to_the_owner_only(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    assert await theirs.send_owner_request(OwnerRequest("t", CANCEL))
    with anyio.fail_after(DEADLINE_SECONDS):
        assert (await ours.wait_for_changes(1)).requests
        assert not (await theirs.wait_for_changes(1)).requests  # it hears of the task
