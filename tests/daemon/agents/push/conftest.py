"""The events that notifiers log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from discreet.daemon.logs import log
from support.webhooks import Events


@pytest.fixture
def events() -> Iterator[Events]:
    """The events logged since the last call."""
    before = log.level
    log.set_level("info")
    log.queue.clear()

    def taken() -> list[tuple[str, dict[str, Any]]]:
        found = []
        while (event := log.queue.get()) is not None:
            found.append((event.name, dict(event.fields)))
        return found

    yield taken
    log.queue.clear()
    log.set_level(before)
