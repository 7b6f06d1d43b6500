"""The thread that renders and writes log lines, from `start_logging` to `close`. Callers of the log never wait for it.

The thread starts with the first accepted event: a quiet run pays neither for it nor for the imports of rendering. It
may block in a write as long as stderr is not read; it then holds nothing that a logging call needs.

`_thread` and not `threading`: starting a `threading.Thread` takes locks and waits, which a signal handler or a
destructor that happens to log the first event must not do.
"""

from __future__ import annotations

import _thread
import atexit
import os
from collections.abc import Mapping
from time import monotonic, time
from typing import TYPE_CHECKING, Final, final

from .logger import RANK, ConfiguredPath, LogEvent, Logger, log
from .sink import DEFAULTS, Form, LogSettings, Sink, open_sink, safe_call, wants_color

if TYPE_CHECKING:
    from .render import Renderer

FIRST_LINE_DELAY_SECONDS: Final = 0.1
"""The delay of the first line: loading the renderers competes with what the daemon loads for its first reply."""

READER_SECONDS: Final = 0.5
"""How long `close` waits for a reader that takes nothing: part of the drain window of 2 s."""

CLOSE_SECONDS: Final = 10.0
"""How long `close` waits in all while lines are rendered and taken: a busy machine needs seconds to load the renderers. In a
daemon that ends in order, the watchdog comes first."""


def start_logging(
    settings: LogSettings,
    stderr_fd: int,
    environ: Mapping[str, str],
    *,
    version: str = "",
    announce: bool = True,
    logger: Logger = log,
    first_line_delay: float = FIRST_LINE_DELAY_SECONDS,
) -> LogWriter:
    """Choose sink, form and level, and begin to write, earlier events first. Logs `daemon.started` if `announce` is true;
    otherwise `LogWriter.announce` does.

    `stderr_fd` is duplicated. `environ` is copied; it holds TERM, JOURNAL_STREAM and the secrets to scrub. A file that
    can't be written causes a warning on stderr, after `daemon.started`. Raises `ValueError` for an unknown
    level, and `RuntimeError` if logging has been started already.
    """
    if logger.queue.attached:
        raise RuntimeError("logging has been started already")
    if settings.level is not None:
        logger.set_level(settings.level)
    sink, fault = open_sink(settings, stderr_fd, environ)
    form, level = DEFAULTS[sink.kind]
    if settings.level is None:
        logger.set_level(level)
    writer = LogWriter(
        logger,
        sink,
        form=form if settings.format == "auto" else settings.format,
        color=wants_color(settings, sink, environ),
        environ=dict(environ),
        first_line_delay=first_line_delay,
    )
    writer.fault, writer.file = fault, settings.file
    if announce:
        writer.announce(version)
    return writer


