"""Detects the framing from the first byte and passes everything on to the parser of that framing. Never parses itself."""

from __future__ import annotations

from typing import Final, final

from ..errors.failures import ParseFailure
from .content_length import ContentLengthParser
from .events import Event, FrameLimits, Framing
from .newline import NewlineParser

_BLANKS: Final = b" \t\r\n"


@final
class AutoParser:
    """Implements `Parser`. The first byte that is no white space decides: `{` and `[` mean newline framing."""

    def __init__(self, limits: FrameLimits) -> None:
        self.framing: Framing | None = None
        self._limits = limits
        self._parser: ContentLengthParser | NewlineParser = NewlineParser(limits)  # skips blanks, as both parsers do
        self._blanks: int | None = 0  # blanks before the first other byte; None once the framing is decided

    def receive_data(self, data: bytes) -> None:
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
            return data
        self._parser = ContentLengthParser(self._limits, offset=blanks + len(data) - len(rest))
        return rest

    def leftover(self) -> bytes | None:
        return self._parser.leftover()

    def end_of_input(self) -> None:
        self._blanks = None
        self._parser.end_of_input()

    def next_event(self) -> Event:
        return self._parser.next_event()

    def refuse_body(self, failure: ParseFailure) -> None:
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
