"""Turns what Python and libraries would write to stderr by themselves into log events.

A module is hooked once it is loaded, since importing `logging` or structlog only for this would make the start slower.
So call `install_hooks` again after importing something large, such as the user's code. Each function in `_HOOKS`
returns the function that removes its hook.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias, final

from .logger import BOUND, INLINE, Bound, bind, bound, log
from .sink import safe_call

if TYPE_CHECKING:
    import asyncio
    import threading
    from types import TracebackType


def log_stray_output(stream: str, text: str) -> None:
    """Log what has come through a pipe. For `StrayOutputReader`."""
    log.warning(f"{stream}.stray", text=text)


@final
class _Line:
    """The beginning of a line that a handler is printing. Logged when its request's context variables go, at the latest."""

    __slots__ = ("name", "origin", "text")

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.origin = bound()

    def log(self) -> None:
        text, self.text = self.text, ""
        if text:
            with bind(self.origin):
                log_stray_output(self.name, text)

    def __del__(self) -> None:
        self.log()


_LINES: Final[ContextVar[dict[str, _Line] | None]] = ContextVar("discreet_printed", default=None)

MAX_LINE: Final = 8 * 1024
"""How much of a line is kept until it ends."""


@final
class PrintedTexts:
    """Takes what is printed while a request is being handled, before it is written, so that its event names the request. A
    `stdio_guard.TextTaker`."""

    def take(self, name: str, text: str) -> bool:
        """Take a text that was printed to this stream; False where no request is known for it."""
        origin = bound()
        if origin is None:
            return False
        lines = _LINES.get()
        if lines is None:
            _LINES.set(lines := {})
            INLINE.printed = INLINE.printed or origin is INLINE.call
        line = lines.get(name)
        if line is None or line.origin is not origin:
            line = lines[name] = _Line(name)
        line.text += text
        if "\n" in text or len(line.text) > MAX_LINE:
            line.text = line.text.rstrip("\n")
            line.log()
        return True

    def flush(self, name: str) -> None:
        """Log what was printed of a line."""
        lines = _LINES.get()
        if lines is not None and name in lines:
            lines[name].log()


def end_lines() -> None:
    """Log the beginnings of lines that were printed in these context variables, and forget them."""
    for line in (_LINES.get() or {}).values():
        line.log()
    _LINES.set(None)
    INLINE.printed = False


Undo: TypeAlias = Callable[[], None]

_undo: Final[dict[str, Undo]] = {}


def install_hooks() -> None:
    """Hook every module of `_HOOKS` that is loaded and not hooked yet. May be called any number of times."""
    for module in _HOOKS:
        if module in sys.modules:
            _install(module)


def capture_logging() -> None:
    """Log the records of the standard library's `logging` as events `python.log`. Imports `logging`.

    The root logger takes our level. Handlers that write to stdout or stderr are removed from it; others stay.
    """
    _install("logging")


def capture_structlog() -> None:
    """Make `structlog.get_logger()` in users' code log here, unless they have configured it. Imports structlog."""
    _install("structlog")


def owns_log() -> bool:
    """Whether the log of the whole process is ours."""
    return bool(_undo)


def uninstall_hooks() -> None:
    """Restore everything, the last hook first."""
    while _undo:
        _, undo = _undo.popitem()
        undo()


def loop_exception_handler(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """For `loop.set_exception_handler`: logs an exception of a task that is not awaited as `loop.exception`."""
    log.error("loop.exception", message=str(context.get("message", "")), exc=context.get("exception"))


def _install(module: str) -> None:
    if module not in _undo:
        _undo[module] = _HOOKS[module]()


def _replace(owner: ModuleType | type, **hooks: object) -> Undo:
    """Set these attributes of a module or a class. The result sets them back."""
    before = {name: getattr(owner, name) for name in hooks}

    def undo() -> None:
        for name, value in before.items():
            setattr(owner, name, value)

    for name, value in hooks.items():
        setattr(owner, name, value)
    return undo


def _uncaught(kind: type[BaseException], exc: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        log.info("python.interrupted")
    else:
        log.error("python.uncaught", thread="MainThread", exc=exc)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Logs only the type of the object: a reference would resurrect an object that is being destroyed."""
    where = type(unraisable.object).__qualname__
    log.error("python.unraisable", where=where, message=unraisable.err_msg, exc=unraisable.exc_value)


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if not issubclass(args.exc_type, SystemExit):  # it ends a thread silently, as it does without this hook
        name = None if args.thread is None else args.thread.name
        log.error("python.uncaught", thread=name, exc=args.exc_value)


def _is_for_all(thread: threading.Thread) -> bool:
    """Whether it is a thread of the daemon, or of an executor, which works for many requests."""
    target = getattr(thread, "_target", None)
    of_executor = getattr(target, "__module__", "") == "concurrent.futures.thread"
    if of_executor:  # a handler may have imported it just now
        _install("concurrent.futures")
    return of_executor or "run" in vars(thread) or thread.name.startswith("discreet-")


def _hook_threading() -> Undo:
    """Log what ends a thread. Have a thread that a handler starts, other than one of the daemon, work for its request."""
    import threading

    start = threading.Thread.start

    def start_for_request(thread: threading.Thread) -> None:
        found = BOUND.get()
        if found is not None and not _is_for_all(thread):

            def run() -> None:
                del thread.run  # that of its class again
                BOUND.set(found)
                thread.run()

            thread.run = run  # type: ignore[method-assign]
        start(thread)

    undo_hook = _replace(threading, excepthook=_uncaught_in_thread)
    undo_start = _replace(threading.Thread, start=start_for_request)

    def undo() -> None:
        undo_start()
        undo_hook()

    return undo


def _hook_executors() -> Undo:
    """Have the jobs that a handler gives to a `ThreadPoolExecutor` work for its request. Its threads are for all requests."""
    from concurrent.futures.thread import ThreadPoolExecutor

    submit: Callable[..., Any] = ThreadPoolExecutor.submit

    def submit_for_request(pool: ThreadPoolExecutor, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        found = BOUND.get()
        if found is None:
            return submit(pool, work, *args, **kwargs)
        with bind(None):
            return submit(pool, _work_for, found, work, *args, **kwargs)

    return _replace(ThreadPoolExecutor, submit=submit_for_request)


def _work_for(found: Bound, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with bind(found):
        try:
            return work(*args, **kwargs)
        finally:
            end_lines()


def _hook_warnings() -> Undo:
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
        if file is not None:  # the caller has chosen where to write it
            before(message, category, filename, lineno, file, line)
            return
        text = safe_call(lambda: str(message), lambda fault: "")  # a warning's `__str__` may be foreign code
        log.warning("python.warning", category=category.__name__, message=text, where=f"{filename}:{lineno}")

    return _replace(warnings, showwarning=show)


def _hook_logging() -> Undo:
    from .stdlib_bridge import redirect_logging

    return redirect_logging()


def _hook_structlog() -> Undo:
    from .structlog_bridge import redirect_structlog

    return redirect_structlog()


_HOOKS: Final[dict[str, Callable[[], Undo]]] = {
    "sys": lambda: _replace(sys, excepthook=_uncaught, unraisablehook=_unraisable),
    "threading": _hook_threading,
    "concurrent.futures": _hook_executors,
    "warnings": _hook_warnings,
    "logging": _hook_logging,
    "structlog": _hook_structlog,
}
"""By the module that is hooked."""
