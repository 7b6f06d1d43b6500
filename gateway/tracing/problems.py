"""Logs problems with the recording of spans: the first of each kind, and then one every few minutes.

An exporter without its collector would otherwise complain with every batch.
"""

from __future__ import annotations

import logging
from threading import Lock
from time import monotonic
from typing import Final, final

from ...daemon.logs import log
from ...daemon.logs.logger import level_of_number
from ...daemon.logs.sink import safe_call

SILENT_SECONDS: Final = 300.0
"""How long a problem is not repeated."""

MAX_KINDS: Final = 64
"""How many kinds of problems are told apart. Beyond it the oldest is forgotten, and told again."""

_LIBRARY: Final = "opentelemetry"


_told: Final[dict[tuple[str, str], float]] = {}
"""When each kind of problem was told."""
_lock: Final = Lock()


def _is_new(kind: tuple[str, str]) -> bool:
    """Whether it is time to tell of this one. From any thread."""
    now = monotonic()
    with _lock:
        before = _told.get(kind)
        if before is not None and now - before < SILENT_SECONDS:
            return False
        _told.pop(kind, None)
        while len(_told) >= MAX_KINDS:
            del _told[next(iter(_told))]
        _told[kind] = now
    return True


def note_fault(exc: BaseException) -> None:
    """Log what a processor, a sampler or an exporter of the program's own raised."""
    if _is_new(("", type(exc).__name__)):
        log.error("otel.failed", exc=exc)


@final
class _Handler(logging.Handler):
    """Takes what the libraries of OpenTelemetry log. From any thread."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING or not _is_new((record.name, str(record.msg))):
            return
        text = safe_call(record.getMessage, lambda _: str(record.msg))  # its arguments may not fit its text
        fields: dict[str, object] = {"logger": record.name, "message": text}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = type(record.exc_info[1]).__name__
        log.record(level_of_number(record.levelno), "otel.problem", fields)

    def handleError(self, record: logging.LogRecord) -> None:
        """Prints nothing, unlike the base class."""


_handler: Final = _Handler()


def take_over_log() -> None:
    """From now on what the libraries of OpenTelemetry log comes here, and nowhere else."""
    logger = logging.getLogger(_LIBRARY)
    if _handler not in logger.handlers:
        logger.handlers[:] = [_handler]
        logger.propagate = False
