"""What the daemon logs while a test runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.logged_events import LoggedEvents, logged_events


@pytest.fixture
def logged() -> Iterator[LoggedEvents]:
    with logged_events("warning") as events:
        yield events
