"""The state machine of `Content-Length` framing. Never reads, never waits, never looks at a clock, never logs.

It keeps the promise of docs/protocol.md, section 1.1: a frame inside another frame's payload never comes out, and behind
a fault the next good frame does. The states and what leads from one to the next stand in `states`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from ..errors.failures import InvalidRequest, ParseFailure
from .buffer import Collector, InputBuffer
from .events import END_OF_INPUT, NEED_DATA, EndOfInput, Event, Fault, Frame, FrameLimits, Framing
from .fault_span import FaultSpan
from .headers import HeaderBlock
from .states import CLEAN, DOUBT, MID_FRAME, REST_ENDS, State

if TYPE_CHECKING:
    from .lexer import JsonLexer

# What nearly every peer sends, in one call. 18 digits fit a 64-bit integer; everything else goes the careful way.
_usual_block: Final = re.compile(rb"Content-Length: ?([0-9]{1,18})\r\n\r\n").match
_no_line_end: Final = re.compile(rb"[^\r\n]").search
_blank_line: Final = re.compile(rb"\n\r?\n").search
_BLANK_LINE_REACH: Final = 2  # bytes before a position that can be part of a blank line ending behind it


@final
class ContentLengthParser:
    """Implements `Parser`. `state` is for diagnosis and tests. The first byte has the stream offset `offset`."""

    _lexer: JsonLexer  # of "unframed", "cut-text" and a doubt

    def __init__(self, limits: FrameLimits, *, offset: int = 0) -> None:
        self.framing: Final[Framing] = "content-length"
        self.state: State = "in-step"
        self.progress = 0
        self._limits = limits
        self._buffer = InputBuffer(offset)
        self._loss = FaultSpan()
        self._block = HeaderBlock(limits.max_header)
        self._block_in_doubt: State | None = None  # the doubt in which `_block` began
        self._outlasts_rests = False  # the doubt came from a time-out and nothing has come since
        self._missing = 0  # bytes of the body that are still to come
        self._parts = Collector()  # of a body that spans chunks
        self._last_body: bytes | None = None  # what `refuse_body` would refuse
        self._after: State = "in-step"  # behind "reporting"
        self._steps: dict[State, Callable[[], Event | None]] = {
            "in-step": self._block_due,
            "after-block": self._block_due,
            "in-block": self._in_block,
            "in-body": self._in_body,
            "skipping-body": self._skipping_body,
            "dropping-block": self._dropping_block,
            "unframed": self._in_text,
            "doubt-whole": self._in_doubt,
            "doubt-cut": self._in_doubt,
            "cut-text": self._in_text,
            "quarantine": self._quarantine,
            "reporting": self._reporting,
        }

    def next_event(self) -> Event:
        if self.state == "in-step":
            buffer = self._buffer
            data = buffer.data
            match = _usual_block(data, buffer.pos)
            if match is not None:
                start = match.end()
                end = start + int(match[1])
                if end <= len(data) and end - start <= self._limits.max_body:
                    buffer.pos = end
                    self._last_body = body = data[start:end]
                    return Frame(body)
        return self._next_event_carefully()

    def _next_event_carefully(self) -> Event:
        self._last_body = None
        while True:
            event = self._steps[self.state]()
            if event is NEED_DATA:
                if not self._buffer.run_dry():
                    continue
                return self._at_end() if self._buffer.ended else NEED_DATA
            if event is not None:
                return event

    @property
    def mid_frame(self) -> bool:
        return self.state in MID_FRAME

    @property
    def wants_rest(self) -> bool:
        if self.state == "in-block":
            return self._block_in_doubt is not None
        if self.state in DOUBT:
            return self._loss.due or not self._outlasts_rests
        return self.state in REST_ENDS

    @property
    def pending(self) -> int:
        return self._buffer.size + self._parts.size

    def leftover(self) -> bytes | None:
        if self._buffer.ended or self._loss.due or self.state not in CLEAN:
            return None
        if self.state == "in-block" and self._block_in_doubt is not None:
            return None
        ahead = self._buffer.ahead()
        if self.state != "in-body":
            return ahead  # a block is read where it lies, and taken when it is whole
        part = self._parts.copy()
        return b"Content-Length: %d\r\n\r\n%b%b" % (len(part) + self._missing, part, ahead)

    def receive_data(self, data: bytes) -> None:
        self._buffer.append(data)

    def end_of_input(self) -> None:
        self._buffer.end()

    def refuse_body(self, failure: ParseFailure) -> None:
        body, self._last_body = self._last_body, None
        if body is None:
            raise RuntimeError("no frame to refuse: next_event has not just returned one")
        self._outlasts_rests = False
        self._doubt(body, failure, self._buffer.here - len(body))

    def input_rested(self) -> None:
        if not (self._buffer.starved and self.wants_rest):
            return
        after: State = self.state if self.state in DOUBT and self._outlasts_rests else "in-step"
        if self._stop_dropping(after):
            self._report_before(after)

    def frame_timed_out(self) -> None:
        if not (self._buffer.starved and self.mid_frame):
            return
        if self.state == "in-block" and self._block_in_doubt is not None:
            self._no_block()
            return
        self._outlasts_rests = True
        if self.state == "in-body":
            partial = self._parts.join(b"")
            self._doubt(partial, ParseFailure("length-mismatch"), self._buffer.here - len(partial))
            return
        if self.state == "in-block":
            self._loss.begin(InvalidRequest("malformed-header"), self._buffer.here)
        # A body that is being skipped began its loss with its block. Its bytes are gone unread, since lexing them would
        # make throwing away cost more than parsing; so its tail cannot be told, and nothing but a block is believed.
        self._buffer.drop()
        self._report_before("doubt-whole")

    def _block_due(self) -> Event | None:
        buffer = self._buffer
        if not buffer.skip_to(_no_line_end):
            return NEED_DATA
        if buffer.data[buffer.pos] not in b"{[":
            self._begin_block(None)
            return None
        if self.state == "in-step":
            self._loss.begin(InvalidRequest("missing-content-length"), buffer.here)
        self._begin_text()
        self.state = "unframed"
        return None

    def _begin_text(self) -> None:
        from .lexer import JsonLexer  # late: only a fault needs it, and start-up is a feature

        self._lexer = JsonLexer()

    def _begin_block(self, in_doubt: State | None) -> None:
        self._block = HeaderBlock(self._limits.max_header)
        self._block_in_doubt = in_doubt
        self.state = "in-block"

    def _in_block(self) -> Event | None:
        buffer, block = self._buffer, self._block
        match block.read(buffer.data, buffer.pos):
            case None:
                return NEED_DATA
            case int() as length:
                return self._begin_body(length)
            case _ if self._block_in_doubt is not None:
                self._no_block()
            case ("malformed-header" | "header-too-large") as reason:
                self._loss.begin(InvalidRequest(reason), buffer.here)
                buffer.pos += max(0, block.seen - _BLANK_LINE_REACH)
                self.state = "dropping-block"
            case reason:
                self._loss.begin(InvalidRequest(reason), buffer.here)
                buffer.pos += block.seen
                self.state = "after-block"
                return self._loss.report(buffer.here)
        return None

    def _begin_body(self, length: int) -> Fault | None:
        """Returns the fault of the doubt that this block resolves, if that is still due."""
        buffer, loss = self._buffer, self._loss
        fault = loss.report(buffer.here) if loss.due else None
        reason = "oversize" if length > self._limits.max_body else self._block.type_fault
        if reason is not None:
            loss.begin(InvalidRequest(reason), buffer.here)
        buffer.pos += self._block.seen
        self._missing = length
        self.state = "in-body" if reason is None else "skipping-body"
        return fault

    def _in_body(self) -> Event:
        piece = self._buffer.take(self._missing)
        self._missing -= len(piece)
        if self._missing:
            self._parts.add(piece)
            return NEED_DATA
        self.state = "in-step"
        self._last_body = body = self._parts.join(piece)
        return Frame(body)

    def _skipping_body(self) -> Event:
        skipped = self._buffer.skip(self._missing)
        self._missing -= skipped
        self.progress += skipped
        if self._missing:
            return NEED_DATA
        self.state = "in-step"
        return self._loss.report(self._buffer.here)

    def _dropping_block(self) -> Event:
        buffer = self._buffer
        found = _blank_line(buffer.data, buffer.pos)
        if found is None:
            buffer.pos = max(buffer.pos, len(buffer.data) - _BLANK_LINE_REACH)
            return NEED_DATA
        buffer.pos = found.end()
        self.state = "after-block"
        return self._loss.report(buffer.here)

    def _in_text(self) -> Event | None:
        buffer, lexer = self._buffer, self._lexer
        buffer.pos = lexer.feed(buffer.data, buffer.pos)
        if lexer.unfinished:
            return NEED_DATA
        if lexer.phase == "broken":
            self._drop_until_rest()
        elif self.state == "cut-text":
            self.state = "doubt-whole"
        else:
            self.state = "in-step"
            return self._loss.report(buffer.here) if self._loss.due else None
        return None

    def _drop_until_rest(self) -> None:
        self._loss.due = True
        self.state = "quarantine"

    def _quarantine(self) -> Event:
        self._buffer.drop()
        return NEED_DATA

    def _doubt(self, text: bytes, failure: ParseFailure, start: int) -> None:
        self._loss.begin(failure, start)
        self._begin_text()
        self._lexer.feed(text)
        if self._lexer.unfinished:
            self.state = "doubt-cut"
        else:
            self._report_before("doubt-whole")

    def _in_doubt(self) -> Event | None:
        buffer = self._buffer
        start = buffer.pos
        more = buffer.skip_to(_no_line_end)
        if self.state == "doubt-cut":
            self._lexer.feed(buffer.data[start : buffer.pos])  # should the text go on, they were part of it
        if not more:
            return NEED_DATA
        self._begin_block(self.state)
        return None

    def _no_block(self) -> None:
        """What came in doubt is no block to go by. All of it still lies ahead."""
        if self._block_in_doubt == "doubt-cut":
            self._outlasts_rests = False
            self.state = "cut-text"
        else:
            self._drop_until_rest()

    def _stop_dropping(self, after: State) -> bool:
        """Give up what is held; true when a fault is due, be it only for a block or a text in doubt that ends here."""
        due = self._loss.due or self.state in {"in-block", "cut-text"}
        self._buffer.drop()
        self.state = after
        return due

    def _at_end(self) -> Fault | EndOfInput:
        here = self._buffer.here
        if self.state == "in-body":
            self._loss.begin(ParseFailure("length-mismatch"), here - len(self._parts.join(b"")))
        elif self.state == "in-block" and self._block_in_doubt is None:
            self._loss.begin(InvalidRequest("malformed-header"), here)
        return self._loss.report(self._buffer.here) if self._stop_dropping("in-step") else END_OF_INPUT

    def _report_before(self, after: State) -> None:
        """The next event is the fault of the loss up to here; `after` is the state behind it."""
        self._after = after
        self.state = "reporting"

    def _reporting(self) -> Fault:
        self.state = self._after
        return self._loss.report(self._buffer.here)
