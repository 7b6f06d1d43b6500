"""Each kind of store, opened: one daemon's, or those of two daemons that share what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from discreet.agents.stores.interface import TaskStore
from support.places import SHARED, NewStore, Place, places_of
from support.sqlite_files import opened


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store's file may be."""
    return str(tmp_path / "tasks.db")


@pytest.fixture(params=["memory", *SHARED])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    return places_of(request)(tmp_path).new_store


@pytest.fixture
async def store(new_store: NewStore) -> AsyncIterator[TaskStore]:
    async with opened(new_store()) as made:
        yield made


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    return places_of(request)(tmp_path).new_store


@pytest.fixture
async def pair(shared: NewStore) -> AsyncIterator[tuple[TaskStore, TaskStore]]:
    """Two daemons."""
    async with opened(shared()) as one, opened(shared()) as other:
        yield one, other


@pytest.fixture(scope="module", params=SHARED)
def new_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Place]:
    """Another place at each call. The one before must not be in use any more."""
    places = places_of(request)
    return lambda: places(tmp_path_factory.mktemp("place"))
