"""The daemon's own logs: scrubbed events with fields, to stderr or a file, never to stdout, never blocking a caller."""

import time
from collections.abc import Callable
from typing import Final, final

from .hooks import (
    PrintedTexts,
    capture_logging,
    capture_structlog,
    install_hooks,
    log_stray_output,
    loop_exception_handler,
    uninstall_hooks,
)
from .logger import AnyLevel, ConfiguredPath, Level, Logger, log, parse_level
from .sink import LogSettings
from .writer import LogWriter, start_logging

# Warnings that callers can cause as often as they like: logged now and then, with how often they were not.


INTERVAL_SECONDS: Final = 60.0
"""How often one of them is logged at most."""


@final
class RepeatedWarning:
    """One kind of event. The first is logged, and the first after each interval; `unlogged` says how many came between."""

    def __init__(self, event: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._event = event
        self._clock = clock
        self._silent_until = float("-inf")
        self._unlogged = 0

    def __call__(self, **fields: object) -> None:
        now = self._clock()
        if now < self._silent_until:
            self._unlogged += 1
            return
        self._silent_until = now + INTERVAL_SECONDS
        if self._unlogged:
            fields["unlogged"], self._unlogged = self._unlogged, 0
        log.warning(self._event, **fields)


__all__ = [
    "AnyLevel",
    "ConfiguredPath",
    "Level",
    "LogSettings",
    "LogWriter",
    "Logger",
    "PrintedTexts",
    "RepeatedWarning",
    "capture_logging",
    "capture_structlog",
    "install_hooks",
    "log",
    "log_stray_output",
    "loop_exception_handler",
    "parse_level",
    "start_logging",
    "uninstall_hooks",
]
