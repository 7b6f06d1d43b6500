"""Leads users' structlog loggers into our backlog. Imports structlog, so it is imported late."""

from __future__ import annotations

import sys
from collections.abc import Callable, MutableMapping
from typing import Any, NoReturn

import structlog

from .levels import level_of_number
from .logger import log

_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "warn": 30}
"""By the method that was called; every other one, such as `exception`, is an error."""


def join_structlog() -> Callable[[], None]:
    """Makes structlog log here; the result undoes it. Leaves it alone when somebody has configured it already."""
    if structlog.is_configured():
        return _nothing
    structlog.configure(
        processors=[_drop_below_level, structlog.contextvars.merge_contextvars, _forward],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        logger_factory=structlog.ReturnLoggerFactory(),  # never asked: `_forward` keeps every event
        cache_logger_on_first_use=False,
    )
    return structlog.reset_defaults


def _nothing() -> None:
    """What there is to undo when nothing was done."""


def _rank(method: str) -> int:
    return _NUMBERS.get(method, 40)


def _drop_below_level(logger: object, method: str, entry: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if not log.wants(level_of_number(_rank(method))):
        raise structlog.DropEvent
    return entry


def _forward(logger: object, method: str, entry: MutableMapping[str, Any]) -> NoReturn:
    """Logs the entry as the event `python.log`, its own event as `message`. The entry ends here."""
    fields: dict[str, object] = {"message": entry.pop("event", None), **entry}
    if exc := _exception(fields.pop("exc_info", None)):
        fields["exc"] = exc
    log.record(level_of_number(_rank(method)), "python.log", fields)
    raise structlog.DropEvent


def _exception(exc_info: object) -> BaseException | None:
    """What structlog's callers may mean by `exc_info`: an exception, the triple of it, or true for the one at hand."""
    if isinstance(exc_info, tuple):
        exc_info = exc_info[1]
    if isinstance(exc_info, BaseException):
        return exc_info
    return sys.exc_info()[1] if exc_info else None
