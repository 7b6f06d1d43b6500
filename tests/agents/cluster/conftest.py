"""Stores that several daemons share."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.places import SHARED, NewStore, places_of


@pytest.fixture(params=SHARED)
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Makes stores on one file, or on one server."""
    return places_of(request)(tmp_path).new_store


@pytest.fixture(params=[kind for kind in SHARED if kind != "redis"])
def shared_by_living(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """The same, where a task may be taken from a daemon that is not dead."""
    return places_of(request)(tmp_path).new_store
