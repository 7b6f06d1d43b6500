"""Turns the bytes of both directions into the lines of a recording. No IO of its own, no clock, no thread.

Reads beside the stream: whatever is wrong with the bytes, it gives lines, and the bytes are not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, assert_never, final

from msgspec import Raw

from ..client.messages import MAX_MESSAGE_BYTES
from ..client.process.stderr import StderrLines
from ..errors.failures import ParseFailure
from ..errors.redaction import scrub, scrub_fields
from ..framing.events import EndOfInput, Fault, Frame, FrameLimits, NeedData
from ..framing.parser import FramingChoice, Parser, parser_for
from .format import VERSION, Closed, Ended, Line, Lost, Noted, Said, Sender, Start
from .json_values import dump, load
from .scrubber import MessageScrubber

STDERR_CHARACTERS: Final = 8192
"""What is kept of one line of stderr, as much as the daemon's log keeps of a field."""

TOO_DEEP: Final = "too-deep"
"""The reason of a loss that is the recorder's own: a message nested too deeply to be looked through for secrets."""

NOT_RECORDED: Final = "not-recorded"
"""The reason of a loss for bytes that came faster than they could be recorded."""


@final
class Transcript:
    """The lines of one session go to `write`, in order. `ms` are always milliseconds since the start."""

    def __init__(
        self, write: Callable[[Line], None], *, command: Sequence[str], framing: FramingChoice, hide_paths: bool
    ) -> None:
        self._write = write
        self._scrubber = MessageScrubber(hide_paths=hide_paths)
        limits = FrameLimits(max_body=MAX_MESSAGE_BYTES)
        self._parsers: dict[Sender, Parser] = {
            "client": parser_for(framing, limits),
            "server": parser_for(framing, limits),
        }
        self._stderr = StderrLines(self._note)
        self._ms = 0.0
        self._framing: FramingChoice = framing
        self._command = _scrubbed_command(command)
        self._begun = False

    def take(self, sender: Sender, ms: float, data: bytes, *, rested: bool = False) -> None:
        """Some bytes; none at the end of that direction. `rested`: before them, the stream was silent for 250 ms."""
        self._ms = ms
        parser = self._parsers[sender]
        if rested:
            parser.input_rested()
            self._drain(sender, parser)
        if data:
            parser.receive_data(data)
        else:
            parser.end_of_input()
        self._drain(sender, parser)
        if not data:
            self._tell(Closed(ms=ms, sender=sender))

    def take_stderr(self, ms: float, data: bytes) -> None:
        """Some bytes of the server's stderr; none at its end."""
        self._ms = ms
        if data:
            self._stderr.feed(data)
        else:
            self._stderr.finish()

    def skipped(self, sender: Sender, ms: float, size: int) -> None:
        """Bytes went by unseen, and no more will be taken."""
        self._tell(Lost(ms=ms, sender=sender, reason=NOT_RECORDED, size=size))

    def end(self, ms: float, status: int | None) -> None:
        """The session is over; what was unfinished by then is told before."""
        self._ms = ms
        for sender, parser in self._parsers.items():
            parser.end_of_input()
            self._drain(sender, parser)
        self._stderr.finish()
        self._tell(Ended(ms=ms, status=status))

    def _drain(self, sender: Sender, parser: Parser) -> None:
        while True:
            event = parser.next_event()
            match event:
                case Frame(body):
                    self._message(sender, parser, body)
                case Fault(failure, size):
                    self._tell(Lost(ms=self._ms, sender=sender, reason=failure.reason, size=size))
                case NeedData() | EndOfInput():
                    return
                case _:
                    assert_never(event)

    def _message(self, sender: Sender, parser: Parser, body: bytes) -> None:
        """Keep a message, or tell the parser that it is none: the loss comes from there when it is due."""
        try:
            kept = self._scrubber.scrub(load(body))
            text = Raw(dump(kept.message))
        except RecursionError:
            self._tell(Lost(ms=self._ms, sender=sender, reason=TOO_DEEP, size=len(body)))
        except UnicodeError:
            parser.refuse_body(ParseFailure("invalid-utf8"))
        except ValueError:
            parser.refuse_body(ParseFailure("invalid-json"))
        else:
            self._tell(Said(ms=self._ms, sender=sender, message=text, scrubbed=dict(kept.removed)))

    def _note(self, line: str) -> None:
        self._tell(Noted(ms=self._ms, text=scrub(line, cap=STDERR_CHARACTERS)))

    def _tell(self, line: Line) -> None:
        if not self._begun:
            self._begun = True
            framing = self._spoken() if self._framing == "auto" else self._framing
            self._write(Start(ms=0.0, version=VERSION, framing=framing, command=self._command))
        self._write(line)

    def _spoken(self) -> FramingChoice:
        """What the two sides speak, as far as that is known by now."""
        return self._parsers["client"].framing or self._parsers["server"].framing or "auto"


def _scrubbed_command(command: Sequence[str]) -> tuple[str, ...]:
    scrubbed = scrub_fields(list(command))
    assert isinstance(scrubbed, list)  # a list's copy is one
    return tuple(str(word).encode(errors="backslashreplace").decode() for word in scrubbed)  # a name may be no UTF-8
