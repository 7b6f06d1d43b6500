"""Daemons on one Redis store: leases, takeovers, the stream that wakes them up; and a server that ends connections, crashes, is away or silent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.agents.stores.interface import (
    CANCEL,
    QUEUED,
    CommitConflict,
    OwnerRequest,
    StoreError,
    StoreUnavailableError,
    TaskStore,
)
from support.places import store_at
from support.redis import Server, running_server
from support.sqlite_files import opened, works
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

KINDS = ["redis"]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[Server]:
    """One that tests may kill; what it has acknowledged is on the disk."""
    with running_server("--appendfsync", "always") as server:
        yield server


def key(url: str, name: str) -> str:
    return f"{{{url.rpartition('=')[2]}}}:{name}"


async def test_an_answer_that_is_lost_is_given_again_and_nothing_is_done_twice(
    pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each transaction is made, and then the connection is lost before the answer."""
    from discreet.agents.stores.redis.session import Session

    ours, theirs = pair
    await theirs.commit([change(a_task(f"{n}"), owner=QUEUED) for n in range(3)])
    assert await theirs.send_owner_request(OwnerRequest("1", CANCEL, b"\xff"))
    call, lost = Session.call, list[bytes]()

    def lose(session: Session, *arguments: Any) -> Any:  # Any: as in `Session.call`
        answer = call(session, *arguments)
        if session is ours._open_store.writing._session and arguments[-1] not in lost:
            lost.append(arguments[-1])
            session.shut_down()
            return call(session, "PING")
        return answer

    monkeypatch.setattr(Session, "call", lose)
    assert list(await ours.claim(2)) == ["0", "1"]
    assert list(await ours.take_owner_requests()) == [OwnerRequest("1", CANCEL, b"\xff")]
    mixed = [change(a_task("0"), said("x"), expected=1, owner=ours.owner_id), change(a_task("2"), expected=9)]
    assert await ours.commit(mixed) == [None, CommitConflict(1, QUEUED)]
    assert lost
    monkeypatch.undo()
    assert (await theirs.load("0")).generation == 2
    assert list(await ours.take_owner_requests()) == []


async def test_what_is_in_doubt_during_an_outage_is_given_up(
    redis_server: Server, url: str, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction is made, its answer never comes, and the server is away: what it gave to the daemon goes back."""
    from discreet.agents.stores.redis.session import Session

    monkeypatch.setattr("discreet.agents.stores.server_store.BRIDGED_SECONDS", 0.0)
    ours, theirs = pair
    await theirs.commit([change(a_task("t"), owner=QUEUED)])
    assert await theirs.send_owner_request(OwnerRequest("t", CANCEL))
    call, session = Session.call, ours._open_store.writing._session
    lost = False

    def lose(each: Session, *arguments: Any) -> Any:  # Any: as in `Session.call`
        nonlocal lost
        answer = call(each, *arguments)
        if each is session and b"claim" in arguments[-1]:
            lost = True
            redis_server.kill()
            return call(each, "PING")
        return answer

    monkeypatch.setattr(Session, "call", lose)
    with pytest.raises(StoreUnavailableError):
        await ours.claim(1)
    assert lost
    await anyio.to_thread.run_sync(redis_server.start)
    await until(lambda: works(ours))
    await until(lambda: works(theirs))
    assert list(await theirs.claim(1)) == ["t"]
    assert list(await theirs.take_owner_requests()) == [OwnerRequest("t", CANCEL)]


async def test_a_server_that_does_not_answer_is_given_up_after_a_while_and_late_changes_are_made_once(
    redis_server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.agents.stores.redis.session.ANSWER_SECONDS", 0.5)
    async with opened(store_at(url)) as store:
        owner_id = store.owner_id
        await store.commit([change(a_task("t"), owner=owner_id)])
        redis_server.stop()
        try:
            for call in (
                store.commit([change(a_task("t"), said("x"), expected=1, owner=owner_id)]),
                store.load("t"),
            ):
                with anyio.fail_after(DEADLINE_SECONDS / 2), pytest.raises(StoreUnavailableError):
                    await call
        finally:
            redis_server.go_on()
        await until(lambda: works(store))
        stored = await store.load("t")
        assert stored is not None and stored.owner != owner_id  # given up, whether or not the change came through
        assert await store.commit([change(a_task("u"), owner=owner_id)]) == [None]


async def test_a_transaction_that_comes_late_is_refused(url: str, pair: tuple[Any, Any]) -> None:
    """One that was sent before the connection was lost, and reaches the server after a later one."""
    from discreet.agents.stores.redis.scripts import WRITING
    from discreet.agents.stores.redis.writer import NOTHING

    store, _ = pair
    late = store._open_store.writer._transaction([NOTHING])
    await store.probe()
    session = store._open_store.open_session()
    with pytest.raises(Exception, match="SUPERSEDED"):
        WRITING.run(session, late)
    session.close()
    await store.probe()


async def test_a_busy_server_is_away_and_back(
    redis_server: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program's script runs for ever; it is killed."""
    monkeypatch.setattr("discreet.agents.stores.server_store.BRIDGED_SECONDS", 0.0)
    store, _ = pair
    client = redis_server.client()
    client.config_set("lua-time-limit", 1)

    def run_for_ever() -> None:
        with pytest.raises(Exception, match="killed"):
            redis_server.client().eval("while true do end", 0)

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, run_for_ever)
        await until(lambda: _is_away(store))
        client.script_kill()
    await until(lambda: works(store))


