"""Detects the framing from the first byte and passes everything on to the parser of that framing. Never parses itself.

`{` and `[` mean newline framing, but a log line (`[info] starting`) may begin like this too. So the choice stands only from
the first line that is a JSON text. Until then the framing is the other one as soon as a header begins, also behind a log line
without an end: the lines inside such a frame's body must not run (docs/protocol.md, section 1.1).

What is answered decides too, because a peer reads one framing. So the faults of the first lines are held back until the
framing is known: by a line that is JSON, by a header, by silence or the end of input, which mean lines, or when they are many.
"""

from __future__ import annotations

from typing import Final, final

from ..errors.failures import InvalidRequest, ParseFailure
from .content_length import ContentLengthParser
from .events import END_OF_INPUT, NEED_DATA, Event, Fault, Frame, FrameLimits, Framing, Silence
from .newline import NewlineParser

MOST_HELD: Final = 64
"""Faults that are held back. So many lines that are no JSON are told, whatever follows."""


@final
class AutoParser:
    """Implements `Parser`. `framing` is what the peer is answered in: it never changes after a frame or a fault was returned.

    What is read may be frames although `framing` is "newline": headers that come after faults were told.
    """

    def __init__(self, limits: FrameLimits) -> None:
        self.framing: Framing | None = None
        self._limits = limits
        self._lines = NewlineParser(limits, undecided=True)
        self._parser: ContentLengthParser | NewlineParser = self._lines
        self._undecided = True
        self._held: list[Fault] = []
        self._told = False  # faults are not held back any more
        self._in_doubt = False  # the last call of `next_event` returned a line, and it was not refused since

    def next_event(self) -> Event:
        if not (self._undecided or self._held):
            return self._parser.next_event()
        if self._in_doubt:
            self._decide_for_lines()
        while self._undecided and not (self._held and self._told):
            event = self._lines.next_event()
            if self._lines.begun:
                self.framing = "newline"
            if isinstance(event, Frame):
                self._in_doubt = True
                return event
            if isinstance(event, Fault):
                self._held.append(event)
                self._told = self._told or len(self._held) >= MOST_HELD
            elif self._lines.state == "other-framing":
                self._change_framing()
            elif event is END_OF_INPUT:
                self._decide_for_lines()
            else:
                return NEED_DATA
        return self._held.pop(0) if self._held else self._parser.next_event()

    def _decide_for_lines(self) -> None:
        self._undecided = self._in_doubt = False
        self._lines.settle()

    def _change_framing(self) -> None:
        self._undecided = False
        if not self._told:
            self.framing = "content-length"
        rest, offset, ended = self._lines.rest()
        self._parser = ContentLengthParser(self._limits, offset=offset, refused=self._lines.declared)
        if rest:
            self._parser.receive_data(rest)
        if ended:
            self._parser.end_of_input()

    def receive_data(self, data: bytes) -> None:
        self._parser.receive_data(data)

    def leftover(self) -> bytes | None:
        return None if self._held or self.framing not in (None, self._parser.framing) else self._parser.leftover()

    def end_of_input(self) -> None:
        self._parser.end_of_input()

    def refuse_body(self, failure: InvalidRequest | ParseFailure) -> None:
        self._in_doubt = False
        self._parser.refuse_body(failure)

    def frame_timed_out(self) -> None:
        self._parser.frame_timed_out()

    def input_fell_silent(self) -> None:
        self._told = self._told or bool(self._held)
        self._parser.input_fell_silent()

    @property
    def idle(self) -> bool:
        return not self._held and self._parser.idle

    @property
    def mid_frame(self) -> bool:
        return self._parser.mid_frame

    @property
    def progress(self) -> int:
        return self._parser.progress

    @property
    def awaited_silence(self) -> Silence | None:
        return "long" if self._held else self._parser.awaited_silence

    @property
    def pending(self) -> int:
        return self._parser.pending
