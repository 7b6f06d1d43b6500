"""Writes the lines of a session to a terminal or a pipe while it runs. Its caller never waits for the reader.

Lines that nobody takes are queued up to a bound. Those beyond it are left out, and a line says how many.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections import deque
from time import monotonic
from typing import Final, final

from ..format import Entry, StderrEntry
from .lines import Lines, counted

QUEUE_BYTES: Final = 1024 * 1024
"""Some seconds of a busy session for a reader that is slow."""

READER_SECONDS: Final = 0.5
"""How long `close` waits for a reader that takes nothing."""

CLOSE_SECONDS: Final = 5.0
"""How long `close` waits in all."""


@final
class Tail:
    """Writes to a descriptor in a thread of its own. A reader that is gone ends the writing, and nothing else."""

    def __init__(self, fd: int, *, colour: bool, encoding: str = "utf-8", max_queue: int = QUEUE_BYTES) -> None:
        self._fd = fd
        self._encoding = encoding
        self._lines = Lines(colour=colour)
        self._max_queue = max_queue
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._queued = 0  # bytes
        self._left_out = 0  # lines, since the last one that was queued
        self._taken = 0  # bytes that the reader took, ever
        self._closing = self._ended = False
        self._thread = threading.Thread(target=self._run, name="discreet-tail", daemon=True)
        self._thread.start()

    def show(self, entry: Entry) -> None:
        """Queue the line of an entry. The server's stderr is left out: it goes to the same place by itself."""
        if isinstance(entry, StderrEntry) or self._ended:
            return
        line = self._encoded(self._lines.line(entry))
        with self._changed:
            if self._queued + len(line) > self._max_queue:
                self._left_out += 1
                return
            self._report_left_out()
            self._put(line)

    def close(self) -> None:
        """End with the summary. Waits until all is taken, but not for a reader that takes nothing."""
        with self._changed:
            self._report_left_out()
            self._put(self._encoded(self._lines.summary()))
            self._closing = True
            self._changed.notify_all()
        deadline = monotonic() + CLOSE_SECONDS
        before = -1
        while self._thread.is_alive() and before != self._taken and monotonic() < deadline:
            before = self._taken
            self._thread.join(READER_SECONDS)

    def _report_left_out(self) -> None:
        if self._left_out:
            self._put(self._encoded(f"… {counted(self._left_out, 'line')} left out: they were not read in time"))
            self._left_out = 0

    def _encoded(self, line: str) -> bytes:
        return f"{line}\n".encode(self._encoding, "backslashreplace")

    def _put(self, line: bytes) -> None:
        self._queue.append(line)
        self._queued += len(line)
        self._changed.notify_all()

    def _run(self) -> None:
        try:
            while (line := self._next()) is not None:
                self._write(line)
        except OSError:  # the reader is gone, or the device is full
            pass
        finally:
            self._ended = True

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            if not self._queue:
                return None
            line = self._queue.popleft()
            self._queued -= len(line)
            return line

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            try:
                size = os.write(self._fd, rest)
            except BlockingIOError:  # whoever shares the open file may have set O_NONBLOCK
                if sys.platform == "win32":
                    raise
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                poll.poll()
                continue
            self._taken += size
            rest = rest[size:]
