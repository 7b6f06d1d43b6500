"""Each kind of store, opened: one daemon's, or those of two daemons that share what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from discreet.daemon.agents.stores.interface import TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore
from support.postgres import Server
from support.sqlite_files import opened

SHARED = ["sqlite", "postgres"]
"""Kinds of stores that several daemons may share. Another one is added here and in `_new_store`."""


class NewStore(Protocol):
    """Makes the store of another daemon on the same file or server."""

    def __call__(self, **options: Any) -> TaskStore: ...  # Any: `retention` and `clock`


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store's file may be."""
    return str(tmp_path / "tasks.db")


@pytest.fixture(params=["memory", *SHARED])
async def store(request: pytest.FixtureRequest, path: str) -> AsyncIterator[TaskStore]:
    async with opened(_new_store(request, path)()) as made:
        yield made


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, path: str) -> NewStore:
    return _new_store(request, path)


@pytest.fixture
async def pair(shared: NewStore) -> AsyncIterator[tuple[TaskStore, TaskStore]]:
    """Two daemons."""
    async with opened(shared()) as one, opened(shared()) as other:
        yield one, other


def _new_store(request: pytest.FixtureRequest, path: str) -> NewStore:
    """Skips the test where a package or a server is missing."""
    match request.param:
        case "memory":
            return MemoryStore
        case "sqlite":
            from discreet.daemon.agents.stores.sqlite.store import SqliteStore

            return lambda **options: SqliteStore(path, **options)
        case _:
            server: Server = request.getfixturevalue("postgres")
            from discreet.daemon.agents.stores.postgres.store import PostgresStore

            url = server.new_database()
            return lambda **options: PostgresStore(url, **options)
