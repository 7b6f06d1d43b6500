"""Where stores keep tasks: each kind, for one daemon or for several that share what is stored."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from discreet.agents.stores.interface import TaskStore
from discreet.agents.stores.memory import MemoryStore

from .postgres import Server
from .redis import Server as RedisServer

LOOPS = {"memory": ["asyncio"], "sqlite": ["asyncio", "trio"], "postgres": ["asyncio"], "redis": ["trio"]}
"""Each kind of store, and the loops that its tests run on. All but the first wait for their threads alike: one of them runs on both."""

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


def run_on(metafunc: pytest.Metafunc, kinds: Sequence[str]) -> None:
    """Run the test with each `kind` of store, and on the loops of that if it is asynchronous."""
    if iscoroutinefunction(metafunc.function):
        metafunc.parametrize(("kind", "anyio_backend"), [(kind, loop) for kind in kinds for loop in LOOPS[kind]])
    else:
        metafunc.parametrize("kind", kinds)


def places_of(kind: str, request: pytest.FixtureRequest) -> Callable[[Path], Place]:
    """Skips the test where a package or a server is missing."""
    match kind:
        case "memory":
            return lambda _: Place(MemoryStore, _close, is_quick=True)
        case "sqlite":
            return _sqlite_place
        case "redis":
            redis_server: RedisServer = request.getfixturevalue("redis_server")
            return lambda _: Place(partial(store_at, redis_server.new_store()), _close)
        case _:
            server: Server = request.getfixturevalue("postgres")
            return lambda _: Place(partial(store_at, server.new_database()), _close)


def store_at(address: str, **options: Any) -> Any:  # Any: its module may not be importable
    """Makes the store of a daemon on a server. Tests import its module here, since it needs a package."""
    if address.startswith("postgres"):
        from discreet.agents.stores.postgres.store import PostgresStore

        return PostgresStore(address, **options)
    from discreet.agents.stores.redis.store import RedisStore

    return RedisStore(address, **options)


async def _close(store: TaskStore) -> None:
    await store.close()


def _sqlite_place(folder: Path) -> Place:
    from discreet.agents.stores.sqlite.store import SqliteStore

    path = str(folder / "tasks.db")

    async def take_lock_away(store: TaskStore) -> None:
        os.unlink(f"{path}-daemon-{store.owner_id}")

    return Place(partial(SqliteStore, path), take_lock_away, is_quick=True)
