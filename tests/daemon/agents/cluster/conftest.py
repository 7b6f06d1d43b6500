"""Stores that several daemons share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.daemon.agents.stores.interface import TaskStore
from support.postgres import Server


@pytest.fixture(params=["sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], TaskStore]:
    """Makes stores on one file or on one database."""
    if request.param == "sqlite":
        from discreet.daemon.agents.stores.sqlite.store import SqliteStore

        return lambda: SqliteStore(str(tmp_path / "tasks.db"))
    server: Server = request.getfixturevalue("postgres")  # skips the test where psycopg is missing
    from discreet.daemon.agents.stores.postgres.store import PostgresStore

    url = server.new_database()
    return lambda: PostgresStore(url)
