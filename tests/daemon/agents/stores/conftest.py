"""Each kind of store, opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from discreet.daemon.agents.stores.interface import TaskStore
from discreet.daemon.agents.stores.memory import MemoryStore
from discreet.daemon.agents.stores.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store's file may be."""
    return str(tmp_path / "tasks.db")


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TaskStore]:
    made: TaskStore = MemoryStore() if request.param == "memory" else SqliteStore(str(tmp_path / "tasks.db"))
    await made.open()
    yield made
    await made.close()
