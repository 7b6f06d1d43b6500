"""The thread that alone renders and writes, from `start` to `close`. Whoever logs never waits for it.

The thread begins with the first accepted event: a quiet run pays neither for it nor for the imports of rendering. It
may block in a write for as long as nobody reads stderr, and holds nothing meanwhile that a logging call needs.

`_thread` and not `threading`: starting a `threading.Thread` takes locks and waits, which a signal handler or a
destructor that happens to log the first event must not do.
"""

from __future__ import annotations

import _thread
import atexit
import os
from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Final, final

from .contain import contained
from .levels import RANK
from .logger import Logger, log
from .queue import Event
from .sink import DEFAULTS, Form, LogSettings, Sink, open_sink, wants_color

if TYPE_CHECKING:
    from .render import Renderer

HEAD_START_SECONDS: Final = 0.1
"""How long the first line waits: loading the renderers competes with what the daemon loads for its first reply."""

FLUSH_SECONDS: Final = 0.5
"""How long `close` waits for lines to be written: part of the drain window of 2 s."""


def start(
    settings: LogSettings, stderr_fd: int, environ: Mapping[str, str], *, version: str = "", logger: Logger = log
) -> Logs:
    """Decides on sink, form and level, logs `daemon.started`, and lets what was logged before come out.

    `stderr_fd` is duplicated. `environ` is copied; it holds NO_COLOR, TERM, JOURNAL_STREAM and the secrets to scrub.
    A file that can't be written is a warning on stderr. Raises `ValueError` for an unknown level and
    `RuntimeError` when the logs are started already.
    """
    if logger.backlog.attached:
        raise RuntimeError("the logs have been started already")
    if settings.level is not None:
        logger.set_level(settings.level)
    sink, fault = open_sink(settings, stderr_fd, environ)
    form, level = DEFAULTS[sink.kind]
    if settings.level is None:
        logger.set_level(level)
    logs = Logs(
        logger,
        sink,
        form=form if settings.format == "auto" else settings.format,
        color=wants_color(settings, sink, environ),
        environ=dict(environ),
    )
    logger.info("daemon.started", version=version, pid=os.getpid(), log_level=logger.level, sink=sink.name)
    if fault is not None:
        logger.warning("logs.file_unusable", file=settings.file, reason=fault)
    return logs


@final
class Logs:
    """The running logs. Close them last: nothing that happens afterwards is seen, an uncaught exception included."""

    def __init__(self, logger: Logger, sink: Sink, *, form: Form, color: bool, environ: Mapping[str, str]) -> None:
        self.sink_name = sink.name
        """`stderr`, `journal`, or the file's name."""
        self._backlog = logger.backlog
        self._sink = sink
        self._form: Form = form
        self._color = color
        self._environ = environ
        self._renderer: Renderer | None = None
        self._closing = False
        self._dropped: int | None = None
        self._lost = 0  # accepted, but the sink did not take them
        self._said = 0  # how many lost or refused ones `logs.dropped` has told of
        self._in_hand = 0
        self._begin_anew()
        self._backlog.attach(self._rouse, rank=RANK[logger.level])
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _begin_anew(self) -> None:
        self._begun = _thread.allocate_lock()  # taken: there is, or was, a thread
        self._wake = _thread.allocate_lock()  # released: there may be something to do
        self._done = _thread.allocate_lock()  # released: the thread has ended
        self._hurry = _thread.allocate_lock()  # released: there is no time for a head start
        self._wake.acquire()
        self._done.acquire()
        self._hurry.acquire()

    def close(self, timeout: float = FLUSH_SECONDS) -> int:
        """Writes what waits, for `timeout` seconds at most, and ends. Later events are dropped.

        Returns how many events nobody will see: refused by a full backlog, not taken by the sink, or left over. A
        second call changes nothing and returns the same.
        """
        if self._dropped is not None:
            return self._dropped
        atexit.unregister(self.close)
        self._backlog.shut()
        self._closing = True
        if self._begun.acquire(blocking=False):
            self._sink.close()  # nothing was ever written
            self._done.release()
        else:
            self._nudge()
        if self._done.acquire(timeout=max(timeout, 0.0)):
            self._done.release()  # for whoever else closes at the same time
        self._dropped = self._lost + self._in_hand + self._backlog.detach()
        return self._dropped

    def _rouse(self) -> None:
        """Called by whoever logs: wakes the thread, or begins it."""
        self._backlog.idle = False
        if self._begun.acquire(blocking=False):
            self._begin()
        else:
            self._nudge()

    def _nudge(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:
            return  # somebody else has just done it

    def _begin(self) -> None:
        # `threading` takes the thread that imports it for the main thread, and the interpreter's end waits for that one.
        # So it is loaded here, in the thread that logs, before the writer's imports come to it.
        __import__("threading")
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # no more threads, or the interpreter is ending: the next event tries again
            self._begun.release()
            self._backlog.idle = True

    def _forked(self) -> None:
        """In a forked child: no thread came along, and what waits is the parent's to write."""
        if self._dropped is None:
            self._begin_anew()
            self._backlog.forget()
            self._backlog.idle = True

    def _run(self) -> None:
        self._backlog.writer = _thread.get_ident()
        self._hurry.acquire(timeout=HEAD_START_SECONDS)
        while self._dropped is None:  # else `close` has stopped waiting for this thread
            event = self._backlog.get()
            if event is not None:
                self._write(event)
                continue
            self._say_dropped(self._backlog.refused)
            if self._closing:
                break
            self._backlog.idle = True
            if not len(self._backlog) and not self._closing:
                self._wake.acquire()
        self._backlog.writer = 0
        self._sink.close()
        self._done.release()

    def _write(self, event: Event) -> None:
        self._in_hand = 1
        self._say_dropped(event.refused)
        self._lost += not self._put(event)
        self._in_hand = 0

    def _say_dropped(self, refused: int) -> None:
        """Says it where the gap is: `refused` is the count when the next line's event happened."""
        missing = refused + self._lost - self._said
        if missing > 0 and self._put(Event(time(), RANK["warn"], "logs.dropped", {"count": missing}, refused, 0)):
            self._said += missing

    def _put(self, event: Event) -> bool:
        return not self._sink.silent and self._sink.write(self._line(event))

    def _line(self, event: Event) -> bytes:
        """No fault of a value's own code, nor of the renderers, may end this thread."""
        from .line import minimal_line  # late, for `json` and `datetime`

        return contained(
            lambda: self._rendered(event), lambda fault: minimal_line(event, self._form, fault), BaseException
        )

    def _rendered(self, event: Event) -> bytes:
        if self._renderer is None:
            from .render import Renderer  # late, for structlog and the scrubber's tables

            self._renderer = Renderer(self._form, color=self._color, environ=self._environ)
        return self._renderer.line(event)


def stray(stream: str, text: str) -> None:
    """For `framing.guard`: what something wrote to stdout or stderr past the daemon, as an event of its own."""
    log.warning(f"{stream}.stray", text=text)
