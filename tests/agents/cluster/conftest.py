"""Stores that several daemons share: the cheapest on both loops, and one on a server. What stores promise is tested with the stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.places import NewStore, places_of, run_on


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kind" in metafunc.fixturenames:
        run_on(metafunc, ["sqlite", "redis"])


@pytest.fixture
def new_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Makes stores on one file, or on one server."""
    return places_of(kind, request)(tmp_path).new_store
