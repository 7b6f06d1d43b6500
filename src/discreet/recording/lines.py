"""A session as lines for a terminal, and those of a running session on stderr. Never reads a file."""

from __future__ import annotations

import os
import select
import sys
from typing import Final, final

from msgspec import Raw

from ..errors.printable import printable
from .correlation import Correlation, SeenMessage, text_of
from .format import ClosedEntry, EndEntry, Entry, MessageEntry, OmittedEntry, StartEntry, StderrEntry

SHOWN_CHARACTERS: Final = 160
"""How much of params and of a result is shown unless all is asked for."""

_CYAN, _PURPLE, _RED, _DIM = "36", "35", "31", "2"
_ARROWS: Final = {"client": ("→", _CYAN), "server": ("←", _PURPLE)}


@final
class Lines:
    """The lines of one session. An answer is shown with its request's method and the time that it took.

    With `full`, values of more than `SHOWN_CHARACTERS` are shown whole.
    """

    def __init__(self, *, full: bool = False, colour: bool) -> None:
        self._full = full
        self._colour = colour
        self._correlation = Correlation()
        self._messages = self._errors = 0
        self._slowest = ("", 0.0)
        self._ended = False

    def line(self, entry: Entry) -> str:
        """The line of the next entry, without a line end."""
        match entry:
            case MessageEntry():
                shown = f"{self._arrow(entry.sender)} {self._message(entry)}"
            case OmittedEntry():
                shown = f"{self._arrow(entry.sender)} {self._styled(_RED, note_of(entry))}"
            case ClosedEntry():
                shown = f"{self._arrow(entry.sender)} {self._styled(_DIM, note_of(entry))}"
            case StderrEntry():
                shown = self._styled(_DIM, f"stderr: {note_of(entry)}")
            case StartEntry():
                shown = self._styled(_DIM, f"{note_of(entry)}  ({entry.framing})")
            case EndEntry():
                self._ended = True
                shown = self._styled(_DIM, note_of(entry))
        return f"{self._styled(_DIM, f'{entry.ms:9.1f} ms')}  {shown}"

    def summary(self) -> str:
        """The counts of what was shown."""
        waiting = self._correlation.requests - self._correlation.answered
        parts = [
            counted(self._messages, "message"),
            counted(self._errors, "error"),
            f"{counted(waiting, 'request')} without an answer",
        ]
        if self._slowest[0]:
            parts.append(f"slowest: {self._slowest[0]}, {self._slowest[1]:.1f} ms")
        if not self._ended:
            parts.append("the recording was cut off")
        return ", ".join(parts)

    def _message(self, entry: MessageEntry) -> str:
        self._messages += 1
        seen = self._correlation.read(entry)
        match seen.kind:
            case "answer" | "error":
                return self._answer(entry.ms, seen)
            case "event":
                return f"{seen.id} event {self._value(seen.value)}".rstrip()
            case "other":
                return self._value(seen.value)
            case _:
                return " ".join(filter(None, (seen.id, seen.method, self._value(seen.value))))

    def _answer(self, ms: float, seen: SeenMessage) -> str:
        took = ""
        if seen.request is not None:
            spent = ms - seen.request.ms
            took = self._styled(_DIM, f"{spent:.1f} ms")
            if spent > self._slowest[1]:
                self._slowest = seen.method, spent
        value = self._value(seen.value)
        if seen.kind == "error":
            self._errors += 1
            value = self._styled(_RED, f"error {value}")
        return " ".join(filter(None, (seen.id, seen.method, took, value)))

    def _value(self, value: Raw | None) -> str:
        if value is None:
            return ""
        return text_of(value, memoryview(value).nbytes if self._full else SHOWN_CHARACTERS)

    def _arrow(self, sender: str) -> str:
        mark, colour = _ARROWS[sender]
        return self._styled(colour, mark)

    def _styled(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and text else text


def note_of(entry: Entry) -> str:
    """Return what an entry says that is no message, as one line that can be printed."""
    match entry:
        case StartEntry():
            return printable(" ".join(entry.command))
        case OmittedEntry():
            return printable(f"{entry.size} bytes left out: {entry.reason}")
        case ClosedEntry():
            return "end of the stream"
        case StderrEntry():
            return printable(entry.text)
        case EndEntry(status=None):
            return "the server did not end"
        case EndEntry(status=int() as status):
            return (
                f"the server ended with status {status}" if status >= 0 else f"the server was ended by signal {-status}"
            )
        case _:
            return ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


GRACE_SECONDS: Final = 0.05
"""How long the first line that a reader does not take is waited for. Then none is waited for until it takes one again."""

TAIL_CHARACTERS: Final = 900
"""How much of a line is written: what a pipe that is ready takes without blocking (PIPE_BUF of Linux), in UTF-8."""


@final
class Tail:
    """Writes the lines of a running session to a descriptor. A reader that is gone ends the writing, and nothing else.

    Lines that the reader does not take at once are left out, and a line says how many.
    """

    def __init__(self, fd: int, *, colour: bool, encoding: str = "utf-8") -> None:
        self._fd = fd
        self._encoding = encoding
        self._lines = Lines(colour=colour)
        self._left_out = 0
        self._ended = False

    def show(self, entry: Entry) -> None:
        """Write the line of an entry. The server's stderr is left out: it goes to the same place by itself."""
        if not isinstance(entry, StderrEntry):
            self._write(self._lines.line(entry))

    def close(self) -> None:
        """End with the summary."""
        self._write(self._lines.summary())

    def _write(self, line: str) -> None:
        seconds = 0 if self._left_out else GRACE_SECONDS
        line = line[:TAIL_CHARACTERS]
        if self._left_out:
            line = f"… {counted(self._left_out, 'line')} left out: they were not read in time\n{line}"
        data = f"{line}\n".encode(self._encoding, "backslashreplace")
        try:
            if not self._ended and self._is_ready(seconds):
                os.write(self._fd, data)
                self._left_out = 0
            else:
                self._left_out += 1
        except BlockingIOError:  # whoever shares the open file may have set O_NONBLOCK
            self._left_out += 1
        except OSError:  # the reader is gone, or the device is full
            self._ended = True

    def _is_ready(self, seconds: float) -> bool:
        if sys.platform == "win32":
            return True
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))
