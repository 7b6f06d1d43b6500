"""What the daemon has logged, as events with fields, where no writer takes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from discreet.daemon.logs import log


class LoggedEvents:
    """Call it for the events since the last call."""

    def __call__(self) -> list[tuple[str, dict[str, Any]]]:
        return [(event.name, dict(event.fields)) for event in iter(log.queue.get, None)]

    def names(self) -> list[str]:
        return [name for name, _ in self()]


@contextmanager
def logged_events(level: str) -> Iterator[LoggedEvents]:
    """The events from this level on that are logged during the block."""
    before = log.level
    log.set_level(level)
    log.queue.clear()
    try:
        yield LoggedEvents()
    finally:
        log.queue.clear()
        log.set_level(before)
