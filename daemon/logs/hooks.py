"""Closes the side doors: what Python and libraries would write to stderr by themselves becomes events.

Each door is closed once its module is there, since importing `logging` or structlog only for this would cost the
start-up more than it gives: call `install_hooks` again after something large was imported, such as the user's code.
Every door's function returns what opens it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

from .contain import contained
from .logger import log

if TYPE_CHECKING:
    import asyncio
    import threading
    from types import TracebackType

Undo: TypeAlias = Callable[[], None]

_undo: Final[dict[str, Undo]] = {}


def install_hooks() -> None:
    """Closes every door whose module is loaded and that is still open. May be called as often as there is reason to."""
    for module in _DOORS:
        if module in sys.modules:
            _close(module)


def install_logging() -> None:
    """Sends the records of the standard library's `logging` here as events `python.log`. Imports `logging`.

    The root logger's level follows ours. Handlers that write to stdout or stderr leave the root logger; others stay.
    """
    _close("logging")


def install_structlog() -> None:
    """Makes `structlog.get_logger()` in users' code log here, unless they have configured it. Imports structlog."""
    _close("structlog")


def uninstall_hooks() -> None:
    """Puts everything back as it was found, the last first."""
    while _undo:
        _, undo = _undo.popitem()
        undo()


def loop_exception_handler(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """For `loop.set_exception_handler`: an exception that nobody awaits is the event `loop.exception`."""
    log.error("loop.exception", message=str(context.get("message", "")), exc=context.get("exception"))


def _close(module: str) -> None:
    if module not in _undo:
        _undo[module] = _DOORS[module]()


def _sys_door() -> Undo:
    before, before_unraisable = sys.excepthook, sys.unraisablehook

    def undo() -> None:
        sys.excepthook, sys.unraisablehook = before, before_unraisable

    sys.excepthook, sys.unraisablehook = _uncaught, _unraisable
    return undo


def _uncaught(kind: type[BaseException], exc: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        log.info("python.interrupted")
    else:
        log.error("python.uncaught", thread="MainThread", exc=exc)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Names the type of the object only: keeping the object would bring it back to life."""
    where = type(unraisable.object).__qualname__
    log.error("python.unraisable", where=where, message=unraisable.err_msg, exc=unraisable.exc_value)


def _threading_door() -> Undo:
    import threading

    before = threading.excepthook

    def undo() -> None:
        threading.excepthook = before

    threading.excepthook = _uncaught_in_thread
    return undo


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if not issubclass(args.exc_type, SystemExit):  # which ends a thread in silence, as without this hook
        name = None if args.thread is None else args.thread.name
        log.error("python.uncaught", thread=name, exc=args.exc_value)


def _warnings_door() -> Undo:
    import warnings

    before = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if file is not None:  # somebody asked for it there
            before(message, category, filename, lineno, file, line)
            return
        text = contained(lambda: str(message), lambda fault: "")  # a warning's text may be code of its own
        log.warning("python.warning", category=category.__name__, message=text, where=f"{filename}:{lineno}")

    def undo() -> None:
        warnings.showwarning = before

    warnings.showwarning = show
    return undo


def _logging_door() -> Undo:
    from .stdlib_bridge import join_logging

    return join_logging()


def _structlog_door() -> Undo:
    from .structlog_bridge import join_structlog

    return join_structlog()


_DOORS: Final[dict[str, Callable[[], Undo]]] = {
    "sys": _sys_door,
    "threading": _threading_door,
    "warnings": _warnings_door,
    "logging": _logging_door,
    "structlog": _structlog_door,
}
"""By the module whose door it is."""
