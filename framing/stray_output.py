"""Reads what anything but the protocol writes to stdout and stderr, and passes it on as texts. Never writes anywhere.

One thread reads both pipes all the time, so that no `print` and no child process ever waits for the daemon. Lines that
are written together stay together (a child's traceback, a PEM block): the scrubber must see them whole.
"""

from __future__ import annotations

import sys
from _thread import LockType, allocate_lock
from collections.abc import Callable
from time import monotonic
from typing import Literal, Protocol, TypeAlias, final

StreamName: TypeAlias = Literal["stdout", "stderr"]
TextListener: TypeAlias = Callable[[StreamName, str], None]

MAX_TEXT_BYTES = 8 * 1024
"""The longest text that is passed on, and the longest line: as much as a log field holds."""

CUT_NOTE = " [line cut at 8 KiB]"

IDLE_SECONDS = 0.1
"""A stream that is silent for so long has finished its text, with or without a line end."""

MAX_HOLD_SECONDS = 1.0
"""Whole lines are passed on after so long, even if the stream is never idle."""

MAX_HELD_TEXTS = 64
"""Texts kept until there is a listener: modules print while they are imported, before the log exists. At most 512 KiB."""

MAX_DRAIN_READS = 16
"""Reads of both pipes in one drain: more than a pipe holds, and an end even if a child goes on writing."""


class PipeReader(Protocol):
    """Reads several pipes from one thread.

    `empty_seconds` is how long a read must return nothing before the pipes count as empty.
    """

    empty_seconds: float

    def read(self, timeout: float | None) -> list[tuple[int, bytes]]:
        """Wait up to `timeout` seconds (None: for ever) or until `wake`; returns what arrived, by descriptor."""
        ...

    def wake(self) -> None:
        """Make `read` return. May be called from any thread."""
        ...

    def close(self) -> None:
        """Free the reader's own resources. The pipes stay open."""
        ...


@final
class StrayOutputReader:
    """Passes the texts of both pipes to a listener, from a thread of its own.

    A text is at most 8 KiB of what was written, with LF between its lines and none at its ends, undecodable bytes as
    `\\xNN`. It ends when its stream is idle for a tenth of a second. The listener must not block, raise, or write to
    stdout or stderr. The caller owns the two descriptors and closes them after `stop`.
    """

    def __init__(
        self, stray_out: int, stray_err: int, *, pipe_reader: Callable[[int, int], PipeReader] | None = None
    ) -> None:
        import threading  # late: the first reply may leave before this class is needed

        self._streams = {stray_out: TimedTextBuffer("stdout"), stray_err: TimedTextBuffer("stderr")}
        self._pipe_reader = (pipe_reader or _open_pipe_reader)(stray_out, stray_err)
        self._lock = threading.Lock()  # guards the listener and the texts held for it
        self._listener: TextListener | None = None
        self._held: list[tuple[StreamName, str]] = []
        self._dropped = 0
        self._drain_request: LockType | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="discreet-stray", daemon=True)

    def start(self) -> None:
        """Begin to read. Until `deliver_to`, the first texts are kept and later ones counted."""
        self._thread.start()

    def deliver_to(self, listener: TextListener) -> None:
        """Pass on the kept texts now, from this thread, and all later ones as they come."""
        with self._lock:
            self._listener = listener
            for stream, text in self._held:
                listener(stream, text)
            if self._dropped:
                listener("stderr", f"[{self._dropped} more texts before this were dropped]")
            self._held.clear()

    def drain(self, timeout: float) -> bool:
        """Pass on everything that was written before the call; does not wait for children that may write more.

        Returns False if that took longer than `timeout` seconds. Call `stdio_guard.flush_text_streams` first: it flushes
        what `print` still buffers.
        """
        drained = allocate_lock()  # released when it is done; of `_thread`, since apps may patch `threading`
        drained.acquire()
        self._drain_request = drained
        self._pipe_reader.wake()
        return drained.acquire(timeout=timeout)

    def stop(self, timeout: float) -> bool:
        """Drain, then end the thread. Output that is written later is not read. Returns as `drain` does."""
        self._stopping = True
        drained = self.drain(timeout)
        if drained:
            self._thread.join()
            self._pipe_reader.close()
        return drained

    def _run(self) -> None:
        while True:
            self._read_pipes(self._seconds_until_due())
            now = monotonic()
            for stream in self._streams.values():
                self._deliver(stream.name, stream.due_texts(now))
            if self._drain_request is not None:
                drained, self._drain_request = self._drain_request, None
                self._read_until_empty()
                drained.release()
                if self._stopping:
                    return

    def _seconds_until_due(self) -> float | None:
        due = [stream.due for stream in self._streams.values() if stream.due is not None]
        return max(0.0, min(due) - monotonic()) if due else None

    def _read_pipes(self, timeout: float | None) -> bool:
        """Wait up to `timeout` seconds for output; returns whether there was any."""
        arrived = self._pipe_reader.read(timeout)
        for fd, data in arrived:
            stream = self._streams[fd]
            self._deliver(stream.name, stream.feed(data, monotonic()))
        return bool(arrived)

    def _read_until_empty(self) -> None:
        for _ in range(MAX_DRAIN_READS):
            if not self._read_pipes(self._pipe_reader.empty_seconds):
                break
        for stream in self._streams.values():
            self._deliver(stream.name, stream.take_all())

    def _deliver(self, stream: StreamName, texts: list[str]) -> None:
        with self._lock:
            for text in texts:
                if self._listener is not None:
                    self._listener(stream, text)
                elif len(self._held) < MAX_HELD_TEXTS:
                    self._held.append((stream, text))
                else:
                    self._dropped += 1


