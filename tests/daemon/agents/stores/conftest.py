"""Each kind of store, opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from discreet.daemon.agents.stores.interface import TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore
from discreet.daemon.agents.stores.sqlite.store import SqliteStore
from support.postgres import Server


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store's file may be."""
    return str(tmp_path / "tasks.db")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TaskStore]:
    made = _made(request, tmp_path)
    await made.open()
    yield made
    await made.close()


def _made(request: pytest.FixtureRequest, tmp_path: Path) -> TaskStore:
    match request.param:
        case "memory":
            return MemoryStore()
        case "sqlite":
            return SqliteStore(str(tmp_path / "tasks.db"))
        case _:
            server: Server = request.getfixturevalue("postgres")  # skips the test where psycopg is missing
            from discreet.daemon.agents.stores.postgres.store import PostgresStore

            return PostgresStore(server.new_database())
