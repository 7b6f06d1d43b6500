"""Who owns the descriptors 0, 1 and 2. Moves the real ones out of everybody's reach; never reads or writes them.

After `seize`, fd 0 is the null device and fds 1 and 2 are pipes into this process. So a `print`, a C library, a banner at
import time or a child process can neither write into the protocol's stream nor eat from it, and what they write to
stderr can be scrubbed before anyone sees it (`stray` reads those pipes). What a process says while it crashes in native
code stays in the pipe and is lost: it could hold anything, and nobody is left to scrub it.
"""

from __future__ import annotations

import os
import sys
from typing import Final, Literal, TextIO

import msgspec

from .transports.descriptors import enlarge, is_open, require_output

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2

STRAY_PIPE_BYTES = 256 * 1024
"""Room for a native library that writes while it holds the GIL: the reader can't run until it is done. A power of two of
pages; Linux's default is 64 KiB."""

_TEXT_STREAMS: Final[tuple[tuple[str, int, Literal["r", "w"]], ...]] = (
    ("stdin", STDIN, "r"),
    ("stdout", STDOUT, "w"),
    ("stderr", STDERR, "w"),
)

TTY_HINT = (
    "discreet speaks JSON-RPC 2.0 on stdin and stdout and is started by a program, such as an editor; "
    "to call it by hand, use `discreet call`. Ctrl-D ends it."
)


class StandardStreams(msgspec.Struct, frozen=True):
    """What `seize` took: private descriptors, none of them below 3, none of them inherited by children.

    `stdin`, `stdout` and `stderr` are what 0, 1 and 2 were. `stray_out` and `stray_err` are the reading ends of the
    pipes that 1 and 2 are now.
    """

    stdin: int
    stdout: int
    stderr: int
    stray_out: int
    stray_err: int


_seized: list[StandardStreams] = []  # at most one: the descriptors 0, 1 and 2 exist once in a process

_replaced: dict[str, TextIO | None] = {}  # Python's own objects, by their names in `sys`


def seize() -> StandardStreams:
    """Take the three standard descriptors, before any code runs that is not ours. The caller owns them until `release`.

    A stdin or stderr that the parent closed is replaced by the null device (the end of input; a log that goes nowhere).
    `sys.stdin`, `sys.stdout` and `sys.stderr` go on working: text in UTF-8, never an encoding error, a line at a time.

    Raises `StdoutClosed`, with nothing changed, when there is nowhere to send replies; `RuntimeError` when the
    descriptors are taken already.
    """
    if _seized:
        raise RuntimeError("the standard descriptors are taken already: one daemon in a process")
    require_output(STDOUT)
    _fill_gaps()
    stray_out, into_out = _stray_pipe()
    stray_err, into_err = _stray_pipe()
    streams = StandardStreams(
        stdin=_private(STDIN),
        stdout=_private(STDOUT),
        stderr=_private(STDERR),
        stray_out=stray_out,
        stray_err=stray_err,
    )
    _put(os.open(os.devnull, os.O_RDWR), STDIN)
    _put(into_out, STDOUT)
    _put(into_err, STDERR)
    _seized.append(streams)
    _replace_text_streams()
    return streams


def release() -> None:
    """Put the descriptors and Python's objects back, and close what `seize` opened; nothing when nothing is taken.

    Whoever reads the stray pipes must have stopped before. Text that `print` still holds is dropped: it must not reach the
    protocol's stream.
    """
    if not _seized:
        return
    streams = _seized.pop()
    os.close(streams.stray_out)
    os.close(streams.stray_err)
    for number in (STDOUT, STDERR):
        _put(os.open(os.devnull, os.O_RDWR), number)
    flush_text_streams()
    while _replaced:
        _set_text_stream(*_replaced.popitem())
    _put(streams.stdin, STDIN)
    _put(streams.stdout, STDOUT)
    _put(streams.stderr, STDERR)


def flush_text_streams() -> None:
    """Send on what `print` holds back: a line without its end. For the last moments, before the stray pipes are drained."""
    for text in (sys.stdout, sys.stderr):
        if text is not None and not text.closed:
            text.flush()


def hint_for_tty(stdin: int) -> str | None:
    """One line for whoever sits at a terminal and waits for a prompt; None when stdin is no terminal."""
    return TTY_HINT if os.isatty(stdin) else None


def _fill_gaps() -> None:
    """Open the null device on every number below 3 that is closed, so that nothing of ours can land there."""
    for number in (STDIN, STDOUT, STDERR):
        if not is_open(number):
            _put(os.open(os.devnull, os.O_RDWR), number)


def _stray_pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    enlarge(writing, STRAY_PIPE_BYTES)
    return reading, writing


def _private(number: int) -> int:
    """A copy that children do not inherit; above 2, since those are all in use."""
    copy = os.dup(number)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(copy, os.O_BINARY)  # else a frame's CR LF would be translated
    return copy


def _put(fd: int, number: int) -> None:
    """Move a descriptor to one of the three standard numbers, where children inherit it."""
    if fd == number:
        os.set_inheritable(fd, True)
        return
    os.dup2(fd, number)
    os.close(fd)


def _replace_text_streams() -> None:
    """Give Python objects that suit the new descriptors. The old ones go on writing to the same numbers.

    They are replaced, not reconfigured: one that was made for a file would ask the pipe for its position. A test
    runner's or a notebook's objects are left alone.
    """
    for name, number, mode in _TEXT_STREAMS:
        old: TextIO | None = getattr(sys, name)
        if old is getattr(sys, f"__{name}__"):
            if old is not None and mode == "w":
                old.flush()  # what was printed before `seize` belongs into the stray pipe too
            new = os.fdopen(number, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
            _set_text_stream(name, new)
            _replaced[name] = old


def _set_text_stream(name: str, text: TextIO | None) -> None:
    setattr(sys, name, text)
    setattr(sys, f"__{name}__", text)
