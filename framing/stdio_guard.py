"""Keeps the protocol's stdin and stdout to the daemon alone, and stderr to its log. Never reads or writes them.

After `redirect`, fd 0 is the null device and fds 1 and 2 are pipes into this process. A `print`, a C library, a message at
import time or a child process can neither write to the protocol's stream nor read from it. What they write can be
scrubbed before it is logged (`StrayOutputReader` reads the pipes). What a process writes while it crashes in native code stays
in the pipe and is lost: it could hold anything, and nothing is left to scrub it.
"""

from __future__ import annotations

import io
import os
import sys
from _thread import LockType, allocate_lock
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final, Literal, Protocol, TextIO, TypeAlias, final

import msgspec

from .transports.interface import enlarge_pipe, is_null_device, is_open, require_output

# Reads what anything but the protocol writes to stdout and stderr, and passes it on as texts. Never writes anywhere.
#
# One thread reads both pipes all the time, so that no `print` and no child process ever waits for the daemon. Lines that
# are written together stay together (a child's traceback, a PEM block): the scrubber must see them whole.


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

        self._streams = {stray_out: TextBuffer("stdout"), stray_err: TextBuffer("stderr")}
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
class TextBuffer:
    """Turns the bytes of one stream into texts, in bounded memory. Lines end with LF, CR or both. Times are monotonic seconds."""

    def __init__(self, name: StreamName = "stdout") -> None:
        self.name: StreamName = name
        self._data = b""
        self._skipping_line = False  # the rest of a line that was cut
        self._oldest = 0.0  # when the oldest buffered byte arrived
        self._latest = 0.0

    @property
    def due(self) -> float | None:
        """When `due_texts` will return something; None while the buffer is empty."""
        return min(self._latest + IDLE_SECONDS, self._oldest + MAX_HOLD_SECONDS) if self._data else None

    def feed(self, data: bytes, now: float) -> list[str]:
        """Add bytes; returns the texts that are full."""
        if not self._data:
            self._oldest = now
        self._latest = now
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

    def due_texts(self, now: float) -> list[str]:
        """The whole text if the stream is idle, its whole lines if they were held for long enough."""
        if now >= self._latest + IDLE_SECONDS:
            return self.take_all()
        if now >= self._oldest + MAX_HOLD_SECONDS:
            self._oldest = now
            return self.take_lines()
        return []

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
        from .transports.stdio import PollingPipeReader

        return PollingPipeReader(stray_out, stray_err)
    from .transports.threaded import ThreadedPipeReader

    return ThreadedPipeReader(stray_out, stray_err)


STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2

STRAY_PIPE_BYTES = 256 * 1024
"""Capacity of the pipes. A native library may write while it holds the GIL, and the reader can't run until it is done.
A power of two of pages; Linux's default is 64 KiB."""

_TEXT_STREAMS: Final[tuple[tuple[str, int, Literal["r", "w"]], ...]] = (
    ("stdin", STDIN, "r"),
    ("stdout", STDOUT, "w"),
    ("stderr", STDERR, "w"),
)

TERMINAL_HINT = (
    "discreet speaks JSON-RPC 2.0 on stdin and stdout and is started by a program, such as an editor; "
    "to call it by hand, use `discreet call`. Ctrl-D ends it."
)

NULL_DEVICE_HINT = (
    "stdin is the null device, so nothing will be read: discreet speaks JSON-RPC 2.0 on stdin and stdout; "
    "to serve the network, use --http HOST:PORT --no-stdio"
)


class StandardStreams(msgspec.Struct, frozen=True):
    """The private descriptors that `redirect` made. All are above 2, and children inherit none of them.

    `stdin`, `stdout` and `stderr` are copies of the original 0, 1 and 2. `stray_out` and `stray_err` are the reading ends
    of the pipes that 1 and 2 are now.
    """

    stdin: int
    stdout: int
    stderr: int
    stray_out: int
    stray_err: int


