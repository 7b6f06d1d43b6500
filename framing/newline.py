"""The parser of newline framing: one JSON text per line (MCP and ACP hosts, shell pipes). Never reads, waits or logs.

A line ends in LF or CR LF, blank lines are skipped, and the last line may lack its end. Whatever is wrong with a line, the
next one begins after its end, so there is no doubt as in `content_length`:

    in-step     a line is due. First byte that is not blank: in-line.
    in-line     end of the line: frame, in-step. Larger than `max_body`: dropping.
    dropping    an oversize line, or the rest of one that timed out. End of the line: fault, in-step.
    reporting   a fault is due; then in-step.

Silence does not end an oversize line, or the late bytes of a slow peer would become a line of their own. It does end a
line that timed out: a peer that sent a line without its end and waits must get an answer. If the peer sends the rest of
that line after all, it is refused as a line: no proper ending of a JSON object or array is a JSON text itself.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias, final

from ..errors.failures import InvalidRequest, ParseFailure
from .buffer import BodyBuffer, InputBuffer
from .events import END_OF_INPUT, NEED_DATA, Event, Fault, Frame, FrameLimits, Framing, NeedData
from .fault_span import FaultSpan

LineState: TypeAlias = Literal["in-step", "in-line", "dropping", "reporting"]

_OVERSIZE: Final = InvalidRequest("oversize")
_BLANKS: Final = b" \t\r"
_LAST_BLANK: Final = 0x20
_no_blank: Final = re.compile(rb"[^ \t\r\n]").search


@final
class NewlineParser:
    """Implements `Parser`. `state` is for diagnosis and tests. `offset` is the stream offset of the first byte."""

    def __init__(self, limits: FrameLimits, *, offset: int = 0) -> None:
        self.framing: Final[Framing] = "newline"
        self.state: LineState = "in-step"
        self.progress = 0
        self._max_body = limits.max_body
        self._max_line = limits.max_body + 1  # with its CR
        self._buffer = InputBuffer(offset)
        self._pieces = BodyBuffer()
        self._line_start = 0
        self._last_line = 0  # size of the line that `refuse_body` would refuse
        self._loss = FaultSpan()
        self._timed_out = False

    def next_event(self) -> Event:
        if self.state == "in-step":
            buffer = self._buffer
            data, start = buffer.data, buffer.pos
            end = data.find(b"\n", start)
            if start < end <= start + self._max_body and data[start] > _LAST_BLANK:
                buffer.pos = end + 1
                self._last_line = buffer.pos - start
                return Frame(data[start:end].rstrip(_BLANKS))
        return self._next_event_slowly()

    def _next_event_slowly(self) -> Event:
        self._last_line = 0
        while True:
            match self.state:
                case "in-step" | "in-line":
                    event = self._in_line()
                case "dropping":
                    event = self._dropping()
                case "reporting":
                    event = self._report()
            if event is not NEED_DATA:
                return event
            if not self._buffer.load_more():
                return self._at_end() if self._buffer.ended else NEED_DATA

    @property
    def mid_frame(self) -> bool:
        return self.state == "in-line" or (self.state == "dropping" and not self._timed_out)

    @property
    def waits_for_silence(self) -> bool:
        return self.state == "dropping" and self._timed_out

    @property
    def pending(self) -> int:
        return self._buffer.size + self._pieces.size

    def leftover(self) -> bytes | None:
        if self._buffer.ended or self.state not in ("in-step", "in-line"):
            return None
        return self._pieces.copy() + self._buffer.remaining()

    def receive_data(self, data: bytes) -> None:
        self._buffer.append(data)

    def end_of_input(self) -> None:
        self._buffer.end()

    def refuse_body(self, failure: ParseFailure) -> None:
        size, self._last_line = self._last_line, 0
        if not size:
            raise RuntimeError("no frame to refuse: next_event has not just returned one")
        self._loss.begin(failure, self._buffer.offset - size)
        self._report_next()

    def input_fell_silent(self) -> None:
        if self._buffer.starved and self.waits_for_silence:
            self._report_next()

    def frame_timed_out(self) -> None:
        if not (self._buffer.starved and self.mid_frame):
            return
        if self.state == "in-line":
            self._drop_line(ParseFailure("length-mismatch"))
        self._timed_out = True

    def _in_line(self) -> Event:
        buffer = self._buffer
        if self.state == "in-step" and not self._line_begins():
            return NEED_DATA
        end = buffer.data.find(b"\n", buffer.pos)
        ahead = (len(buffer.data) if end < 0 else end) - buffer.pos
        if self._pieces.size + ahead > self._max_line:
            self._drop_line(_OVERSIZE)
            return self._dropping()
        piece = buffer.take(ahead)
        if end < 0:
            self._pieces.add(piece)
            return NEED_DATA
        buffer.pos += 1
        return self._line(self._pieces.join(piece))

    def _line_begins(self) -> bool:
        if not self._buffer.skip_to(_no_blank):
            return False
        self._line_start = self._buffer.offset
        self.state = "in-line"
        return True

    def _line(self, line: bytes) -> Frame | Fault:
        self.state = "in-step"
        body = line.rstrip(_BLANKS)
        if len(body) > self._max_body:
            self._loss.begin(_OVERSIZE, self._line_start)
            return self._report()
        self._last_line = self._buffer.offset - self._line_start
        return Frame(body)

    def _drop_line(self, failure: InvalidRequest | ParseFailure) -> None:
        self._loss.begin(failure, self._line_start)
        self._pieces = BodyBuffer()
        self._timed_out = False
        self.state = "dropping"

    def _dropping(self) -> Fault | NeedData:
        buffer = self._buffer
        end = buffer.data.find(b"\n", buffer.pos)
        before = buffer.pos
        buffer.pos = len(buffer.data) if end < 0 else end + 1
        self.progress += buffer.pos - before
        return NEED_DATA if end < 0 else self._report()

    def _report(self) -> Fault:
        self.state = "in-step"
        return self._loss.report(self._buffer.offset)

    def _report_next(self) -> None:
        self.state = "reporting"

    def _at_end(self) -> Event:
        if self.state == "in-line":
            return self._line(self._pieces.join(b""))
        return self._report() if self.state == "dropping" else END_OF_INPUT
