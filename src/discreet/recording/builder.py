"""Builds the entries of a recording from the bytes of both directions. No IO of its own, no clock, no thread.

Whatever the bytes are, it only reads them: they reach the other side unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, assert_never, final

from msgspec import Raw

from ..client.messages import MAX_MESSAGE_BYTES
from ..client.stderr import StderrLines
from ..errors.failures import ParseFailure
from ..errors.redaction import scrub_fields
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, NeedData
from ..framing.parser import FramingChoice, Parser, parser_for
from .format import (
    VERSION,
    ClosedEntry,
    EndEntry,
    Entry,
    MessageEntry,
    OmittedEntry,
    Sender,
    StartEntry,
    StderrEntry,
    StreamName,
    dump,
    load,
)
from .scrubber import MessageScrubber

STDERR_CHARACTERS: Final = 8192
"""How much of a line of stderr is recorded. The daemon's log keeps as much of a field."""

TOO_DEEP: Final = "too-deep"
"""The reason of an omission: the message is nested too deeply to be searched for secrets."""

NOT_RECORDED: Final = "not-recorded"
"""The reason of an omission: the bytes came faster than they could be recorded."""


@final
class RecordingBuilder:
    """Passes the entries of one session to `write`, in order. `ms` is always in milliseconds since the start."""

    def __init__(
        self, write: Callable[[Entry], None], *, command: Sequence[str], framing: FramingChoice, hide_paths: bool
    ) -> None:
        self._write = write
        self._scrubber = MessageScrubber(hide_paths=hide_paths)
        limits = FrameLimits(max_body=MAX_MESSAGE_BYTES)
        self._parsers: dict[Sender, Parser] = {
            "client": parser_for(framing, limits),
            "server": parser_for(framing, limits),
        }
        self._stderr = StderrLines(self._add_stderr_line)
        self._ms = 0.0
        self._framing: FramingChoice = framing
        self._command = _scrubbed_command(command)
        self._scrubber.scrub(list(command))  # remembers the secrets of the command line
        self._has_start = False

    def feed(self, stream: StreamName, ms: float, data: bytes, *, rested: bool = False) -> None:
        """Some bytes; none at the end of that stream. `rested`: the stream was silent for 250 ms before them."""
        self._ms = ms
        if stream == "stderr":
            return self._stderr.feed(data) if data else self._stderr.finish()
        parser = self._parsers[stream]
        while rested and (clock := parser.clock) in ("short", "long"):
            parser.clock_expired()
            self._handle_events(stream, parser)
            rested = clock == "short"  # a long silence begins with a short one
        if data:
            parser.receive_data(data)
        else:
            parser.end_of_input()
        self._handle_events(stream, parser)
        if not data:
            self._add(ClosedEntry(ms=ms, sender=stream))

    def skip(self, sender: Sender, ms: float, size: int) -> None:
        """`size` bytes were not recorded. No more bytes may be fed."""
        self._add(OmittedEntry(ms=ms, sender=sender, reason=NOT_RECORDED, size=size))

    def end(self, ms: float, status: int | None) -> None:
        """End the session. Incomplete messages and lines are recorded first."""
        self._ms = ms
        for sender, parser in self._parsers.items():
            parser.end_of_input()
            self._handle_events(sender, parser)
        self._stderr.finish()
        self._add(EndEntry(ms=ms, status=status))

    def _handle_events(self, sender: Sender, parser: Parser) -> None:
        while True:
            event = parser.next_event()
            match event:
                case Frame(body):
                    self._add_message(sender, parser, body)
                case Fault(failure, size):
                    self._add(OmittedEntry(ms=self._ms, sender=sender, reason=failure.reason, size=size))
                case NeedData() | EndOfInput():
                    return
                case _:
                    assert_never(event)

    def _add_message(self, sender: Sender, parser: Parser, body: bytes) -> None:
        """Add a message. If it is none, tell the parser, which then reports a fault at the right time."""
        try:
            scrubbed = self._scrubber.scrub(load(body))
            text = Raw(dump(scrubbed.message))
        except RecursionError:
            self._add(OmittedEntry(ms=self._ms, sender=sender, reason=TOO_DEEP, size=len(body)))
        except UnicodeError:
            parser.refuse_body(ParseFailure("invalid-utf8"))
        except ValueError:
            parser.refuse_body(ParseFailure("invalid-json"))
        else:
            self._add(MessageEntry(ms=self._ms, sender=sender, message=text, scrubbed=dict(scrubbed.removed)))

    def _add_stderr_line(self, line: str) -> None:
        self._add(StderrEntry(ms=self._ms, text=self._scrubber.scrub_text(line, cap=STDERR_CHARACTERS)))

    def _add(self, entry: Entry) -> None:
        if not self._has_start:
            self._has_start = True
            framing = self._detected_framing() if self._framing == "auto" else self._framing
            self._write(StartEntry(ms=0.0, version=VERSION, framing=framing, command=self._command))
        self._write(entry)

    def _detected_framing(self) -> FramingChoice:
        """The framing of the two sides, if it is known by now."""
        return self._parsers["client"].framing or self._parsers["server"].framing or "auto"


def _scrubbed_command(command: Sequence[str]) -> tuple[str, ...]:
    scrubbed = scrub_fields(list(command))
    assert isinstance(scrubbed, list)  # the copy of a list is a list
    return tuple(map(str, scrubbed))