class TextTaker(Protocol):
    """Takes what is printed, before it is written. Both get the name of the stream: `stdout` or `stderr`."""

    def take(self, name: str, text: str) -> bool:
        """False where the text is to be written."""
        ...

    def flush(self, name: str) -> None: ...


_redirected: list[StandardStreams] = []  # at most one: a process has one set of descriptors 0, 1 and 2

_replaced: dict[str, TextIO | None] = {}  # Python's original objects, by their names in `sys`

_takers: list[TextTaker] = []  # at most one, as of the descriptors

_in_use: list[object] = []  # what `discard_output` replaced: `print` relies on `sys.stdout` to keep its object alive


def redirect() -> StandardStreams:
    """Redirect the three standard descriptors; call it before any foreign code runs. The caller owns the result.

    A stdin or stderr that the parent closed is replaced by the null device. `sys.stdin`, `sys.stdout` and `sys.stderr`
    go on working: line-buffered text in UTF-8, without encoding errors.

    Raises `StdoutClosed` if there is nowhere to send replies, `RuntimeError` if the descriptors are already redirected, and
    `OSError` if the system refuses what this needs. All of them leave the descriptors as they were.
    """
    if _redirected:
        raise RuntimeError("the standard descriptors are already redirected: one daemon per process")
    require_output(STDOUT)
    opened: list[int] = []
    try:
        _open_missing(opened)
        stray_out, into_out = _stray_pipe(opened)
        stray_err, into_err = _stray_pipe(opened)
        streams = StandardStreams(
            stdin=_private_copy(STDIN, opened),
            stdout=_private_copy(STDOUT, opened),
            stderr=_private_copy(STDERR, opened),
            stray_out=stray_out,
            stray_err=stray_err,
        )
        null = os.open(os.devnull, os.O_RDWR)
    except OSError:
        for fd in opened:
            os.close(fd)
        raise
    _move_to(null, STDIN)
    _move_to(into_out, STDOUT)
    _move_to(into_err, STDERR)
    _redirected.append(streams)
    _replace_text_streams()
    return streams


def take_texts(taker: TextTaker) -> None:
    """Have this asked for all that is printed, from now until `discard_output` or `restore`."""
    _takers[:] = [taker]


def restore() -> None:
    """Restore the descriptors and Python's objects, and close what `redirect` opened. Does nothing if none is redirected.

    Stop the reader of the stray pipes first. Text that `print` still buffers is dropped: it must not reach the protocol's
    stream.
    """
    if not _redirected:
        return
    streams = _redirected.pop()
    _takers.clear()
    os.close(streams.stray_out)
    os.close(streams.stray_err)
    for number in (STDOUT, STDERR):
        _move_to(os.open(os.devnull, os.O_RDWR), number)
    flush_text_streams()
    while _replaced:
        _set_text_stream(*_replaced.popitem())
    _move_to(streams.stdin, STDIN)
    _move_to(streams.stdout, STDOUT)
    _move_to(streams.stderr, STDERR)


def disown() -> None:
    """Let every descriptor for the protocol's stdin or stdout lead to the null device, in a process that was forked.

    A transport may have opened stdout anew, under a number of its own.
    """
    if not _redirected:
        return
    streams = _redirected[0]
    protocol = [os.fstat(streams.stdin), os.fstat(streams.stdout)]
    shared = os.fstat(streams.stderr)  # a terminal, on which the logs go on
    for fd in {streams.stdin, streams.stdout, *_open_descriptors()}:
        with suppress(OSError):  # closed meanwhile: it is that of the list itself
            found = os.fstat(fd)
            mine = any(os.path.samestat(found, each) for each in protocol) and not os.path.samestat(found, shared)
            if mine or fd in (streams.stdin, streams.stdout):
                redirect_to_null(fd, os.O_RDWR)


def _open_descriptors() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return [int(name) for name in os.listdir(folder)]
    return []


