"""`discreet show`: prints a recorded session for people, a line per message. Reads the file, and starts nothing."""

import argparse
from collections.abc import Iterator
from typing import Final, final

from msgspec import Raw

from ...client.messages import STREAM_EVENT
from ...daemon.lifecycle import EXIT_OK
from ...errors.printable import printable
from ...recording.format import (
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Recording,
    StartEntry,
    StderrEntry,
)
from ...recording.json_values import JSON_ERRORS, Json, dump, load
from ..output import require_stdout, styled, write_stdout
from ..recordings import open_recording

SHOWN_CHARACTERS: Final = 160
"""How much of params and of a result is shown without `--full`."""

_CYAN, _PURPLE, _RED, _DIM = "36", "35", "31", "2"
_ARROWS: Final = {"client": ("→", _CYAN), "server": ("←", _PURPLE)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and how much of it."""
    parser.add_argument("file", metavar="FILE", help="a recording, as discreet record writes it")
    parser.add_argument(
        "--full", action="store_true", help=f"show values of more than {SHOWN_CHARACTERS} characters whole"
    )


def run(args: argparse.Namespace) -> int:
    """Print the session. Raises `UsageError` for a file that is no recording."""
    require_stdout()
    recording = open_recording(args.file)
    for line in Conversation(full=args.full).lines(recording):
        write_stdout(line)
    return EXIT_OK


@final
class Conversation:
    """The lines of one session. An answer is shown with its request's method and the time that it took."""

    def __init__(self, *, full: bool) -> None:
        self._limit = None if full else SHOWN_CHARACTERS
        self._open: dict[tuple[str, str], tuple[str, float]] = {}
        """The method and the time of requests without an answer, by who asked and the id's JSON text."""
        self._messages = self._errors = 0
        self._slowest = ("", 0.0)

    def lines(self, recording: Recording) -> Iterator[str]:
        yield from map(self._line, (recording.start, *recording.entries))
        yield self._summary(recording)

    def _line(self, entry: Entry) -> str:
        match entry:
            case StartEntry():
                text = f"{' '.join(entry.command)}  ({entry.framing})"
            case MessageEntry():
                return self._message_line(entry)
            case OmittedEntry():
                text = f"{_arrow(entry.sender)} {styled(_RED, f'{entry.size} bytes left out: {entry.reason}')}"
                return f"{_time(entry)}  {text}"
            case ClosedEntry():
                return f"{_time(entry)}  {_arrow(entry.sender)} {styled(_DIM, 'end of the stream')}"
            case StderrEntry():
                text = f"stderr: {entry.text}"
            case EndEntry():
                text = _ending(entry.status)
        return f"{_time(entry)}  {styled(_DIM, printable(text))}"

    def _message_line(self, entry: MessageEntry) -> str:
        self._messages += 1
        try:
            message = load(bytes(entry.message))
        except JSON_ERRORS:
            message = None
        shown = self._shown(entry, message) if isinstance(message, dict) else self._cut(entry.message)
        return f"{_time(entry)}  {_arrow(entry.sender)} {shown}"

    def _shown(self, entry: MessageEntry, message: dict[str, Json]) -> str:
        method, params = message.get("method"), message.get("params")
        if isinstance(method, str):
            if "id" in message:
                number = _id(message)
                self._open[entry.sender, number] = method, entry.ms
                return f"{printable(number)} {printable(method)} {self._value(params)}".rstrip()
            if method == STREAM_EVENT and isinstance(params, dict):
                return f"{printable(_id(params))} event {self._value(params.get('value'))}"
            return f"{printable(method)} {self._value(params)}".rstrip()
        asker = "server" if entry.sender == "client" else "client"
        number = _id(message)
        name, asked = self._open.pop((asker, number), ("", None))
        took = "" if asked is None else f" {entry.ms - asked:.1f} ms"
        if asked is not None and entry.ms - asked > self._slowest[1]:
            self._slowest = name, entry.ms - asked
        head = f"{printable(number)} {printable(name)}{styled(_DIM, took)}".rstrip()
        if "error" not in message:
            return f"{head} {self._value(message.get('result'))}"
        self._errors += 1
        error = self._value(message["error"])
        return f"{head} {styled(_RED, f'error {error}')}"

    def _value(self, value: Json) -> str:
        return "" if value is None else self._cut(dump(value))

    def _cut(self, text: bytes | Raw) -> str:
        shown = printable(bytes(text).decode("utf-8", "backslashreplace"))
        return shown if self._limit is None or len(shown) <= self._limit else f"{shown[: self._limit]}…"

    def _summary(self, recording: Recording) -> str:
        parts = [
            _counted(self._messages, "message"),
            _counted(self._errors, "error"),
            f"{_counted(len(self._open), 'request')} without an answer",
        ]
        if self._slowest[0]:
            parts.append(f"slowest: {printable(self._slowest[0])}, {self._slowest[1]:.1f} ms")
        if recording.end is None:
            parts.append("the recording was cut off")
        return ", ".join(parts)


def _arrow(sender: str) -> str:
    mark, colour = _ARROWS[sender]
    return styled(colour, mark)


def _time(entry: Entry) -> str:
    return styled(_DIM, f"{entry.ms:9.1f} ms")


def _id(message: dict[str, Json]) -> str:
    """The id's JSON text: 1 and "1" are two ids."""
    return dump(message.get("id")).decode()


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ending(status: int | None) -> str:
    if status is None:
        return "the server did not end"
    return f"the server ended with status {status}" if status >= 0 else f"the server was ended by signal {-status}"
