"""Detects the framing from the first byte and passes everything on to the parser of that framing. Never parses itself.

`{` and `[` mean newline framing, but a log line (`[info] starting`) may begin like this too. So the choice stands only from
the first line that is a JSON text. Until then a line that begins with the letter of `Content-Length` means that framing,
and so does a line that ends in a declared length, behind a log line without an end: the lines inside such a frame's body
must not run.
"""

from __future__ import annotations

from typing import Final, final

from ..errors.failures import ParseFailure
from .content_length import ContentLengthParser
from .events import Event, Fault, Frame, FrameLimits, Framing
from .headers import declares_length
from .newline import LINE_END_KEPT, NewlineParser

_BLANKS: Final = b" \t\r\n"


@final
class AutoParser:
    """Implements `Parser`. `framing` is that of the first byte that is no white space, until a header follows bad lines."""

    def __init__(self, limits: FrameLimits) -> None:
        self.framing: Framing | None = None
        self._limits = limits
        self._parser: ContentLengthParser | NewlineParser = NewlineParser(limits)  # skips blanks, as both parsers do
        self._received = 0
        self._unproved = False  # newline framing was chosen, and no line has been a JSON text yet
        self._line: bytes | None = None  # what the last call of `next_event` returned, if it was not refused since
        self._refused: bytes | None = None  # the line whose fault comes next
        self._blanks: int | None = 0  # blanks before the first other byte; None once the framing is decided

    def receive_data(self, data: bytes) -> None:
        self._received += len(data)
        if self._blanks is not None:
            data = self._decide(data, self._blanks)
        self._parser.receive_data(data)

    def _decide(self, data: bytes, blanks: int) -> bytes:
        """Decide by the first byte that is no blank; returns the part of `data` that goes to the parser."""
        rest = data.lstrip(_BLANKS)
        if not rest:
            self._blanks = blanks + len(data)
            return data
        self._blanks = None
        self.framing = "newline" if rest[0] in b"{[" else "content-length"
        if self.framing == "newline":
            self._unproved = True
            return data
        self._parser = ContentLengthParser(self._limits, offset=blanks + len(data) - len(rest))
        return rest

    def leftover(self) -> bytes | None:
        return self._parser.leftover()

    def end_of_input(self) -> None:
        self._blanks = None
        self._parser.end_of_input()

    def next_event(self) -> Event:
        if not self._unproved:
            return self._parser.next_event()
        if self._line is not None:
            self._unproved = False
            self._line = None
        else:
            self._reconsider()
        event = self._parser.next_event()
        if not self._unproved:
            return event
        if isinstance(event, Frame):
            self._line = event.body
        elif isinstance(event, Fault):
            self._look_at_refused_line()
        return event

    def _reconsider(self) -> None:
        """Change to the other framing if a header comes next."""
        rest = (self._parser.leftover() or b"").lstrip(_BLANKS)
        if rest[:1] in (b"C", b"c"):
            self._change_framing(rest, None)

    def _look_at_refused_line(self) -> None:
        """Change to the other framing if the line whose fault was returned ends in a declared length."""
        line = self._refused
        if line is None and isinstance(self._parser, NewlineParser):
            line = self._parser.dropped_end
        self._refused = None
        rest = self._parser.leftover()
        if line and rest is not None and declares_length(line):
            self._change_framing(rest, line)

    def _change_framing(self, rest: bytes, refused_line: bytes | None) -> None:
        self._unproved = False
        self.framing = "content-length"
        offset = self._received - len(rest)
        self._parser = ContentLengthParser(self._limits, offset=offset, refused_line=refused_line)
        if rest:
            self._parser.receive_data(rest)

    def refuse_body(self, failure: ParseFailure) -> None:
        if self._line is not None:
            self._refused, self._line = self._line[-LINE_END_KEPT:], None
        self._parser.refuse_body(failure)

    def frame_timed_out(self) -> None:
        self._parser.frame_timed_out()

    def input_fell_silent(self) -> None:
        self._parser.input_fell_silent()

    @property
    def mid_frame(self) -> bool:
        return self._parser.mid_frame

    @property
    def progress(self) -> int:
        return self._parser.progress

    @property
    def waits_for_silence(self) -> bool:
        return self._parser.waits_for_silence

    @property
    def pending(self) -> int:
        return self._parser.pending
