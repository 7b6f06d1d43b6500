"""What else may be under the keys of a store in Redis: names that look like others, and entries that nothing belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from discreet.a2a.types import TaskQuery
from discreet.agents.stores.interface import QUEUED
from support.redis import Server
from support.sqlite_files import opened
from support.task_changes import a_task, change

pytestmark = pytest.mark.anyio

NewStore = Callable[..., Any]  # Any: the module of the store may not be importable


@pytest.fixture
def url(redis_server: Server) -> str:
    """That of a store of the test's own."""
    return redis_server.new_store()


@pytest.fixture
def new_store(url: str) -> NewStore:
    from discreet.agents.stores.redis.store import RedisStore

    return lambda: RedisStore(url)


def key(url: str, name: str) -> str:
    return f"{{{url.rpartition('=')[2]}}}:{name}"


async def test_a_name_that_looks_like_another_callers_context_shows_nothing_of_it(new_store: NewStore) -> None:
    async with opened(new_store()) as store:
        assert list(await store.commit([msgspec.structs.replace(change(a_task("t")), scope="bob")])) == [None]
        for scope in ("3:bob:context", ":3:bob:context", "bob:context"):
            assert (await store.list(TaskQuery(scope=scope))).total_size == 0
        assert (await store.list(TaskQuery(scope="bob", context_id="context"))).total_size == 1


async def test_entries_of_the_queue_without_a_task_keep_no_task_waiting(
    new_store: NewStore, url: str, redis_server: Server
) -> None:
    async with opened(new_store()) as store:
        assert list(await store.commit([change(a_task("t"), owner=QUEUED)])) == [None]
        redis_server.ask("ZADD", key(url, f"owned:{QUEUED}"), "-2", "nobody's", "-1", "neither")
        claimed = [list(await store.claim(1)) for _ in range(3)]
        assert claimed == [[], [], ["t"]]
        assert await store.count_queued() == 0
