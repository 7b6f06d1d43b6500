"""The parser of newline framing: one JSON text per line (MCP and ACP hosts, shell pipes); and the choice between framings.

Never reads, never waits, never logs.

A line ends in LF or CR LF, blank lines are skipped, and the last line may lack its end. Whatever is wrong with a line, the
next one begins after its end, so there is no doubt as in `content_length`:

    in-step     a line is due. First byte that is not blank: in-line.
    undecided   the same while the other framing is possible. A header begins: other-framing.
    in-line     end of the line: frame, in-step. Larger than `max_body`: dropping.
    dropping    an oversize line, one that timed out, or more of it. End of the line: fault, in-step.
    late-rest   the fault of a line that timed out was reported. End of the line: in-step. First byte that is not blank:
                dropping.
    other-framing  only if undecided: a header was begun, or the last line declared a length. Nothing more is consumed.
    reporting   a fault is due; then the state that was remembered.

Only a line end ends a line, or its late rest would run as a line of its own. But a peer that sent a line without its end
and waits must get an answer: after a time-out, silence makes the fault due. What comes late is a further fault.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, final

from ..errors.failures import InvalidRequest, ParseFailure
from .content_length import BodyBuffer, ContentLengthParser, InputBuffer, RefusedBlock
from .events import END_OF_INPUT, NEED_DATA, Clock, Event, Fault, Frame, FrameLimits, Framing, Losses, NeedData

LineState: TypeAlias = Literal["in-step", "undecided", "in-line", "dropping", "late-rest", "other-framing", "reporting"]

_OVERSIZE: Final = InvalidRequest("oversize")
_BLANKS: Final = b" \t\r"
_LAST_BLANK: Final = 0x20
_LINE_END: Final = ord("\n")
_no_blank: Final = re.compile(rb"[^ \t\r\n]").search
_no_blank_in_line: Final = re.compile(rb"[^ \t\r]").search


@final
class NewlineParser:
    """Implements `Parser`. `state` is for diagnosis and tests.

    If it is `undecided`, the first line must begin with `{` or `[`, else the framing is the other one. So it is if a later line
    begins with the letter of `Content-Length`, or if a line that was refused or dropped ends in a declared length:
    `declared` is then what was read of that block. `settle` decides for lines. `begun` is true once a line has begun.
    """

    def __init__(self, limits: FrameLimits, *, undecided: bool = False) -> None:
        self.framing: Final[Framing] = "newline"
        self._line_due: LineState = "undecided" if undecided else "in-step"
        self.state: LineState = self._line_due
        self.progress = 0
        self.begun = False
        self.declared: RefusedBlock | None = None
        self._refused = RefusedBlock()  # while undecided: the line that is being dropped
        self._max_body = limits.max_body
        self._max_line = limits.max_body + 1  # with its CR
        self._buffer = InputBuffer(0)
        self._pieces = BodyBuffer()
        self._line_start = 0
        self._last_line = 0  # size of the line that `refuse_body` would refuse
        self._last_body = b""  # the same line, while undecided
        self._losses = Losses()
        self._timed_out = False
        self._state_after: LineState = "in-step"  # the state after "reporting"

    def next_event(self) -> Event:
        if self.state == "in-step":
            buffer = self._buffer
            data, start = buffer.data, buffer.pos
            end = data.find(b"\n", start)
            if start < end <= start + self._max_body and data[start] > _LAST_BLANK:
                buffer.pos = end + 1
                self._last_line = buffer.pos - start
                self.progress += 1
                return Frame(data[start:end].rstrip(_BLANKS))
            if start == len(data) and not buffer.ended:
                self._last_line = 0
                return NEED_DATA
        return self._next_event_slowly()

    def _next_event_slowly(self) -> Event:
        self._last_line = 0
        match self.state:
            case "in-step" | "undecided" | "in-line":
                event = self._in_line()
            case "dropping":
                event = self._dropping()
            case "late-rest":
                event = self._late_rest()
            case "other-framing":
                event = NEED_DATA
            case "reporting":
                event = self._report(self._state_after)
        if event is not NEED_DATA:
            return event
        self._buffer.starved = True
        return self._at_end() if self._buffer.ended else NEED_DATA

    @property
    def clock(self) -> Clock | None:
        if self.state == "dropping" and self._timed_out:
            return "long"
        return "frame" if self.state in ("in-line", "dropping") else None

    @property
    def pending(self) -> int:
        return self._buffer.size + self._pieces.size

    def leftover(self) -> bytes | None:
        if self._buffer.ended or self.state not in (self._line_due, "in-line"):
            return None
        return self._pieces.copy() + self._buffer.remaining()

    def receive_data(self, data: bytes) -> None:
        self._buffer.append(data)

    def end_of_input(self) -> None:
        self._buffer.ended = True

    def settle(self) -> None:
        """The framing is decided: lines."""
        if self.state == self._line_due:
            self.state = "in-step"
        self._line_due = "in-step"

    def rest(self) -> tuple[bytes, int, bool]:
        """Return the state from which the other framing goes on: the bytes, the stream offset of the first, and whether the
        input has ended."""
        return self._buffer.remaining(), self._buffer.offset, self._buffer.ended

    def refuse_body(self, failure: InvalidRequest | ParseFailure) -> None:
        size, self._last_line = self._last_line, 0
        if not size:
            raise RuntimeError("no frame to refuse: next_event has not just returned one")
        self._losses.begin(failure, self._buffer.offset - size)
        self._begin_refused(self._last_body)
        self._report_before(self._after_refused())

    def clock_expired(self) -> None:
        clock = self.clock
        if clock is None or not self._buffer.starved:
            return
        if clock == "long":
            self._report_before("late-rest")
            return
        if self.state == "in-line":
            self._drop_line(ParseFailure("length-mismatch"))
        self._timed_out = True

    def _in_line(self) -> Event:
        buffer = self._buffer
        if self.state == self._line_due and not self._line_begins():
            return NEED_DATA
        end = buffer.data.find(b"\n", buffer.pos)
        ahead = (len(buffer.data) if end < 0 else end) - buffer.pos
        if self._pieces.size + ahead > self._max_line:
            self._drop_line(_OVERSIZE)
            return self._dropping()
        start = buffer.pos
        piece = buffer.take(ahead)
        try:
            if end < 0:
                self._pieces.add(piece)
                return NEED_DATA
            line = self._pieces.join(piece)
        except MemoryError:  # as for a line that is too large
            buffer.pos = start
            self._drop_line(_OVERSIZE)
            return self._dropping()
        buffer.pos += 1
        return self._line(line)

    def _line_begins(self) -> bool:
        if not self._buffer.skip_to(_no_blank):
            return False
        if self._line_due == "undecided" and self._is_header(self._buffer.data[self._buffer.pos]):
            self.state = "other-framing"
            return False
        self._line_start = self._buffer.offset
        self.begun = True
        self.state = "in-line"
        return True

    def _is_header(self, first_byte: int) -> bool:
        return first_byte in b"Cc" if self.begun else first_byte not in b"{["

    def _line(self, line: bytes) -> Frame | Fault:
        self.state = self._line_due
        body = line.rstrip(_BLANKS)
        if len(body) > self._max_body:
            self._losses.begin(_OVERSIZE, self._line_start)
            self._begin_refused(body)
            return self._report(self._after_refused())
        if self.state == "undecided":
            self._last_body = body
        self._last_line = self._buffer.offset - self._line_start
        self.progress += 1
        return Frame(body)

    def _drop_line(self, failure: InvalidRequest | ParseFailure) -> None:
        self._losses.begin(failure, self._line_start)
        self._begin_refused(b"")
        for part in self._pieces.parts():
            self._go_on_refused(part)
        self._pieces = BodyBuffer()
        self._begin_dropping()

    def _begin_dropping(self) -> None:
        self._timed_out = False
        self.state = "dropping"

    def _dropping(self) -> Fault | NeedData:
        buffer = self._buffer
        end = buffer.data.find(b"\n", buffer.pos)
        dropped = buffer.take((len(buffer.data) if end < 0 else end + 1) - buffer.pos)
        self.progress += len(dropped)
        self._go_on_refused(dropped)
        return NEED_DATA if end < 0 else self._report(self._after_refused())

    def _late_rest(self) -> Event:
        buffer = self._buffer
        if not buffer.skip_to(_no_blank_in_line):
            return NEED_DATA
        if buffer.data[buffer.pos] != _LINE_END:
            self._losses.resume()
            self._begin_dropping()
            return self._dropping()
        buffer.pos += 1
        self.state = self._after_refused()
        return NEED_DATA if self.state == "other-framing" else self._in_line()

    def _begin_refused(self, line: bytes) -> None:
        """Look for a declared length in a line that is refused or dropped. While undecided; else it means nothing."""
        self._refused = RefusedBlock()
        self._go_on_refused(line)

    def _go_on_refused(self, more: bytes) -> None:
        if self._line_due == "undecided":
            self._refused.read(more, 0)

    def _after_refused(self) -> LineState:
        """The state after the end of such a line."""
        self._go_on_refused(b"\n")
        if self._line_due != "undecided" or self._refused.length is None:
            return self._line_due
        self.declared = self._refused
        return "other-framing"

    def _report(self, after: LineState) -> Fault:
        self.state = after
        return self._losses.report(self._buffer.offset)

    def _report_before(self, after: LineState) -> None:
        """Make the fault the next event; `after` is the state after it."""
        self._state_after = after
        self.state = "reporting"

    def _at_end(self) -> Event:
        if self.state == "in-line":
            return self._line(self._pieces.join(b""))
        return self._report(self._after_refused()) if self.state == "dropping" else END_OF_INPUT


# -- the choice of a framing -------------------------------------------------------------------------------------------
#
# `{` and `[` mean newline framing, but a log line (`[info] starting`) may begin like this too. So the choice stands only from
# the first line that is a JSON text. Until then the framing is the other one as soon as a header begins, also behind a log line
# without an end: the lines inside such a frame's body must not run (docs/protocol.md, section 1.1).
#
# What is answered decides too, because a peer reads one framing. So the faults of the first lines are held back until the
# framing is known: by a line that is JSON, by a header, by silence or the end of input, which mean lines, or when they are many.

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

    def clock_expired(self) -> None:
        self._told = self._told or bool(self._held)
        if not (
            self._held and self._parser.clock == "frame"
        ):  # of faults that are held back, only a silence is awaited
            self._parser.clock_expired()

    @property
    def progress(self) -> int:
        return self._parser.progress

    @property
    def clock(self) -> Clock | None:
        return "long" if self._held else self._parser.clock

    @property
    def pending(self) -> int:
        return self._parser.pending
