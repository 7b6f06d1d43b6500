"""Redirects the standard library's `logging` to our log. Imports `logging`, so it is imported late."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import final

from .logger import level_of_number, log
from .sink import safe_call


@final
class ForwardingHandler(logging.Handler):
    """Logs each record as the event `python.log`. Formats it at once, since its arguments may change later."""

    def emit(self, record: logging.LogRecord) -> None:
        level = level_of_number(record.levelno)
        if not log.is_enabled_for(level):
            return
        message = safe_call(record.getMessage, lambda fault: f"<unformattable: {type(fault).__name__}>")
        exc = record.exc_info[1] if record.exc_info else None
        fields: dict[str, object] = {"logger": record.name, "message": message, "exc": exc}
        log.record(level, "python.log", fields, when=record.created)

    def handleError(self, record: logging.LogRecord) -> None:
        """Prints nothing: the base class would write the record and a traceback to stderr."""


def redirect_logging() -> Callable[[], None]:
    """Make the root logger forward its records, and keep `logging` from printing anything. The result undoes it."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, logging.raiseExceptions, logging.lastResort
    forwarder = ForwardingHandler()
    root.handlers[:] = [handler for handler in root.handlers if not _prints(handler)] + [forwarder]
    logging.raiseExceptions = False
    logging.lastResort = forwarder
    remove_listener = log.on_level(root.setLevel)

    def undo() -> None:
        remove_listener()
        root.handlers[:], level, logging.raiseExceptions, logging.lastResort = before
        root.setLevel(level)

    return undo


def _prints(handler: logging.Handler) -> bool:
    """Whether it is a plain handler on stdout or stderr, as `basicConfig` makes it: its lines would appear twice."""
    outputs = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return type(handler) is logging.StreamHandler and any(handler.stream is output for output in outputs)
