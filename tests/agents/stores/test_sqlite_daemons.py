"""Daemons that share a SQLite file: how one hears of another, what becomes of one that is stopped, and whose clock counts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import anyio
import pytest

from discreet.a2a.types import TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import CommitConflict, StoreUnavailableError
from discreet.agents.stores.sqlite import store as retention
from discreet.agents.stores.sqlite.owner_locks import FENCE_SECONDS, TIMEOUT_SECONDS
from discreet.agents.stores.sqlite.store import ChangeWatch, SqliteStore
from support.logged_events import LoggedEvents
from support.sqlite_files import opened
from support.task_changes import a_task, change, commit_all, ids, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0


class Steady:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def steady() -> Iterator[Steady]:
    return Steady()


def stop(store: SqliteStore) -> None:
    """Let a daemon keep its lock and beat no more, as SIGSTOP does."""
    store._open_store.heartbeat.stop()


# -- stopped daemons -------------------------------------------------------------------------------------------


async def test_the_tasks_of_a_stopped_daemon_are_taken_over_and_it_can_not_write_to_them(
    path: str, steady: Steady
) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path, monotonic=steady)) as theirs:
        await commit_all(ours, change(a_task("t"), owner=ours.owner_id), change(a_task("u"), owner=ours.owner_id))
        stop(ours)
        waited = 0.0
        while waited <= TIMEOUT_SECONDS:
            assert list(await theirs.list_orphans()) == []
            steady.now += 1
            waited += 1
        assert list(await theirs.list_orphans()) == ["t", "u"]
        taken = change(a_task("t"), expected=1, owner=theirs.owner_id, previous_owner=ours.owner_id)
        await commit_all(theirs, taken)
        late = change(a_task("t"), said("x"), expected=1, owner=ours.owner_id)
        assert await ours.commit([late]) == [CommitConflict(1, theirs.owner_id)]
        await commit_all(ours, change(a_task("u"), said("x"), expected=1, owner=ours.owner_id))  # nobody has taken it


async def test_a_daemon_that_beats_is_alive_and_one_that_was_stopped_itself_takes_no_others_for_dead(
    path: str, steady: Steady
) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path, monotonic=steady)) as theirs:
        await commit_all(ours, change(a_task("t"), owner=ours.owner_id))
        for _ in range(20):
            ours._open_store.heartbeat._lock.beat(time.time())
            assert list(await theirs.list_orphans()) == []
            steady.now += 1
        stop(ours)
        assert list(await theirs.list_orphans()) == []
        steady.now += 10 * TIMEOUT_SECONDS
        assert list(await theirs.list_orphans()) == []


async def test_a_daemon_that_was_stopped_takes_no_call_before_it_has_looked(path: str, steady: Steady) -> None:
    async with opened(SqliteStore(path, monotonic=steady)) as store:
        stop(store)
        store.check_reachable()
        steady.now += FENCE_SECONDS + 1
        with pytest.raises(StoreUnavailableError):
            store.check_reachable()
        with pytest.raises(StoreUnavailableError):
            await store.probe()
        with anyio.fail_after(DEADLINE_SECONDS):
            changes = await store.wait_for_changes(0.01)
        assert changes.may_concern("anything")
        store.check_reachable()


def test_the_fence_is_shorter_than_the_patience_of_the_others() -> None:
    assert FENCE_SECONDS + 1 < TIMEOUT_SECONDS


# -- hearing of changes ----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of writes")
async def test_an_idle_daemon_hears_of_a_write_without_looking(path: str) -> None:
    async with opened(SqliteStore(path)) as ours, opened(SqliteStore(path)):
        watch = ChangeWatch(path)
        heard = anyio.Event()

        async def listen() -> None:
            await watch.wait(10 * DEADLINE_SECONDS, 10 * DEADLINE_SECONDS)
            heard.set()

        with anyio.fail_after(DEADLINE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await commit_all(ours, change(a_task("t")))
                await heard.wait()
        watch.close()


# -- clocks ----------------------------------------------------------------------------------------------------


async def left_of(store: SqliteStore) -> list[str]:
    while await store.delete_expired_tasks():
        pass
    return sorted(await ids(store))


async def test_a_clock_that_is_ahead_of_another_daemons_deletes_nothing_however_long_it_runs(
    path: str, logged: LoggedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "HOLD_SECONDS", 0.0)
    limits = Retention(100, 3600.0)
    ended = [change(a_task(name, state=TaskState.COMPLETED)) for name in "ab"]
    async with opened(SqliteStore(path)) as ours:
        await commit_all(ours, *ended)
        async with opened(SqliteStore(path, limits, clock=lambda: time.time() + 2 * DAY)) as ahead:
            held = ahead._open_store.time
            for _ in range(3):
                assert held._seconds_ahead(time.time() + 2 * DAY, time.monotonic(), limits) > DAY
    assert "store.clock_ahead" in logged.names()


async def test_a_clock_is_believed_when_nothing_has_spoken_against_it_for_a_while(
    path: str, logged: LoggedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = Retention(100, 3600.0)
    async with opened(SqliteStore(path)) as ours:
        await commit_all(ours, *(change(a_task(name, state=TaskState.COMPLETED)) for name in "ab"))
    later = time.time() + 2 * DAY
    async with opened(SqliteStore(path, limits, clock=lambda: later)) as store:
        assert await left_of(store) == ["a", "b"]
        assert logged.names() == ["store.clock_ahead"]
        store._open_store.time._held_until = 0.0
        assert await left_of(store) == []
