"""Leads the standard library's `logging` into our backlog. Imports `logging`, so it is imported late."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import final

from .contain import contained
from .levels import level_of_number
from .logger import log


@final
class Forwarder(logging.Handler):
    """Turns each record into the event `python.log`. Its text is made at once, since the arguments may change later."""

    def emit(self, record: logging.LogRecord) -> None:
        level = level_of_number(record.levelno)
        if not log.wants(level):
            return
        message = contained(record.getMessage, lambda fault: f"<unformattable: {type(fault).__name__}>")
        exc = record.exc_info[1] if record.exc_info else None
        fields: dict[str, object] = {"logger": record.name, "message": message, "exc": exc}
        log.record(level, "python.log", fields, when=record.created)

    def handleError(self, record: logging.LogRecord) -> None:
        """Prints nothing: the base class would write the record and a traceback to stderr."""


def join_logging() -> Callable[[], None]:
    """Makes the root logger forward and lets nothing of `logging` print by itself; the result undoes it."""
    root = logging.getLogger()
    before = root.handlers[:], root.level, logging.raiseExceptions, logging.lastResort
    forwarder = Forwarder()
    root.handlers[:] = [handler for handler in root.handlers if not _prints(handler)] + [forwarder]
    logging.raiseExceptions = False
    logging.lastResort = forwarder
    unfollow = log.follow(root.setLevel)

    def undo() -> None:
        unfollow()
        root.handlers[:], level, logging.raiseExceptions, logging.lastResort = before
        root.setLevel(level)

    return undo


def _prints(handler: logging.Handler) -> bool:
    """A plain handler on stdout or stderr, as `basicConfig` makes it: its lines would come twice."""
    outputs = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return type(handler) is logging.StreamHandler and any(handler.stream is output for output in outputs)
