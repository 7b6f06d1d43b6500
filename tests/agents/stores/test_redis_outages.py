"""The Redis store while its server ends connections, crashes, is away or does not answer; and daemons that die."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import count
from subprocess import PIPE, Popen
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from discreet.a2a.types import Task, TaskState, TaskStatus
from discreet.agents.stores.interface import (
    CANCEL,
    QUEUED,
    CommitConflict,
    OwnerRequest,
    StoreError,
    StoreUnavailableError,
    TaskStore,
)
from support.redis import Server, running_server
from support.sqlite_files import opened
from support.task_changes import change, said
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that tests may kill; what it has acknowledged is on the disk."""
    with running_server("--appendfsync", "always") as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.new_store()


@pytest.fixture
async def pair(url: str) -> AsyncIterator[tuple[Any, Any]]:  # Any: the module of the store may not be importable
    """Two daemons."""
    from discreet.agents.stores.redis.store import RedisStore

    async with opened(RedisStore(url)) as one, opened(RedisStore(url)) as other:
        yield one, other


def a_task(task_id: str) -> Task:
    return Task(task_id, "c", TaskStatus(TaskState.WORKING, timestamp="2026-01-01T00:00:00.000Z"))


def key(url: str, name: str) -> str:
    return f"{{{url.rpartition('=')[2]}}}:{name}"


def cut(store: Any) -> None:  # Any: as above
    """The network loses the connection that writes, with whatever is on its way."""
    store._open_store.writing._session.shut_down()


async def works(store: TaskStore) -> bool:
    try:
        await store.probe()
        await store.load("t")
    except StoreUnavailableError:
        return False
    return True


async def test_a_daemon_that_lost_its_connections_goes_on_and_says_that_anything_may_have_changed(
    server: Server, pair: tuple[Any, Any]
) -> None:
    ours, theirs = pair
    owner_id = ours.owner_id
    await ours.commit([change(a_task("t"), owner=owner_id)])
    server.client().client_kill_filter(_type="normal", skipme=True)
    assert await ours.commit([change(a_task("t"), said("x"), expected=1, owner=owner_id)]) == [None]
    assert (await theirs.load("t")).generation == 2
    assert list(await theirs.list_orphans()) == []
    with anyio.fail_after(DEADLINE_SECONDS):
        changes = await ours.wait_for_changes(1)
        assert changes.may_concern("anything")
        for n in count():
            await theirs.commit([change(a_task(f"u{n}"))])
            changes = await ours.wait_for_changes(1)
            if not changes.may_concern("anything"):  # it listens again
                break
    assert changes.may_concern(f"u{n}")


