"""What tests of imports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.logged_events import LoggedEvents, logged_events


@pytest.fixture
def anyio_backend() -> str:
    """One event loop: imports do alike on each. Tests of processes that end are marked with `both_loops`."""
    return "asyncio"


@pytest.fixture
def logged() -> Iterator[LoggedEvents]:
    """What the daemon logs while a test runs."""
    with logged_events("warning") as events:
        yield events
