"""Stores that several daemons share: the cheapest on both loops, and one on a server; all for what depends on how a store tells of
changes and deaths. The rest of what stores promise is tested with the stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.agents import cluster
from support.places import LOOPS, SHARED, NewStore, places_of, run_on


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A module may name the only `KINDS` of stores that it is about."""
    if "kind" in metafunc.fixturenames:
        every = SHARED if "on_any_store" in metafunc.fixturenames else ["sqlite", "redis"]
        run_on(metafunc, getattr(metafunc.module, "KINDS", every))
    elif "anyio_backend" in metafunc.fixturenames:
        metafunc.parametrize("anyio_backend", LOOPS["sqlite"])


@pytest.fixture
def anyio_backend() -> str:
    """Always parametrised."""
    raise NotImplementedError


@pytest.fixture
def new_store(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Makes stores on one file, or on one server."""
    return places_of(kind, request)(tmp_path).new_store


@pytest.fixture
def on_any_store(new_store: NewStore, kind: str, monkeypatch: pytest.MonkeyPatch) -> NewStore:
    """The same, of every kind."""
    if kind == "postgres":  # it gives the others time to come back
        monkeypatch.setattr("discreet.agents.stores.postgres.store.GRACE_SECONDS", 0.1)
    return new_store


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon looks for what was left undone ten times a second, not once."""
    monkeypatch.setattr(cluster, "IDLE_POLL_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(cluster, "OWNED_TURNS", 1)