@pytest.mark.parametrize("how", ["cut", "crash"])
async def test_every_change_is_made_once_while_connections_are_lost(
    server: Server, pair: tuple[Any, Any], how: str
) -> None:
    """Many times, in the midst of commits: whether one whose answer nobody heard was made, the server still knows."""
    store, _ = pair
    await store.commit([change(a_task("t"), owner=store.owner_id)])
    times = 200 if how == "cut" else 20

    for n in range(times):
        async with anyio.create_task_group() as group:
            if n % 10 == 5:
                group.start_soon(anyio.to_thread.run_sync, server.restart if how == "crash" else lambda: cut(store))
            changes = [change(a_task("t"), said(f"{n}"), expected=n + 1, owner=store.owner_id)]
            assert await store.commit(changes) == [None]
    read = await store.event_log.read("t", after=1, limit=times + 1)
    assert [logged.event for logged in read] == [said(f"{n}") for n in range(times)]


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
    server: Server, url: str, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction is made, its answer never comes, and the server is away: what it gave to the daemon goes back."""
    from discreet.agents.stores import server_store
    from discreet.agents.stores.redis.session import Session

    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
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
            server.kill()
            return call(each, "PING")
        return answer

    monkeypatch.setattr(Session, "call", lose)
    with pytest.raises(StoreUnavailableError):
        await ours.claim(1)
    assert lost
    await anyio.to_thread.run_sync(server.start)
    await until(lambda: works(ours))
    await until(lambda: works(theirs))
    assert list(await theirs.claim(1)) == ["t"]
    assert list(await theirs.take_owner_requests()) == [OwnerRequest("t", CANCEL)]


async def test_while_the_server_is_away_calls_are_told_when_to_try_again_and_then_it_goes_on(
    server: Server, url: str, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores import server_store

    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    ours, theirs = pair
    owner_id = ours.owner_id
    await ours.commit([change(a_task(name), owner=owner_id) for name in "tu"])
    await anyio.to_thread.run_sync(server.kill)
    for call in (
        lambda: ours.commit([change(a_task("t"), said("x"), expected=1, owner=owner_id)]),
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
    assert await ours.commit([change(a_task("u"), said("x"), expected=1, owner=owner_id)]) == [None]
    given_up = await ours.load("t")
    assert given_up.owner not in (None, owner_id)
    taken = change(a_task("t"), expected=1, owner=theirs.owner_id, previous_owner=given_up.owner)
    assert await theirs.commit([taken]) == [None]


async def test_a_server_that_forgets_everything_has_an_empty_store_again(
    server: Server, url: str, pair: tuple[Any, Any]
) -> None:
    ours, _ = pair
    await ours.commit([change(a_task("t"), owner=ours.owner_id)])
    server.client().flushall()
    (refusal,) = await ours.commit([change(a_task("t"), said("x"), expected=1, owner=ours.owner_id)])
    assert refusal == CommitConflict(0)
    assert await ours.commit([change(a_task("u"))]) == [None]
    assert (await ours.count())[TaskState.WORKING] == 1
    with anyio.fail_after(DEADLINE_SECONDS):
        assert (await ours.wait_for_changes(1)).may_concern("anything")


async def test_a_server_that_does_not_answer_is_given_up_after_a_while_and_late_changes_are_made_once(
    server: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.agents.stores.redis import session as connection
    from discreet.agents.stores.redis.store import RedisStore

    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.5)
    async with opened(RedisStore(url)) as store:
        owner_id = store.owner_id
        await store.commit([change(a_task("t"), owner=owner_id)])
        server.stop()
        try:
            for call in (
                store.commit([change(a_task("t"), said("x"), expected=1, owner=owner_id)]),
                store.load("t"),
            ):
                with anyio.fail_after(DEADLINE_SECONDS / 2), pytest.raises(StoreUnavailableError):
                    await call
        finally:
            server.go_on()
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
        WRITING.run(session, key(url, "store"), late)
    session.close()
    await store.probe()


async def test_a_store_closes_while_its_server_is_away_or_does_not_answer(
    server: Server, pair: tuple[Any, Any]
) -> None:
    server.stop()
    try:
        with anyio.fail_after(DEADLINE_SECONDS / 4):
            await pair[0].close()
    finally:
        server.go_on()
    await anyio.to_thread.run_sync(server.kill)
    try:
        with anyio.fail_after(DEADLINE_SECONDS / 4):
            await pair[1].close()
    finally:
        await anyio.to_thread.run_sync(server.start)


async def test_a_busy_server_is_away_and_back(
    server: Server, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program's script runs for ever; it is killed."""
    from discreet.agents.stores import server_store

    monkeypatch.setattr(server_store, "BRIDGED_SECONDS", 0.0)
    store, _ = pair
    client = server.client()
    client.config_set("lua-time-limit", 1)

    def run_for_ever() -> None:
        with pytest.raises(Exception, match="killed"):
            server.client().eval("while true do end", 0)

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


# -- daemons that die ------------------------------------------------------------------------------------------

_DAEMON = """
import sys, anyio
from discreet.agents.stores.redis.store import RedisStore
from support.task_changes import a_task, change, said
async def main():
    store = RedisStore(sys.argv[1])
    await store.open()
    print(store.owner_id, flush=True)
    tasks = [a_task(f"{n}") for n in range(100)]
    assert set(await store.commit([change(task, owner=store.owner_id) for task in tasks])) == {None}
    for n in range(1, 1_000_000):
        changes = [change(task, said(f"{n}"), said(f"{n}"), expected=2 * n - 1, owner=store.owner_id) for task in tasks]
        assert set(await store.commit(changes)) == {None}
        print(n, flush=True)
anyio.run(main)
"""


def _kill_amid_commits(url: str) -> tuple[str, int]:
    """Its name, and the number of the last commit that it told of."""
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    with Popen([sys.executable, "-P", "-c", _DAEMON, url], stdout=PIPE, env={**os.environ, **paths}) as daemon:
        assert daemon.stdout is not None
        owner_id = daemon.stdout.readline().decode().strip()
        last = [int(daemon.stdout.readline()) for _ in range(5)][-1]
        daemon.kill()
        return owner_id, max([last, *map(int, daemon.stdout.read().split(b"\n")[:-1])])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # a lease takes seconds to run out
async def test_a_daemon_that_is_killed_amid_commits_leaves_whole_ones_and_its_tasks_are_taken_over(
    url: str, pair: tuple[Any, Any]
) -> None:
    """No event is there in part, none that was acknowledged is missing; and its lease runs out."""
    store, _ = pair
    owner_id, acknowledged = await anyio.to_thread.run_sync(_kill_amid_commits, url)
    with anyio.fail_after(DEADLINE_SECONDS):
        while not (orphans := await store.list_orphans()):
            await anyio.lowlevel.checkpoint()
    assert len(orphans) == 100
    generations = {(await store.load(task_id)).generation for task_id in orphans}
    assert len(generations) == 1 and generations.pop() in (2 * acknowledged + 1, 2 * acknowledged + 3)
    taken = change(
        a_task("0"), expected=(await store.load("0")).generation, owner=store.owner_id, previous_owner=owner_id
    )
    assert await store.commit([taken]) == [None]
