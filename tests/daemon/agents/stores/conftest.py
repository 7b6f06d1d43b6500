"""Each kind of store, opened: one daemon's, or those of two daemons that share what is stored."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from discreet.daemon.agents.stores.interface import TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore
from support.postgres import Server
from support.redis import Server as RedisServer
from support.sqlite_files import opened

SHARED = ["sqlite", "postgres", "redis"]
"""Kinds of stores that several daemons may share. Another one is added here and in `_places`."""


class NewStore(Protocol):
    """Makes the store of another daemon on the same file or server."""

    def __call__(self, **options: Any) -> TaskStore: ...  # Any: `retention` and `clock`


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store's file may be."""
    return str(tmp_path / "tasks.db")


class Place(NamedTuple):
    """A file or a database for the stores of some daemons. `kill(store)`: to the other daemons, that daemon is dead. If it is not
    closed by that, it can still try to write. `is_quick`: a store opens in milliseconds."""

    new_store: NewStore
    kill: Callable[[TaskStore], Awaitable[None]]
    is_quick: bool = False


@pytest.fixture(params=["memory", *SHARED])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    return _places(request)(tmp_path).new_store


@pytest.fixture
async def store(new_store: NewStore) -> AsyncIterator[TaskStore]:
    async with opened(new_store()) as made:
        yield made


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    return _places(request)(tmp_path).new_store


@pytest.fixture
async def pair(shared: NewStore) -> AsyncIterator[tuple[TaskStore, TaskStore]]:
    """Two daemons."""
    async with opened(shared()) as one, opened(shared()) as other:
        yield one, other


@pytest.fixture(scope="module", params=SHARED)
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Place]:
    """Another place at each call. The one before must not be in use any more."""
    places = _places(request)
    return lambda: places(tmp_path_factory.mktemp("place"))


def _places(request: pytest.FixtureRequest) -> Callable[[Path], Place]:
    """Skips the test where a package or a server is missing."""
    match request.param:
        case "memory":
            return lambda _: Place(MemoryStore, _close, is_quick=True)
        case "sqlite":
            return _sqlite_place
        case "redis":
            redis_server: RedisServer = request.getfixturevalue("redis_server")
            from discreet.daemon.agents.stores.redis.store import RedisStore

            return lambda _: Place(partial(RedisStore, redis_server.new_store()), _close)
        case _:
            server: Server = request.getfixturevalue("postgres")
            from discreet.daemon.agents.stores.postgres.store import PostgresStore

            return lambda _: Place(partial(PostgresStore, server.new_database()), _close)


async def _close(store: TaskStore) -> None:
    await store.close()


def _sqlite_place(folder: Path) -> Place:
    from discreet.daemon.agents.stores.sqlite.store import SqliteStore

    path = str(folder / "tasks.db")

    async def take_lock_away(store: TaskStore) -> None:
        os.unlink(f"{path}-daemon-{store.owner_id}")

    return Place(partial(SqliteStore, path), take_lock_away, is_quick=True)
