"""The contract of stores about tasks that have ended: how many stay, and for how long. Tested on every store and both loops."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

import pytest

from discreet.a2a.types import PushConfig, TaskState
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.interface import CANCEL, QUEUED, OwnerRequest, PushTarget, TaskStore
from discreet.agents.stores.memory import MemoryStore, StoreLimits
from support.sqlite_files import opened
from support.task_changes import a_task, change_to, commit_all, ids, said, status_changed, to_create

pytestmark = pytest.mark.anyio

ENDED = TaskState.COMPLETED
DAY = 24 * 3600.0


class Clock:
    """In seconds since 1970."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def limited(new_store: Any, clock: Clock, *limits: Any) -> Any:  # Any: each store's class
    retention = Retention(*limits)
    if new_store is MemoryStore:
        return MemoryStore(StoreLimits(retention=retention), clock=clock)
    return new_store(retention=retention, clock=clock)


async def ended_one_by_one(store: TaskStore, names: str) -> None:
    for name in names:
        await commit_all(store, to_create(a_task(name, state=ENDED)))


async def remaining(store: Any) -> str:  # Any: shared stores delete when they are told to, that in memory by itself
    while isinstance(store, MemoryStore) is False and await store.delete_expired_tasks():
        pass
    return "".join(sorted(await ids(store)))


async def test_the_last_ones_that_ended_stay(new_store: Any, clock: Clock) -> None:
    async with opened(limited(new_store, clock, 3)) as store:
        await commit_all(store, to_create(a_task("x")), to_create(a_task("y"), owner=QUEUED))
        await ended_one_by_one(store, "abcde")
        assert await remaining(store) == "cdexy"
        clock.now += 1
        await commit_all(store, change_to(a_task("x", state=ENDED), 1, [status_changed(ENDED)]))
        assert await remaining(store) == "dexy"
        assert await store.load("c") is None


async def test_ended_tasks_stay_for_so_long(new_store: Any, clock: Clock) -> None:
    async with opened(limited(new_store, clock, 100, 60)) as store:
        await commit_all(store, to_create(a_task("x")))
        await ended_one_by_one(store, "ab")
        clock.now += 59
        await ended_one_by_one(store, "c")
        assert await remaining(store) == "abcx"
        clock.now += 2
        assert await remaining(store) == "cx"
        clock.now += 500
        assert await remaining(store) == "x"


async def test_requests_and_places_in_the_queue_go_with_the_task(new_store: Any, clock: Clock) -> None:
    async with opened(limited(new_store, clock, 0)) as store:
        left = (OwnerRequest("a", "message", b"x"),)
        await commit_all(store, to_create(a_task("a", state=ENDED), owner=QUEUED, requests=left))
        assert await remaining(store) == ""
        assert await store.count_queued() == 0
        assert [*await store.claim(1), *await store.take_owner_requests()] == []
        assert not await store.send_owner_request(*left)


@pytest.mark.parametrize("limits", [(2, None), (100, 60)])
async def test_of_two_daemons_with_different_limits_the_lowest_hold(shared: Any, clock: Clock, limits: Any) -> None:
    async with opened(limited(shared, clock, 100, None)) as lax:
        await ended_one_by_one(lax, "ab")
        clock.now += 61
        await ended_one_by_one(lax, "cd")
        assert await remaining(lax) == "abcd"
        async with opened(limited(shared, clock, *limits)) as strict:  # which deletes by itself, too
            assert await remaining(strict) == "cd"
        assert await remaining(lax) == "cd"


async def test_a_clock_that_is_days_ahead_deletes_nothing(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither at the start nor when it is set ahead. Servers have a clock of their own."""
    retention = Retention(100, 3600.0)
    async with opened(shared(retention=retention)) as ours:
        await ended_one_by_one(ours, "ab")
        today = time.time
        monkeypatch.setattr(time, "time", lambda: today() + 2 * DAY)
        assert await remaining(ours) == "ab"
        async with opened(shared(retention=retention)) as ahead:
            await ended_one_by_one(ahead, "c")
            assert await remaining(ahead) == "abc"
        monkeypatch.undo()
    async with opened(shared(retention=retention)) as later:
        assert await remaining(later) == "abc"


async def test_expired_tasks_leave_nothing_behind(shared: Any, clock: Clock) -> None:
    async with opened(limited(shared, clock, 0)) as store:
        names = "abc"
        await commit_all(store, *(to_create(a_task(name), said("x"), owner=store.owner_id) for name in names))
        assert await store.put_push_target("a", PushTarget(PushConfig("https://example.org", "p"), "1.0"))
        assert await store.send_owner_request(OwnerRequest("b", CANCEL))
        ended = [change_to(a_task(name, ENDED), 2, [said("y")], owner=store.owner_id) for name in names]
        await commit_all(store, *ended)
        assert await remaining(store) == ""
        assert set((await store.count()).values()) <= {0}
        assert await store._read(_left_of_tasks) == []


def _left_of_tasks(source: Any) -> list[Any]:  # Any: a connection of SQLite or PostgreSQL, or what Redis is read by
    if hasattr(source, "execute"):
        schema = "" if isinstance(source, sqlite3.Connection) else "discreet."
        tables = ("tasks", "snapshots", "events", "push_targets", "owner_requests")
        return [row for table in tables for row in source.execute(f"SELECT * FROM {schema}{table}").fetchall()]
    found = {each.decode().partition(":")[2].partition(":")[0] for each in source.call("KEYS", source.key("*"))}
    return sorted(found - {"store", "counts", "wake", "owners", "lease", "writer"})
