"""The parser of `Content-Length` framing. Never reads, never waits, never looks at a clock, never logs.

It keeps the promise of docs/protocol.md, section 1.1: a frame inside another frame's payload is never returned, and after
a fault the next good frame is. `states` describes the states and the transitions between them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from ..errors.failures import InvalidRequest, ParseFailure
from .buffer import BodyBuffer, InputBuffer
from .events import END_OF_INPUT, NEED_DATA, EndOfInput, Event, Fault, Frame, FrameLimits, Framing
from .fault_span import FaultSpan
from .headers import HeaderBlock, RefusedBlock
from .states import CLEAN, DOUBT, MID_FRAME, SILENCE_ENDS, ParserState

if TYPE_CHECKING:
    from .lexer import JsonLexer

# The block that nearly every peer sends, in one match. 18 digits fit a 64-bit integer. Other blocks take the slow path.
_common_block: Final = re.compile(rb"Content-Length: ?([0-9]{1,18})\r\n\r\n").match
_no_line_end: Final = re.compile(rb"[^\r\n]").search


@final
class ContentLengthParser:
    """Implements `Parser`. `state` is for diagnosis and tests. `offset` is the stream offset of the first byte.

    If `refused_line` is given, the stream begins behind this line of a block that was refused.
    """

    _lexer: JsonLexer  # in the states "unframed", "cut-text" and in doubt

    def __init__(self, limits: FrameLimits, *, offset: int = 0, refused_line: bytes | None = None) -> None:
        self.framing: Final[Framing] = "content-length"
        self.state: ParserState = "in-step"
        self.progress = 0
        self._limits = limits
        self._buffer = InputBuffer(offset)
        self._loss = FaultSpan()
        self._block = HeaderBlock(limits.max_header)
        self._refused = RefusedBlock()
        self._block_in_doubt: ParserState | None = None  # the doubt in which `_block` began, if any
        self._outlasts_silence = False  # the doubt follows a time-out, and no byte has arrived since
        self._body_left = 0  # bytes of the body that have not arrived yet
        self._parts = BodyBuffer()  # for a body that spans chunks
        self._last_body: bytes | None = None  # the body that `refuse_body` would refuse
        self._state_after: ParserState = "in-step"  # the state after "reporting"
        if refused_line is not None:
            self._loss.begin(InvalidRequest("malformed-header"), offset)
            self._refused.read(refused_line + b"\n", 0)
            self.state = "dropping-block"
        self._steps: dict[ParserState, Callable[[], Event | None]] = {
            "in-step": self._block_due,
            "after-block": self._block_due,
            "in-block": self._in_block,
            "in-body": self._in_body,
            "skipping-body": self._skipping_body,
            "dropping-block": self._dropping_block,
            "skipping-refused": self._skipping_refused,
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
            match = _common_block(data, buffer.pos)
            if match is not None:
                start = match.end()
                end = start + int(match[1])
                if end <= len(data) and end - start <= self._limits.max_body:
                    buffer.pos = end
                    self._last_body = body = data[start:end]
                    return Frame(body)
        return self._next_event_slowly()

    def _next_event_slowly(self) -> Event:
        self._last_body = None
        while True:
            event = self._steps[self.state]()
            if event is NEED_DATA:
                if self._buffer.load_more():
                    continue
                return self._at_end() if self._buffer.ended else NEED_DATA
            if event is not None:
                return event

    @property
    def mid_frame(self) -> bool:
        return self.state in MID_FRAME

    @property
    def waits_for_silence(self) -> bool:
        if self.state == "in-block":
            return self._block_in_doubt is not None
        if self.state in DOUBT:
            return self._loss.unreported or not self._outlasts_silence
        return self.state in SILENCE_ENDS

    @property
    def pending(self) -> int:
        return self._buffer.size + self._parts.size

    def leftover(self) -> bytes | None:
        if self._buffer.ended or self._loss.unreported or self.state not in CLEAN:
            return None
        if self.state == "in-block" and self._block_in_doubt is not None:
            return None
        remaining = self._buffer.remaining()
        if self.state != "in-body":
            return remaining  # a block is parsed in the buffer and consumed once it is complete
        part = self._parts.copy()
        return b"Content-Length: %d\r\n\r\n%b%b" % (len(part) + self._body_left, part, remaining)

    def receive_data(self, data: bytes) -> None:
        self._buffer.append(data)

    def end_of_input(self) -> None:
        self._buffer.end()

    def refuse_body(self, failure: ParseFailure) -> None:
        body, self._last_body = self._last_body, None
        if body is None:
            raise RuntimeError("no frame to refuse: next_event has not just returned one")
        self._outlasts_silence = False
        self._begin_doubt(body, failure, self._buffer.offset - len(body))

    def input_fell_silent(self) -> None:
        if not (self._buffer.starved and self.waits_for_silence):
            return
        after: ParserState = self.state if self.state in DOUBT and self._outlasts_silence else "in-step"
        if self._stop_dropping(after):
            self._report_before(after)

    def frame_timed_out(self) -> None:
        if not (self._buffer.starved and self.mid_frame):
            return
        if self.state == "in-block" and self._block_in_doubt is not None:
            self._end_block_in_doubt()
            return
        self._outlasts_silence = True
        if self.state == "in-body":
            partial = self._parts.join(b"")
            self._begin_doubt(partial, ParseFailure("length-mismatch"), self._buffer.offset - len(partial))
            return
        if self.state == "in-block":
            self._loss.begin(InvalidRequest("malformed-header"), self._buffer.offset)
        # The loss of a body that is being skipped began with its block. Its bytes were dropped unread, since lexing them
        # would cost more than parsing. So its end can't be recognised, and only a block may follow.
        self._buffer.discard()
        if self._loss.unreported:
            self._report_before("doubt-whole")
        else:
            self.state = "doubt-whole"

    def _block_due(self) -> Event | None:
        buffer = self._buffer
        if not buffer.skip_to(_no_line_end):
            return NEED_DATA
        if buffer.data[buffer.pos] not in b"{[":
            self._begin_block(None)
            return None
        if self.state == "in-step":
            self._loss.begin(InvalidRequest("missing-content-length"), buffer.offset)
        self._begin_text()
        self.state = "unframed"
        return None

    def _begin_text(self) -> None:
        from .lexer import JsonLexer  # late: only a fault needs it, and start-up must be fast

        self._lexer = JsonLexer()

    def _begin_block(self, in_doubt: ParserState | None) -> None:
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
                self._end_block_in_doubt()
            case reason:  # the block is read once more, for what it declares
                self._loss.begin(InvalidRequest(reason), buffer.offset)
                self._refused = RefusedBlock()
                self.state = "dropping-block"
        return None

    def _begin_body(self, length: int) -> Fault | None:
        """Begin the body of a complete block; returns the fault of the doubt that this block ends, if it is still due."""
        buffer, loss = self._buffer, self._loss
        fault = loss.report(buffer.offset) if loss.unreported else None
        reason = "oversize" if length > self._limits.max_body else self._block.type_fault
        if reason is not None:
            loss.begin(InvalidRequest(reason), buffer.offset)
        buffer.pos += self._block.seen
        self._body_left = length
        self.state = "in-body" if reason is None else "skipping-body"
        return fault

    def _in_body(self) -> Event:
        piece = self._buffer.take(self._body_left)
        self._body_left -= len(piece)
        if self._body_left:
            self._parts.add(piece)
            return NEED_DATA
        self.state = "in-step"
        self._last_body = body = self._parts.join(piece)
        return Frame(body)

    def _skipping_body(self) -> Event:
        if not self._skip_body():
            return NEED_DATA
        self.state = "in-step"
        return self._loss.report(self._buffer.offset)

    def _skip_body(self) -> bool:
        """Skip what has arrived of the body; returns whether that is all of it."""
        skipped = self._buffer.skip(self._body_left)
        self._body_left -= skipped
        self.progress += skipped
        return not self._body_left

    def _dropping_block(self) -> Event | None:
        buffer, refused = self._buffer, self._refused
        end = refused.read(buffer.data, buffer.pos)
        buffer.pos = len(buffer.data) if end is None else end
        if refused.conflicting:
            self._begin_quarantine()
            return None
        if end is None:
            return NEED_DATA
        if refused.length is None:
            self.state = "after-block"
        else:
            self._body_left = refused.length
            self.state = "skipping-refused"
        return self._loss.report(buffer.offset)

    def _skipping_refused(self) -> Event | None:
        """Skip the body of a block whose fault was reported. Its length may be wrong, as its block was."""
        if not self._skip_body():
            return NEED_DATA
        self._outlasts_silence = False
        self.state = "doubt-whole"
        return None

    def _in_text(self) -> Event | None:
        buffer, lexer = self._buffer, self._lexer
        buffer.pos = lexer.feed(buffer.data, buffer.pos)
        if lexer.unfinished:
            return NEED_DATA
        if lexer.phase == "broken":
            self._begin_quarantine()
        elif self.state == "cut-text":
            self.state = "doubt-whole"
        else:
            self.state = "in-step"
            return self._loss.report(buffer.offset) if self._loss.unreported else None
        return None

    def _begin_quarantine(self) -> None:
        self._loss.unreported = True
        self.state = "quarantine"

    def _quarantine(self) -> Event:
        self._buffer.discard()
        return NEED_DATA

    def _begin_doubt(self, text: bytes, failure: ParseFailure, start: int) -> None:
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
            self._lexer.feed(buffer.data[start : buffer.pos])  # if the text goes on, the line ends are part of it
        if not more:
            return NEED_DATA
        self._begin_block(self.state)
        return None

    def _end_block_in_doubt(self) -> None:
        """No valid header block followed the doubtful body. Nothing was consumed."""
        if self._block_in_doubt == "doubt-cut":
            self._outlasts_silence = False
            self.state = "cut-text"
        else:
            self._begin_quarantine()

    def _stop_dropping(self, after: ParserState) -> bool:
        """Discard what is buffered and go on in the state `after`; returns whether a fault is due."""
        due = self._loss.unreported or self.state in {"in-block", "cut-text"}
        self._buffer.discard()
        self.state = after
        return due

    def _at_end(self) -> Fault | EndOfInput:
        here = self._buffer.offset
        if self.state == "in-body":
            self._loss.begin(ParseFailure("length-mismatch"), here - len(self._parts.join(b"")))
        elif self.state == "in-block" and self._block_in_doubt is None:
            self._loss.begin(InvalidRequest("malformed-header"), here)
        return self._loss.report(self._buffer.offset) if self._stop_dropping("in-step") else END_OF_INPUT

    def _report_before(self, after: ParserState) -> None:
        """Make the fault of the loss up to here the next event; `after` is the state after it."""
        self._state_after = after
        self.state = "reporting"

    def _reporting(self) -> Fault:
        self.state = self._state_after
        return self._loss.report(self._buffer.offset)