@final
class LogWriter:
    """Writes the events of a logger. Close it last: later events, uncaught exceptions included, are not seen."""

    def __init__(
        self,
        logger: Logger,
        sink: Sink,
        *,
        form: Form,
        color: bool,
        environ: Mapping[str, str],
        first_line_delay: float,
    ) -> None:
        self.sink_name = sink.name
        """`stderr`, `journal`, or the file's name."""
        self.fault: str | None = None
        """Why the file of the settings is not used: the errno's name, such as `EACCES`."""
        self.file: str | None = None
        """The file of the settings."""
        self._logger = logger
        self._queue = logger.queue
        self._sink = sink
        self._form: Form = form
        self._color = color
        self._environ = environ
        self._first_line_delay = first_line_delay
        self._renderer: Renderer | None = None
        self._closing = False
        self._reopen_asked = False
        self._dropped: int | None = None
        self._reported = 0  # dropped events that `logs.dropped` has reported
        self._writing = 0  # 1 while an event is being written
        self._create_locks()
        self._queue.attach(self._wake_thread, rank=RANK[logger.level])
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _create_locks(self) -> None:
        self._started = _thread.allocate_lock()  # held: the thread has been started
        self._wake = _thread.allocate_lock()  # released: there may be something to do
        self._ended = _thread.allocate_lock()  # released: the thread has ended
        self._no_delay = _thread.allocate_lock()  # released: write the first line now
        self._wake.acquire()
        self._ended.acquire()
        self._no_delay.acquire()

    def announce(self, version: str, **facts: str) -> None:
        """Log that the daemon has started, with these facts, and that the log file can't be used, if so."""
        logger, pid = self._logger, os.getpid()
        sink = ConfiguredPath(self.sink_name)
        logger.info("daemon.started", version=version, pid=pid, log_level=logger.level, sink=sink, **facts)
        if self.fault is not None:
            logger.warning("logs.file_unusable", file=ConfiguredPath(self.file), reason=self.fault)

    def reopen(self) -> None:
        """Have the log file opened anew, under its name, before the next line. May be called in a signal handler."""
        self._reopen_asked = True
        self._wake_thread()

    def close(self, timeout: float = CLOSE_SECONDS, *, reader_timeout: float = READER_SECONDS) -> int:
        """Write what is queued, and end. Later events are dropped.

        It takes at most `timeout` seconds, and less if the reader takes nothing for `reader_timeout` seconds. Returns how
        many events were dropped: refused by a full queue, not taken by the sink, or left over. A second call changes
        nothing and returns the same.
        """
        if self._dropped is not None:
            return self._dropped
        atexit.unregister(self.close)
        self._queue.open = False
        self._closing = True
        if self._started.acquire(blocking=False):
            self._sink.close()  # nothing was ever written
            self._ended.release()
        else:
            _release(self._no_delay)
            _release(self._wake)
        self._wait_ended(monotonic() + timeout, reader_timeout)
        self._dropped = self._writing + self._queue.detach()
        return self._dropped

    def _wait_ended(self, deadline: float, reader_timeout: float) -> None:
        before = self._sink.position
        while not self._ended.acquire(timeout=max(0.0, min(reader_timeout, deadline - monotonic()))):
            now = self._sink.position
            if monotonic() >= deadline or (now is not None and now == before):
                return
            before = now
        self._ended.release()  # for another thread that closes at the same time

    def _wake_thread(self) -> None:
        """Wake the thread, or start it. Called in the thread that logs."""
        self._queue.writer_idle = False
        if self._started.acquire(blocking=False):
            self._start_thread()
        else:
            _release(self._wake)

    def _start_thread(self) -> None:
        # `threading` takes the thread that imports it for the main thread, and the interpreter's end waits for that one.
        # So the thread that logs imports it, before the writer's imports do.
        __import__("threading")
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # no more threads, or the interpreter is ending: the next event tries again
            self._started.release()
            self._queue.writer_idle = True

    def _after_fork(self) -> None:
        """In a forked child there is no thread, and the queued events are the parent's to write."""
        if self._dropped is None:
            self._create_locks()
            self._queue.clear()
            self._reported = 0
            self._queue.writer_idle = True

    def _run(self) -> None:
        self._queue.writer = _thread.get_ident()
        self._no_delay.acquire(timeout=self._first_line_delay)
        while self._dropped is None:  # else `close` has stopped waiting for this thread
            if self._reopen_asked:
                self._reopen()
            event = self._queue.get()
            if event is not None:
                self._write(event)
                continue
            self._report_dropped(self._queue.refused)
            if self._closing:
                break
            self._queue.writer_idle = True
            if not (len(self._queue) or self._closing or self._reopen_asked):
                self._wake.acquire()
        self._queue.writer = 0
        self._sink.close()
        self._ended.release()

    def _write(self, event: LogEvent) -> None:
        self._writing = 1
        self._report_dropped(event.refused)
        self._queue.lost += not self._put(event)
        self._writing = 0

    def _reopen(self) -> None:
        self._reopen_asked = False
        fault = self._sink.reopen()
        if fault is not None:  # it goes to the old file
            fields: dict[str, object] = {"file": ConfiguredPath(self.sink_name), "reason": fault}
            self._queue.lost += not self._put(LogEvent(time(), RANK["warn"], "logs.file_unusable", fields, 0, 0))

    def _report_dropped(self, refused: int) -> None:
        """Report dropped events where they are missing. `refused` is the queue's count at the next line's event."""
        missing = refused + self._queue.lost - self._reported
        if missing > 0 and self._put(LogEvent(time(), RANK["warn"], "logs.dropped", {"count": missing}, refused, 0)):
            self._reported += missing

    def _put(self, event: LogEvent) -> bool:
        return not self._sink.silent and self._sink.write(self._line(event))

    def _line(self, event: LogEvent) -> bytes:
        """The event's line. No exception of a value's own code, nor of the renderers, may end this thread."""
        from .line import fallback_line  # late, for `json` and `datetime`

        return safe_call(
            lambda: self._render(event), lambda fault: fallback_line(event, self._form, fault), BaseException
        )

    def _render(self, event: LogEvent) -> bytes:
        if self._renderer is None:
            from .render import Renderer  # late, for the scrubber's tables

            self._renderer = Renderer(self._form, color=self._color, environ=self._environ)
        return self._renderer.line(event)


def _release(lock: _thread.LockType) -> None:
    """Release a lock that another thread may have released already."""
    try:
        lock.release()
    except RuntimeError:
        return