async def _is_away(store: TaskStore) -> bool:
    try:
        await store.probe()
    except StoreError:
        return True
    return False


@pytest.fixture
async def silent(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Any, Any]]:  # Any: the module of the store may not be importable
    """Two daemons, which renew their leases only when they write."""

    monkeypatch.setattr("discreet.agents.stores.server_store.HEARTBEAT_SECONDS", DEADLINE_SECONDS)
    async with opened(store_at(url)) as one, opened(store_at(url)) as other:
        yield one, other


async def test_a_task_of_a_daemon_that_is_alive_is_not_taken_over(silent: tuple[Any, Any]) -> None:
    ours, theirs = silent
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    take = change(a_task("t"), expected=1, owner=theirs.owner_id, previous_owner=ours.owner_id)
    (refusal,) = await theirs.commit([take])
    assert refusal == CommitConflict(1, ours.owner_id)
    assert list(await theirs.list_orphans()) == []


async def test_a_daemon_whose_lease_ran_out_is_told_what_was_taken_and_goes_on_with_the_rest(
    redis_server: Server, url: str, silent: tuple[Any, Any]
) -> None:
    ours, theirs = silent
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
    redis_server: Server, url: str, silent: tuple[Any, Any]
) -> None:
    ours, theirs = silent
    client = redis_server.client()
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    client.delete(*(key(url, f"lease:{store.owner_id}") for store in silent))
    assert list(await theirs.list_orphans()) == []
    await theirs.probe()
    assert list(await theirs.list_orphans()) == []
    lease = key(url, f"lease:{theirs.owner_id}")
    client.set(lease, int(client.get(lease)) - 4000, keepttl=True)
    assert list(await theirs.list_orphans()) == ["t"]


async def test_a_daemon_renews_its_lease_while_it_is_idle(redis_server: Server, url: str) -> None:
    client = redis_server.client()
    async with opened(store_at(url)) as store:
        lease = key(url, f"lease:{store.owner_id}")
        client.delete(lease)
        with anyio.fail_after(DEADLINE_SECONDS):
            while not client.pttl(lease) > 0:
                await anyio.lowlevel.checkpoint()


async def test_a_wake_up_stream_that_lost_entries_says_that_everything_may_have_changed(
    redis_server: Server, url: str, silent: tuple[Any, Any]
) -> None:
    ours, theirs = silent
    client = redis_server.client()
    # As if entries had been added and trimmed while the daemon did not read.
    client.hincrby(key(url, "store"), "wake", 10)
    await theirs.commit([change(a_task("t"))])
    with anyio.fail_after(DEADLINE_SECONDS):
        changes = await ours.wait_for_changes(1)
    assert changes.may_concern("anything") and changes.requests and changes.queued


async def test_a_commit_of_very_many_tasks_says_that_everything_may_have_changed(silent: tuple[Any, Any]) -> None:
    ours, theirs = silent
    await theirs.commit([change(a_task(f"{n}")) for n in range(300)])
    with anyio.fail_after(DEADLINE_SECONDS):
        changes = await ours.wait_for_changes(1)
    assert changes.may_concern("anything") and not changes.requests


async def test_requests_are_told_to_the_owner_only(silent: tuple[Any, Any]) -> None:
    ours, theirs = silent
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    assert await theirs.send_owner_request(OwnerRequest("t", CANCEL))
    with anyio.fail_after(DEADLINE_SECONDS):
        assert (await ours.wait_for_changes(1)).requests
        assert not (await theirs.wait_for_changes(1)).requests  # it hears of the task
