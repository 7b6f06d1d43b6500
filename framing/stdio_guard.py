"""Keeps the protocol's stdin and stdout to the daemon alone, and stderr to its log. Never reads or writes them.

After `redirect`, fd 0 is the null device and fds 1 and 2 are pipes into this process. A `print`, a C library, a message at
import time or a child process can neither write to the protocol's stream nor read from it. What they write can be
scrubbed before it is logged (`stray_output` reads the pipes). What a process writes while it crashes in native code stays
in the pipe and is lost: it could hold anything, and nothing is left to scrub it.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Final, Literal, Protocol, TextIO, final

import msgspec

from .transports.descriptors import enlarge_pipe, is_open, require_output

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
                _redirect_to_null(fd, os.O_RDWR)


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

    The interpreter's end then neither flushes into a pipe that nobody reads nor aborts the process, as it does if a thread
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


def redirect_to_null(fd: int) -> None:
    """Let a private descriptor lead to the null device. Children inherit it no more than before."""
    _redirect_to_null(fd, os.O_WRONLY)


def _redirect_to_null(fd: int, mode: int) -> None:
    null = os.open(os.devnull, mode)
    os.dup2(null, fd, inheritable=False)
    os.close(null)


def stdin_hint(stdin: int) -> str | None:
    """One line for a user who started the daemon where no program will talk to it; None if one may."""
    if os.isatty(stdin):
        return TERMINAL_HINT
    try:
        is_null = is_open(stdin) and os.path.samestat(os.fstat(stdin), os.stat(os.devnull))
    except OSError:
        return None
    return NULL_DEVICE_HINT if is_null else None


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
