"""What goes wrong with the recording of spans, in the daemon's log: the first of each kind, and then one every few minutes.

An exporter without its collector would otherwise complain with every batch.
"""

from __future__ import annotations

import logging
from threading import Lock
from time import monotonic
from typing import Final, final

from ..logs import log
from ..logs.logger import level_of_number

SILENT_SECONDS: Final = 300.0
"""How long a problem is not repeated."""

MAX_KINDS: Final = 64
"""How many kinds of problems are told apart. Beyond it the oldest is forgotten, and told again."""

_LIBRARY: Final = "opentelemetry"


@final
class _Recent:
    """Which problems were told, and when. From any thread."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], float] = {}
        self._lock = Lock()

    def is_new(self, kind: tuple[str, str]) -> bool:
        """Whether it is time to tell of this one."""
        now = monotonic()
        with self._lock:
            before = self._told.get(kind)
            if before is not None and now - before < SILENT_SECONDS:
                return False
            self._told.pop(kind, None)
            while len(self._told) >= MAX_KINDS:
                del self._told[next(iter(self._told))]
            self._told[kind] = now
        return True


_recent: Final = _Recent()


def note_fault(exc: BaseException) -> None:
    """A processor, a sampler or an exporter of the program's own raised."""
    if _recent.is_new(("", type(exc).__name__)):
        log.error("otel.failed", exc=exc)


@final
class _Handler(logging.Handler):
    """Takes what the libraries of OpenTelemetry log. From any thread."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.WARNING or not _recent.is_new((record.name, str(record.msg))):
            return
        error = type(record.exc_info[1]).__name__ if record.exc_info and record.exc_info[1] is not None else None
        fields: dict[str, object] = {"logger": record.name, "message": _text_of(record)}
        if error is not None:
            fields["error"] = error
        log.record(level_of_number(record.levelno), "otel.problem", fields)

    def handleError(self, record: logging.LogRecord) -> None:
        """Prints nothing, unlike the base class."""


def _text_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - arguments that the library's own text does not fit
        return str(record.msg)


_handler: Final = _Handler()


def take_over_log() -> None:
    """From now on what the libraries of OpenTelemetry log comes here, and nowhere else."""
    logger = logging.getLogger(_LIBRARY)
    if _handler not in logger.handlers:
        logger.handlers[:] = [_handler]
        logger.propagate = False
