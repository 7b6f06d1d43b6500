"""Where stores keep tasks: each kind, for one daemon or for several that share what is stored."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from discreet.agents.stores.interface import TaskStore
from discreet.agents.stores.memory import MemoryStore

from .postgres import Server
from .redis import Server as RedisServer

SHARED = ["sqlite", "postgres", "redis"]
"""Kinds of stores that several daemons may share. Another one is added here and in `places_of`."""


class NewStore(Protocol):
    """Makes the store of another daemon on the same file or server."""

    def __call__(self, **options: Any) -> TaskStore: ...  # Any: `retention` and `clock`


class Place(NamedTuple):
    """A file or a database for the stores of some daemons. `kill(store)`: to the other daemons, that daemon is dead. If it is not
    closed by that, it can still try to write. `is_quick`: a store opens in milliseconds."""

    new_store: NewStore
    kill: Callable[[TaskStore], Awaitable[None]]
    is_quick: bool = False


def places_of(request: pytest.FixtureRequest) -> Callable[[Path], Place]:
    """Skips the test where a package or a server is missing."""
    match request.param:
        case "memory":
            return lambda _: Place(MemoryStore, _close, is_quick=True)
        case "sqlite":
            return _sqlite_place
        case "redis":
            redis_server: RedisServer = request.getfixturevalue("redis_server")
            from discreet.agents.stores.redis.store import RedisStore

            return lambda _: Place(partial(RedisStore, redis_server.new_store()), _close)
        case _:
            server: Server = request.getfixturevalue("postgres")
            from discreet.agents.stores.postgres.store import PostgresStore

            return lambda _: Place(partial(PostgresStore, server.new_database()), _close)


async def _close(store: TaskStore) -> None:
    await store.close()


def _sqlite_place(folder: Path) -> Place:
    from discreet.agents.stores.sqlite.store import SqliteStore

    path = str(folder / "tasks.db")

    async def take_lock_away(store: TaskStore) -> None:
        os.unlink(f"{path}-daemon-{store.owner_id}")

    return Place(partial(SqliteStore, path), take_lock_away, is_quick=True)
