"""Reads what was written to stdout and stderr beside the protocol, and hands it over as texts. Never writes anywhere.

One thread empties both pipes all the time, so that no `print` and no child ever waits for the daemon. Lines that come
together stay together (a child's traceback, a PEM block): whoever scrubs them must see them whole.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, final

if TYPE_CHECKING:
    import threading

Stream: TypeAlias = Literal["stdout", "stderr"]
OnText: TypeAlias = Callable[[Stream, str], None]

TEXT_BYTES = 8 * 1024
"""The longest text handed over, and the longest line: what a log field holds."""

CUT_NOTE = " [line cut at 8 KiB]"

REST_SECONDS = 0.1
"""A stream that is silent for so long has said what it had to say, with or without a line end."""

AGE_SECONDS = 1.0
"""A stream that never rests is heard at least so often."""

KEPT_TEXTS = 64
"""Texts kept until somebody listens: banners of imports that run before the log is there. Half a megabyte at most."""

DRAIN_READS = 16
"""Reads of each pipe in one drain: more than a pipe holds, and an end where a child goes on writing."""


class Inbox(Protocol):
    """Bytes from several pipes, for one thread. `settle` is how long, in seconds, an empty inbox is believed to be empty."""

    settle: float

    def take(self, timeout: float | None) -> list[tuple[int, bytes]]:
        """What came, by descriptor, waiting up to `timeout` seconds (None: for ever) or until `wake`."""
        ...

    def wake(self) -> None: ...

    def close(self) -> None: ...


@final
class StrayReader:
    """Hands the texts of both pipes to a listener, from a thread of its own.

    A text is at most 8 KiB of what was written, with LF between its lines and none at the ends, undecodable bytes as
    `\\xNN`. It ends when its stream rests for a tenth of a second. The listener must not block, raise, or write to
    stdout or stderr. The two descriptors stay the caller's, who closes them after `stop`.
    """

    def __init__(self, stray_out: int, stray_err: int, *, inbox: Callable[[int, int], Inbox] | None = None) -> None:
        import threading  # late: this class is first needed when the first reply may already have left

        self._voices = {stray_out: Voice("stdout"), stray_err: Voice("stderr")}
        self._inbox = (inbox or _open_inbox)(stray_out, stray_err)
        self._lock = threading.Lock()  # over the listener and what is kept for it
        self._listener: OnText | None = None
        self._kept: list[tuple[Stream, str]] = []
        self._dropped = 0
        self._asked: threading.Event | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="discreet-stray", daemon=True)

    def start(self) -> None:
        """Begin to read. Until `deliver_to` the first texts are kept, and later ones counted."""
        self._thread.start()

    def deliver_to(self, listener: OnText) -> None:
        """Hand over what was kept, from this thread, and from now on everything as it comes."""
        with self._lock:
            self._listener = listener
            for stream, text in self._kept:
                listener(stream, text)
            if self._dropped:
                listener("stderr", f"[{self._dropped} more texts before this were dropped]")
            self._kept.clear()

    def drain(self, timeout: float) -> bool:
        """Hand over everything that was written before the call, without waiting for children that could write more.

        Returns False when that took longer than `timeout` seconds. Text that `print` still holds has to be flushed first
        (`guard.flush_text_streams`).
        """
        import threading

        asked = threading.Event()
        self._asked = asked
        self._inbox.wake()
        return asked.wait(timeout)

    def stop(self, timeout: float) -> bool:
        """Drain, then end the thread. What is written later is not read any more. Returns as `drain` does."""
        self._stopping = True
        drained = self.drain(timeout)
        if drained:
            self._thread.join()
            self._inbox.close()
        return drained

    def _run(self) -> None:
        while True:
            self._take_in(self._next_due())
            now = monotonic()
            for voice in self._voices.values():
                self._give(voice.stream, voice.due_texts(now))
            if self._asked is not None:
                asked, self._asked = self._asked, None
                self._empty()
                asked.set()
                if self._stopping:
                    return

    def _next_due(self) -> float | None:
        due = [voice.due for voice in self._voices.values() if voice.due is not None]
        return max(0.0, min(due) - monotonic()) if due else None

    def _take_in(self, timeout: float | None) -> bool:
        arrived = self._inbox.take(timeout)
        for fd, data in arrived:
            voice = self._voices[fd]
            self._give(voice.stream, voice.feed(data, monotonic()))
        return bool(arrived)

    def _empty(self) -> None:
        for _ in range(DRAIN_READS):
            if not self._take_in(self._inbox.settle):
                break
        for voice in self._voices.values():
            self._give(voice.stream, voice.all_texts())

    def _give(self, stream: Stream, texts: list[str]) -> None:
        with self._lock:
            for text in texts:
                if self._listener is not None:
                    self._listener(stream, text)
                elif len(self._kept) < KEPT_TEXTS:
                    self._kept.append((stream, text))
                else:
                    self._dropped += 1


@final
class Voice:
    """One stream with its clock: when what is held has to be handed over."""

    def __init__(self, stream: Stream) -> None:
        self.stream: Stream = stream
        self._gatherer = Gatherer()
        self._since = 0.0  # when the oldest of what is held came
        self._last = 0.0

    @property
    def due(self) -> float | None:
        if not self._gatherer.holds:
            return None
        return min(self._last + REST_SECONDS, self._since + AGE_SECONDS)

    def feed(self, data: bytes, now: float) -> list[str]:
        if not self._gatherer.holds:
            self._since = now
        self._last = now
        return self._gatherer.feed(data)

    def due_texts(self, now: float) -> list[str]:
        if now >= self._last + REST_SECONDS:
            return self.all_texts()
        if now >= self._since + AGE_SECONDS:
            self._since = now
            return self._gatherer.give_lines()
        return []

    def all_texts(self) -> list[str]:
        return self._gatherer.give_all()


@final
class Gatherer:
    """Makes texts of one stream's bytes, in bounded memory. Lines end with LF, CR or both. Knows no clock."""

    def __init__(self) -> None:
        self._held = b""
        self._cutting = False  # the rest of a line that was too long is being skipped

    @property
    def holds(self) -> bool:
        return bool(self._held)

    def feed(self, data: bytes) -> list[str]:
        """Take bytes in; returns the texts that are full."""
        texts: list[str] = []
        self._held += self._after_cut(data)
        while len(self._held) > TEXT_BYTES:
            if end := _end_of_lines(self._held[:TEXT_BYTES]):
                texts += self._give(end)
            else:
                texts.append(_text(self._held[:TEXT_BYTES]) + CUT_NOTE)
                self._cutting = True
                self._held = self._after_cut(self._held[TEXT_BYTES:])
        return texts

    def give_lines(self) -> list[str]:
        """The whole lines that are held, in one text or none."""
        return self._give(_end_of_lines(self._held))

    def give_all(self) -> list[str]:
        """All that is held, a line without its end too, in one text or none."""
        return self._give(len(self._held))

    def _give(self, end: int) -> list[str]:
        text = _text(self._held[:end])
        self._held = self._held[end:]
        return [text] if text else []

    def _after_cut(self, data: bytes) -> bytes:
        if not self._cutting:
            return data
        ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
        if not ends:
            return b""
        self._cutting = False
        return data[min(ends) :]


def _end_of_lines(data: bytes) -> int:
    return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1


def _text(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")


def _open_inbox(stray_out: int, stray_err: int) -> Inbox:
    if sys.platform != "win32":
        from .transports.polled import PolledInbox

        return PolledInbox(stray_out, stray_err)
    from .transports.threaded import PumpedInbox

    return PumpedInbox(stray_out, stray_err)
