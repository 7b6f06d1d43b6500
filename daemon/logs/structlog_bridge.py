"""Redirects users' structlog loggers to our log. Imports structlog, so it is imported late."""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn

import structlog

from .logger import level_of_number, log

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