def flush_text_streams() -> None:
    """Flush what `print` still buffers: a line without its end. Call it before the stray pipes are drained."""
    for text in (sys.stdout, sys.stderr):
        if text is not None and not text.closed:
            text.flush()


def discard_output() -> None:
    """Drop what is written to stdout and stderr from now on. Call it when the stray pipes are not read any more.

    The interpreter's end then neither flushes into a pipe without a reader nor aborts the process, as it does if a thread
    is stopped in a `print` and so keeps the lock of `sys.stdout`.
    """
    _takers.clear()
    for number in (STDOUT, STDERR):
        _move_to(os.open(os.devnull, os.O_RDWR), number)
    for name in ("stdout", "stderr"):
        _in_use.append(getattr(sys, name))
        _set_text_stream(name, _Discarded())


@final
class _Discarded(io.TextIOBase):
    """Takes any text. Has no lock and no descriptor."""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        return len(text)


def redirect_to_null(fd: int, mode: int = os.O_WRONLY) -> None:
    """Let a descriptor lead to the null device. Children do not inherit it."""
    null = os.open(os.devnull, mode)
    os.dup2(null, fd, inheritable=False)
    os.close(null)


def stdin_hint(stdin: int) -> str | None:
    """One line for a user who started the daemon where no program will talk to it; None if one may."""
    if os.isatty(stdin):
        return TERMINAL_HINT
    return NULL_DEVICE_HINT if is_open(stdin) and is_null_device(os.fstat(stdin)) else None


def _open_missing(opened: list[int]) -> None:
    """Open the null device on every closed number below 3, so that no later descriptor gets that number."""
    for number in (STDIN, STDOUT, STDERR):
        if not is_open(number):
            _move_to(os.open(os.devnull, os.O_RDWR), number)
            opened.append(number)


def _stray_pipe(opened: list[int]) -> tuple[int, int]:
    reading, writing = os.pipe()
    opened += (reading, writing)
    enlarge_pipe(writing, STRAY_PIPE_BYTES)
    return reading, writing


def _private_copy(number: int, opened: list[int]) -> int:
    """A copy that children do not inherit; above 2, since those numbers are all in use."""
    copy = os.dup(number)
    opened.append(copy)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(copy, os.O_BINARY)  # else a frame's CR LF would be translated
    return copy


def _move_to(fd: int, number: int) -> None:
    """Move a descriptor to one of the three standard numbers, where children inherit it."""
    if fd == number:
        os.set_inheritable(fd, True)
        return
    os.dup2(fd, number)
    os.close(fd)


def _replace_text_streams() -> None:
    """Replace Python's objects by new ones that suit the new descriptors. The old ones still write to the same numbers.

    Reconfiguring does not suffice: an object that was made for a file would ask the pipe for its position. Objects of a
    test runner or a notebook stay.
    """
    for name, number, mode in _TEXT_STREAMS:
        old: TextIO | None = getattr(sys, name)
        if old is getattr(sys, f"__{name}__"):
            if old is not None and mode == "w":
                old.flush()  # what was printed before `redirect` goes to the stray pipe too
            raw = os.fdopen(number, mode + "b", closefd=False)
            new = _Unclosable(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
            new.known_as = name
            _set_text_stream(name, new)
            _replaced[name] = old


@final
class _Unclosable(io.TextIOWrapper):
    """Stays open when an app closes it: what is printed later is logged all the same, and so is what a library asks it.

    What `take` takes of it is not written.
    """

    known_as = ""

    def write(self, text: str, /) -> int:
        if isinstance(text, str) and _takers and _takers[0].take(self.known_as, text):
            return len(text)
        return super().write(text)

    def flush(self) -> None:
        if _takers:
            _takers[0].flush(self.known_as)
        super().flush()

    def close(self) -> None:
        self.flush()


def _set_text_stream(name: str, text: TextIO | io.TextIOBase | None) -> None:
    setattr(sys, name, text)
    setattr(sys, f"__{name}__", text)