@final
class TimedTextBuffer:
    """The text buffer of one stream, and the time at which its text is due. Times are those of `time.monotonic`."""

    def __init__(self, name: StreamName) -> None:
        self.name: StreamName = name
        self._buffer = TextBuffer()
        self._oldest = 0.0  # when the oldest buffered byte arrived
        self._latest = 0.0

    @property
    def due(self) -> float | None:
        """When `due_texts` will return something; None while the buffer is empty."""
        if self._buffer.is_empty:
            return None
        return min(self._latest + IDLE_SECONDS, self._oldest + MAX_HOLD_SECONDS)

    def feed(self, data: bytes, now: float) -> list[str]:
        """Add bytes; returns the texts that are full."""
        if self._buffer.is_empty:
            self._oldest = now
        self._latest = now
        return self._buffer.feed(data)

    def due_texts(self, now: float) -> list[str]:
        """The whole text if the stream is idle, its whole lines if they were held for long enough."""
        if now >= self._latest + IDLE_SECONDS:
            return self.take_all()
        if now >= self._oldest + MAX_HOLD_SECONDS:
            self._oldest = now
            return self._buffer.take_lines()
        return []

    def take_all(self) -> list[str]:
        """All that is buffered, in one text or none."""
        return self._buffer.take_all()


@final
class TextBuffer:
    """Turns the bytes of one stream into texts, in bounded memory. Lines end with LF, CR or both. Has no clock."""

    def __init__(self) -> None:
        self._data = b""
        self._skipping_line = False  # the rest of a line that was cut

    @property
    def is_empty(self) -> bool:
        return not self._data

    def feed(self, data: bytes) -> list[str]:
        """Add bytes; returns the texts that are full."""
        texts: list[str] = []
        self._data += self._after_cut_line(data)
        while len(self._data) > MAX_TEXT_BYTES:
            if end := _end_of_lines(self._data[:MAX_TEXT_BYTES]):
                texts += self._take(end)
            else:
                texts.append(_text(self._data[:MAX_TEXT_BYTES]) + CUT_NOTE)
                self._skipping_line = True
                self._data = self._after_cut_line(self._data[MAX_TEXT_BYTES:])
        return texts

    def take_lines(self) -> list[str]:
        """The whole lines that are buffered, in one text or none."""
        return self._take(_end_of_lines(self._data))

    def take_all(self) -> list[str]:
        """All that is buffered, also a line without its end, in one text or none."""
        return self._take(len(self._data))

    def _take(self, end: int) -> list[str]:
        text = _text(self._data[:end])
        self._data = self._data[end:]
        return [text] if text else []

    def _after_cut_line(self, data: bytes) -> bytes:
        """The data without the rest of a line that was cut."""
        if not self._skipping_line:
            return data
        ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
        if not ends:
            return b""
        self._skipping_line = False
        return data[min(ends) :]


def _end_of_lines(data: bytes) -> int:
    return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def _open_pipe_reader(stray_out: int, stray_err: int) -> PipeReader:
    if sys.platform != "win32":
        from .transports.polled import PollingPipeReader

        return PollingPipeReader(stray_out, stray_err)
    from .transports.threaded import ThreadedPipeReader

    return ThreadedPipeReader(stray_out, stray_err)
