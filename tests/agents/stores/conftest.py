"""Each kind of store, opened: one daemon's, or those of two daemons that share what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.agents.stores.interface import TaskStore
from support.places import LOOPS, SHARED, NewStore, Place, places_of, run_on
from support.sqlite_files import opened


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module may name the only `KINDS` of stores that it is about."""
    if "new_place" in metafunc.fixturenames:
        every = SHARED if {"shared", "url"} & {*metafunc.fixturenames} else [*LOOPS]
        run_on(metafunc, getattr(metafunc.module, "KINDS", every))


@pytest.fixture
def anyio_backend() -> str:
    """One loop: what is stored does not depend on it. Tests of each `kind` of store run on those that `LOOPS` names."""
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store's file may be."""
    return str(tmp_path / "tasks.db")


@pytest.fixture
def new_place(
    kind: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Place]:
    """Another place at each call. The one before must not be in use any more."""
    places = places_of(kind, request)
    return lambda: places(tmp_path_factory.mktemp("place"))


@pytest.fixture
def new_store(new_place: Callable[[], Place]) -> NewStore:
    """Makes another daemon's store in one place."""
    return new_place().new_store


@pytest.fixture
def url(new_store: Any) -> str:  # Any: a partial
    """The address of that place."""
    address: str = new_store.args[0]
    return address


@pytest.fixture
async def store(new_store: NewStore) -> AsyncIterator[TaskStore]:
    async with opened(new_store()) as made:
        yield made


@pytest.fixture
def shared(new_store: NewStore) -> NewStore:
    """The same, of a kind that daemons share."""
    return new_store


@pytest.fixture
async def pair(shared: NewStore) -> AsyncIterator[tuple[TaskStore, TaskStore]]:
    """Two daemons."""
    async with opened(shared()) as one, opened(shared()) as other:
        yield one, other
