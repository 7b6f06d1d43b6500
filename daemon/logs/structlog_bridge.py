"""Redirects users' structlog loggers to our log. Imports structlog, so it is imported late."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn, final

import structlog

from .logger import level_of_number, log
from .sink import safe_call

# Redirects the standard library's `logging` to our log. Imports `logging`, so it is imported late.


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


_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "warn": 30}
"""By the method called. Every other method, such as `exception`, logs an error."""


def redirect_structlog() -> Callable[[], None]:
    """Make structlog log here, unless it is configured already. The result undoes it."""
    if structlog.is_configured():
        return _nothing
    structlog.configure(
        processors=[_drop_below_level, structlog.contextvars.merge_contextvars, _forward],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        logger_factory=structlog.ReturnLoggerFactory(),  # never called: `_forward` keeps every event
        cache_logger_on_first_use=False,
    )
    return structlog.reset_defaults


def _nothing() -> None:
    """Undoes nothing."""


def _rank(method: str) -> int:
    return _NUMBERS.get(method, 40)


def _drop_below_level(logger: object, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if not log.is_enabled_for(level_of_number(_rank(method))):
        raise structlog.DropEvent
    return entry


def _forward(logger: object, method: str, entry: MutableMapping[str, Any]) -> NoReturn:
    """Log the entry as the event `python.log`, with its own event as `message`, and stop structlog's processing."""
    fields: dict[str, object] = {"message": entry.pop("event", None), **entry}
    if exc := _exception(fields.pop("exc_info", None)):
        fields["exc"] = exc
    log.record(level_of_number(_rank(method)), "python.log", fields)
    raise structlog.DropEvent


def _exception(exc_info: object) -> BaseException | None:
    """The exception of `exc_info`: an exception, its triple, or true for the one that is being handled."""
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    if isinstance(exc_info, BaseException):
        return exc_info
    return sys.exc_info()[1] if exc_info else None
