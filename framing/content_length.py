"""The parser of `Content-Length` framing. Never reads, never waits, never looks at a clock, never logs.

It keeps the promise of docs/protocol.md, section 1.1: a frame inside another frame's payload is never returned, and after
a fault the next good frame is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final, get_args

from ..errors.failures import InvalidRequest, ParseFailure
from .events import END_OF_INPUT, NEED_DATA, Clock, Event, Fault, Frame, FrameLimits, Framing, Losses, NeedData

if TYPE_CHECKING:
    from .lexer import JsonLexer


# A chunk is used as it was received: frames are sliced out of it, and only an unfinished header block is copied, in front of
# the next chunk. The parser moves the parts of a body that spans chunks to a `BodyBuffer`.

PatternSearch: TypeAlias = "Callable[[bytes, int], re.Match[bytes] | None]"
"""The method `search` of a compiled pattern."""

_PART: Final = 1 << 16


@final
class InputBuffer:
    """`data[pos:]` are the next bytes. Parsers advance `pos`, set `ended` at the end of the input, and `starved` when all input
    was consumed as far as it can be, so that silence is meaningful. The buffer changes everything else.
    """

    __slots__ = ("_base", "data", "ended", "pos", "starved")

    def __init__(self, offset: int) -> None:
        self.data = b""
        self.pos = 0
        self.ended = False
        self.starved = False
        self._base = offset

    def append(self, data: bytes) -> None:
        """Add one chunk. O(1) if nothing is left over. Raises `ValueError` if it is empty, `RuntimeError` after the end."""
        if not data:
            raise ValueError("no bytes: call end_of_input() instead")
        if self.ended:
            raise RuntimeError("bytes after the end of the input")
        self.starved = False
        pos = self.pos
        self._base += pos
        self.data = data if pos == len(self.data) else self.data[pos:] + data
        self.pos = 0

    def take(self, most: int) -> bytes:
        """Consume and return the next bytes, at most `most`; a whole chunk is returned without a copy."""
        taken = self.data[self.pos : self.pos + most]
        self.pos += len(taken)
        return taken

    def skip(self, most: int) -> int:
        """Consume the next bytes, at most `most`; returns how many."""
        skipped = min(most, len(self.data) - self.pos)
        self.pos += skipped
        return skipped

    def skip_to(self, search: PatternSearch) -> bool:
        """Advance to what `search` finds. If it finds nothing, consume all of `data` and return False."""
        found = search(self.data, self.pos)
        self.pos = len(self.data) if found is None else found.start()
        return found is not None

    def discard(self) -> None:
        """Consume all of `data`."""
        self.pos = len(self.data)

    def remaining(self) -> bytes:
        """A copy of everything that is not consumed."""
        return self.data[self.pos :]

    @property
    def offset(self) -> int:
        """The stream offset of the next byte."""
        return self._base + self.pos

    @property
    def size(self) -> int:
        """How many bytes are not consumed."""
        return len(self.data) - self.pos


@final
class BodyBuffer:
    """A body that arrives in pieces: each piece is copied once, and the whole is returned without another copy.

    `add` and `join` raise `MemoryError` where there is no room; then nothing is kept.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self.size = 0
        self._pieces = BytesIO()

    def add(self, piece: bytes) -> None:
        """Add one more piece."""
        try:
            self.size += self._pieces.write(piece)
        except MemoryError:  # a BytesIO loses its content where it can't grow
            self._clear()
            raise

    def copy(self) -> bytes:
        """All pieces so far; they are kept."""
        return self._pieces.getvalue()

    def parts(self) -> Iterator[bytes]:
        """All pieces so far, cut into parts that need little memory; they are kept."""
        with self._pieces.getbuffer() as pieces:
            for start in range(0, self.size, _PART):
                yield bytes(pieces[start : start + _PART])

    def join(self, last: bytes) -> bytes:
        """All pieces and a last one, as one; nothing is kept. A piece that is the only one is returned without a copy."""
        if not self.size:
            return last
        self.add(last)
        whole = self._pieces.getvalue()
        self._clear()
        return whole

    def _clear(self) -> None:
        self._pieces = BytesIO()
        self.size = 0


# Parses one header block in any chunks, and reads past one that is refused. Never looks at a body.
#
# The grammar is RFC 9112, section 5, without its obsolete parts: a field name of token characters, a colon immediately
# after it, a value of visible characters, blanks and bytes from 0x80, CR LF. No folded lines, no bare CR or LF. The first
# byte that the grammar does not allow ends the parsing (docs/protocol.md, section 1.1, rule 2).


LARGEST_LENGTH: Final = 2**63 - 1
"""The largest signed 64-bit integer. No peer means a length beyond it."""

LengthFault: TypeAlias = Literal["missing-content-length", "invalid-content-length", "oversize"]
TypeFault: TypeAlias = Literal["unsupported-content-type", "bad-charset"]
BlockFault: TypeAlias = Literal["malformed-header", "header-too-large"]

LENGTH_FAULTS: Final[frozenset[str]] = frozenset(get_args(LengthFault))
"""The faults of a well-formed block."""

_MEDIA_TYPE: Final = b"application/vscode-jsonrpc"
_CHARSETS: Final = frozenset({b"utf-8", b"utf8"})

_BLANKS: Final = b" \t"  # optional white space, RFC 9110, section 5.6.3

_NAME: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_VALUE: Final = rb"[\t\x20-\x7e\x80-\xff]*"
_line: Final = re.compile(rb"(?:" + _NAME + rb":" + _VALUE + rb")?\r\n").match
_beginning_of_line: Final = re.compile(rb"(?:" + _NAME + rb"(?::" + _VALUE + rb"\r?)?|\r)?").match

_BLANK_LINE: Final = rb"\n\r?\n"
_BLANK_LINE_OVERLAP: Final = 2  # bytes before a chunk with which a blank line may begin

_LONGEST_DECLARATION: Final = 128
"""Bytes of an unfinished line that `RefusedBlock` keeps: more than a squeezed declaration has."""

_DECLARATION: Final = rb"content-length ?: ?([0-9]+) ?[\r\n]"  # in squeezed text

# Blanks and zeros may be many, and mean nothing; so do the digits of a number that is far beyond every length.
_SQUEEZINGS: Final = (
    (rb"[ \t]{2,}|\t", rb" "),
    (rb"(content-length ?: ?)0+(?=[0-9])", rb"\1"),
    (rb"([0-9]{40})[0-9]+", rb"\1"),
)


@final
class HeaderBlock:
    """The parser of one block of at most `limit` bytes.

    `seen` counts the well-formed bytes so far. `type_fault` is the fault of `Content-Type`, if it has one.
    """

    __slots__ = ("_length", "_limit", "_line", "seen", "type_fault")

    def __init__(self, limit: int) -> None:
        self.seen = 0
        self._length: int | LengthFault = "missing-content-length"
        self.type_fault: TypeFault | None = None
        self._limit = limit
        self._line = 0  # where the unfinished line begins

    def read(self, data: bytes, start: int) -> int | LengthFault | BlockFault | None:
        """Go on with the block that starts at `data[start]`; the bytes that `seen` counts must still be there.

        Returns None if it needs more data. Otherwise, once: the body's length in bytes; the first reason why a well-formed
        block has no usable length; or a `BlockFault` at the first byte that is not allowed or exceeds the limit.
        """
        end = min(len(data), start + self._limit)
        while line := _line(data, start + self._line, end):
            self._line = self.seen = line.end() - start
            if len(line[0]) == len(b"\r\n"):
                return self._length
            self._take_field(line[0][:-2])
        begun = _beginning_of_line(data, start + self._line, end)
        self.seen = begun.end() - start if begun else 0
        if start + self.seen < end:
            return "malformed-header"
        return "header-too-large" if self.seen == self._limit else None

    def _take_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        match name.lower():
            case b"content-length":
                self._take_length(value.strip(_BLANKS))
            case b"content-type":
                self.type_fault = self.type_fault or content_type_fault(value.strip(_BLANKS))
            case _:
                pass

    def _take_length(self, value: bytes) -> None:
        if self._length == "missing-content-length":
            self._length = parse_length(value)
        elif isinstance(self._length, int):
            self._length = "invalid-content-length"  # repeated, even if equal (section 1 of docs/protocol.md)


@final
class RefusedBlock:
    """Reads past a block that is refused, up to its blank line, in constant memory. Finds the length that it declares.

    A declaration is `Content-Length`, a colon and digits, up to the end of the line, wherever in the line it begins: a
    log line without its end may stand before it. `length` is the length that was declared, once or several times; None
    if there is none. `conflicting` is true if several lengths were declared.
    """

    __slots__ = ("_rest", "conflicting", "length")

    def __init__(self) -> None:
        self.length: int | None = None
        self.conflicting = False
        self._rest = b""  # the unfinished line, with the line end before it

    def read(self, data: bytes, start: int) -> int | None:
        """Go on with `data[start:]`; returns the position after the blank line, or None if all of `data` was read."""
        rest = self._rest
        overlap = rest[-_BLANK_LINE_OVERLAP:]
        if found := re.search(_BLANK_LINE, overlap + data[start : start + _BLANK_LINE_OVERLAP]):
            end = start + found.end() - len(overlap)
        else:
            found = re.compile(_BLANK_LINE).search(data, start)
            end = len(data) if found is None else found.end()
        text = rest + data[start:end].lower()
        if b"content-length" in text:
            for pattern, by in _SQUEEZINGS:
                text = re.sub(pattern, by, text)
            for declaration in re.finditer(_DECLARATION, text):
                self._take(parse_length(declaration[1]))
        self._rest = text[max(0, text.rfind(b"\n"), len(text) - _LONGEST_DECLARATION) :]
        return None if found is None else end

    def _take(self, length: int | LengthFault) -> None:
        if isinstance(length, int):
            self.conflicting = self.conflicting or self.length not in (None, length)
            self.length = length


def parse_length(value: bytes) -> int | Literal["invalid-content-length", "oversize"]:
    """The length in bytes that a trimmed `Content-Length` value declares: ASCII digits only, leading zeros allowed.

    A number beyond `LARGEST_LENGTH` is "oversize", however many digits it has.
    """
    if not value.isdigit():
        return "invalid-content-length"
    significant = value.lstrip(b"0")
    if len(significant) > 19:  # before int(), which is slow for many digits and refuses very many
        return "oversize"
    length = int(significant or b"0")
    return length if length <= LARGEST_LENGTH else "oversize"


def content_type_fault(value: bytes) -> TypeFault | None:
    """The fault of a trimmed `Content-Type` value; None for `application/vscode-jsonrpc` in UTF-8.

    Case does not matter. `charset` may be bare or quoted. Unknown parameters are ignored.
    """
    media_type, *parameters = (each.strip(_BLANKS) for each in _pieces(value.lower()))
    if media_type != _MEDIA_TYPE:
        return "unsupported-content-type"
    for parameter in parameters:
        name, _, charset = parameter.partition(b"=")
        if name == b"charset" and _unquoted(charset) not in _CHARSETS:
            return "bad-charset"
    return None


def _pieces(value: bytes) -> list[bytes]:
    """Return the texts between the semicolons that are not quoted (RFC 9110, section 5.6.4)."""
    return re.findall(rb'(?:^|;)((?:[^";]|"(?:[^"\\]|\\.)*+"|")*+)', value)


def _unquoted(value: bytes) -> bytes:
    return value[1:-1] if len(value) > 1 and value[:1] == value[-1:] == b'"' else value


# The states of the `Content-Length` parser, and the transitions between them (docs/protocol.md, section 1.1).
#
#     in-step         a block is due. `{` or `[`: unframed. Any other byte: in-block.
#     after-block     the same after a loss that may go on. A further faulty block or unframed text is part of it.
#     after-text      the same, but what follows after a short silence is a loss of its own: it leads to in-step.
#     in-block        usable length: in-body or skipping-body. Any other: dropping-block. But in doubt: cut-text or quarantine,
#                     unless the block is well-formed and can't be the rest of the body.
#     in-body         last byte: frame, in-step. If the caller refuses the body: one of the doubts.
#     skipping-body   last byte of a body that is too large, or of another type: in-step.
#     dropping-block  blank line: after-block, or skipping-refused if the block declares a length. It declares two different
#                     lengths: quarantine.
#     skipping-refused  last byte of the body of a block that was refused: doubt-whole.
#     unframed        end of the text: after-text. It turns out to be no JSON: quarantine.
#     doubt-whole     after a body that was no JSON and was not cut short: only a block may follow, as in-block.
#     doubt-cut       after a body that was the beginning of a JSON text: a block may follow, or else the text goes on.
#     cut-text        end of the text: doubt-whole. It turns out to be no JSON: quarantine.
#     quarantine      only silence or the end of input ends it.
#     reporting       faults are due and come next; then the state that was remembered.
#
# Line ends before a block are skipped.
#
# A loss is open from its first byte until the stream is known to be in step: until the next well-formed block, or the last
# byte of a skipped body. Whatever else is dropped before that is part of it. Its fault is reported when the next message is
# sure to be read, so that who reads the error may send at once (rule 9): in-step, before the frame that follows it, or after
# silence. A short silence is enough where a frame is due anyway (READY). A long one ends every other dropping, and a block
# that began while a loss was open, and leads to in-step (rule 8).
#
# The frame time-out leads from in-block and the skipping of a body to doubt-whole, and from in-body to one of the doubts. Silence
# caused the time-out, so silence alone does not end such a doubt, or the late rest of the frame would be read as a new one: the
# doubt outlasts silence until more bytes arrive. The end of input ends everything, and leads to in-step, where it stays.


ParserState: TypeAlias = Literal[
    "in-step",
    "after-block",
    "after-text",
    "in-block",
    "in-body",
    "skipping-body",
    "dropping-block",
    "skipping-refused",
    "unframed",
    "doubt-whole",
    "doubt-cut",
    "cut-text",
    "quarantine",
    "reporting",
]

MID_FRAME: Final[frozenset[ParserState]] = frozenset({"in-block", "in-body", "skipping-body", "skipping-refused"})
"""The frame time-out runs, but not in a block that began while a loss was open. A declared length is final, so silence changes
nothing (rule 1)."""

CLEAN: Final[frozenset[ParserState]] = frozenset({"in-step", "in-block", "in-body"})
"""No fault: the bytes of the current frame describe the whole state."""

READY: Final[frozenset[ParserState]] = frozenset({"after-block", "after-text", "doubt-whole"})
"""A frame is due although a loss may be open. A short silence makes its fault due."""

DOUBT: Final[frozenset[ParserState]] = frozenset({"doubt-whole", "doubt-cut"})

SILENCE_ENDS: Final[frozenset[ParserState]] = frozenset(
    {"after-block", "dropping-block", "unframed", "cut-text", "quarantine"}
)
"""A long silence leads to in-step (rule 8). It also ends a doubt, and a block that began in one, see above."""


# The block that nearly every peer sends, in one match. 18 digits fit a 64-bit integer. Other blocks take the slow path.
_common_block: Final = re.compile(rb"Content-Length: ?([0-9]{1,18})\r\n\r\n").match
_no_line_end: Final = re.compile(rb"[^\r\n]").search

_LOST_AGAIN: Final[frozenset[ParserState]] = frozenset({"in-block", "cut-text"})
"""What is dropped here is a loss, also where that of the doubt before it was reported."""


@final
class ContentLengthParser:
    """Implements `Parser`. `state` is for diagnosis and tests. `offset` is the stream offset of the first byte.

    If `refused` is given, the stream goes on with a block that was refused, of which this was read.
    """

    _lexer: JsonLexer  # in the states "unframed", "cut-text" and in doubt

    def __init__(self, limits: FrameLimits, *, offset: int = 0, refused: RefusedBlock | None = None) -> None:
        self.framing: Final[Framing] = "content-length"
        self.state: ParserState = "in-step"
        self.progress = 0
        self._limits = limits
        self._buffer = InputBuffer(offset)
        self._losses = Losses()
        self._block = HeaderBlock(limits.max_header)
        self._refused = refused or RefusedBlock()
        self._block_after: ParserState | None = (
            None  # the state in which `_block` began, if that was a doubt or a loss was open
        )
        self._outlasts_silence = False  # the doubt follows a time-out, and no byte has arrived since
        self._body_was_read = False  # the doubt is about a whole body, not about one that was late or skipped unread
        self._body_left = 0  # bytes of the body that have not arrived yet
        self._parts = BodyBuffer()  # for a body that spans chunks
        self._last_body: bytes | None = None  # the body that `refuse_body` would refuse
        self._state_after: ParserState = "in-step"  # the state after "reporting"
        if refused is not None:
            self._losses.begin(InvalidRequest("malformed-header"), offset)
            self.state = "dropping-block"
        self._steps: dict[ParserState, Callable[[], Event | None]] = {
            "in-step": self._block_due,
            "after-block": self._block_due,
            "after-text": self._block_due,
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
                    self.progress += 1
                    self._last_body = body = data[start:end]
                    return Frame(body)
            elif buffer.pos == len(data) and not buffer.ended:
                self._last_body = None
                return NEED_DATA
        return self._next_event_slowly()

    def _next_event_slowly(self) -> Event:
        self._last_body = None
        while True:
            event = self._steps[self.state]()
            if event is NEED_DATA:
                if not self._buffer.ended:
                    self._buffer.starved = True
                    return NEED_DATA
                if not self._end():
                    return END_OF_INPUT
            elif event is not None:
                return event

    @property
    def clock(self) -> Clock | None:
        state = self.state
        if state == "in-step":
            return None
        if state in MID_FRAME:
            return "long" if state == "in-block" and self._block_after is not None else "frame"
        if state in READY and self._losses.due:
            return "short"
        if state in DOUBT:
            return "long" if self._losses.due or not self._outlasts_silence else None
        return "long" if state in SILENCE_ENDS else None

    @property
    def pending(self) -> int:
        return self._buffer.size + self._parts.size

    def leftover(self) -> bytes | None:
        if self._buffer.ended or self._losses.due or self.state not in CLEAN:
            return None
        if self.state == "in-block" and self._block_after is not None:
            return None
        remaining = self._buffer.remaining()
        if self.state != "in-body":
            return remaining  # a block is parsed in the buffer and consumed once it is complete
        part = self._parts.copy()
        return b"Content-Length: %d\r\n\r\n%b%b" % (len(part) + self._body_left, part, remaining)

    def receive_data(self, data: bytes) -> None:
        self._buffer.append(data)

    def end_of_input(self) -> None:
        self._buffer.ended = True

    def refuse_body(self, failure: InvalidRequest | ParseFailure) -> None:
        body, self._last_body = self._last_body, None
        if body is None:
            raise RuntimeError("no frame to refuse: next_event has not just returned one")
        self._outlasts_silence = False
        self._body_was_read = True
        self._begin_doubt(body, failure, self._buffer.offset - len(body))

    def clock_expired(self) -> None:
        clock = self.clock
        if clock is None or not self._buffer.starved:
            return
        if clock == "frame":
            self._time_out()
        else:
            self._fall_silent(clock)

    def _fall_silent(self, silence: Clock) -> None:
        after: ParserState = "in-step"
        if silence == "long" and not (self.state in DOUBT and self._outlasts_silence):
            self._stop_dropping(after)
        elif self.state != "after-text":
            after = self.state
        if self._losses.due:
            self._report_before(after)

    def _time_out(self) -> None:
        self._outlasts_silence = True
        self._body_was_read = False
        if self.state == "in-body":
            partial = self._parts.join(b"")
            self._begin_doubt(partial, ParseFailure("length-mismatch"), self._buffer.offset - len(partial))
            return
        if self.state == "in-block":
            self._losses.begin(InvalidRequest("malformed-header"), self._buffer.offset)
        # The loss of a body that is being skipped began with its block. Its bytes were dropped unread, since lexing them
        # would cost more than parsing. So its end can't be recognised, and only a block may follow.
        self._buffer.discard()
        self.state = "doubt-whole"

    def _block_due(self) -> NeedData | None:
        buffer = self._buffer
        if not buffer.skip_to(_no_line_end):
            return NEED_DATA
        if buffer.data[buffer.pos] not in b"{[":
            self._begin_block(self.state if self._losses.open else None)
            return None
        if self.state == "in-step":
            self._losses.begin(InvalidRequest("missing-content-length"), buffer.offset)
        self._begin_text()
        self.state = "unframed"
        return None

    def _begin_text(self) -> None:
        from .lexer import JsonLexer  # late: only a fault needs it, and start-up must be fast

        self._lexer = JsonLexer()

    def _begin_block(self, after: ParserState | None) -> None:
        self._block = HeaderBlock(self._limits.max_header)
        self._block_after = after
        self.state = "in-block"

    def _in_block(self) -> NeedData | None:
        buffer, block = self._buffer, self._block
        match block.read(buffer.data, buffer.pos):
            case None:
                return NEED_DATA
            case int() as length:
                self._begin_body(length)
            case reason if self._block_after in DOUBT and not (reason in LENGTH_FAULTS and self._is_in_step()):
                self._end_block_in_doubt()
            case reason:  # the block is read once more, for what it declares
                if self._block_after in DOUBT or not self._losses.open:
                    self._losses.begin(InvalidRequest(reason), buffer.offset)
                self._refused = RefusedBlock()
                self.state = "dropping-block"
        return None

    def _is_in_step(self) -> bool:
        """Whether a well-formed block without a usable length proves the length of the body before it (rule 6).

        Not if it may be the rest of that body: its late tail, or the rest of a text that was cut short, `a: 1"}`.
        """
        if not self._body_was_read or self._block_after == "doubt-whole":
            return self._body_was_read
        lexer, start = self._lexer.copy(), self._buffer.pos
        if lexer.in_string:
            return False
        lexer.feed(self._buffer.data[start : start + self._block.seen])
        return lexer.phase == "broken"

    def _begin_body(self, length: int) -> None:
        """Begin the body of a complete block, which ends the loss before it."""
        buffer, losses = self._buffer, self._losses
        losses.end(buffer.offset)
        reason = "oversize" if length > self._limits.max_body else self._block.type_fault
        if reason is not None:
            losses.begin(InvalidRequest(reason), buffer.offset)
        buffer.pos += self._block.seen
        self._body_left = length
        self.state = "in-body" if reason is None else "skipping-body"

    def _in_body(self) -> Frame | NeedData | None:
        if self._losses.due and self._body_left <= self._buffer.size:
            self._report_before("in-body")
            return None
        began = self._buffer.offset - self._parts.size
        piece = self._buffer.take(self._body_left)
        self._body_left -= len(piece)
        try:
            if self._body_left:
                self._parts.add(piece)
                return NEED_DATA
            self._last_body = body = self._parts.join(piece)
        except MemoryError:
            self._drop_body(began)
            return None
        self.state = "in-step"
        self.progress += 1
        return Frame(body)

    def _drop_body(self, began: int) -> None:
        """There is no memory for the body that began at this offset: refuse it as one that is too large."""
        self._losses.begin(InvalidRequest("oversize"), began)
        self.state = "skipping-body"

    def _skipping_body(self) -> NeedData | None:
        if not self._skip_body():
            return NEED_DATA
        self._report_before("in-step")
        return None

    def _skip_body(self) -> bool:
        """Skip what has arrived of the body; returns whether that is all of it."""
        skipped = self._buffer.skip(self._body_left)
        self._body_left -= skipped
        self.progress += skipped
        return not self._body_left

    def _dropping_block(self) -> NeedData | None:
        buffer, refused = self._buffer, self._refused
        end = refused.read(buffer.data, buffer.pos)
        buffer.pos = len(buffer.data) if end is None else end
        if refused.conflicting:
            self._begin_quarantine()
        elif end is None:
            return NEED_DATA
        elif refused.length is None:
            self.state = "after-block"
        else:
            self._body_left = refused.length
            self.state = "skipping-refused"
        return None

    def _skipping_refused(self) -> NeedData | None:
        """Skip the body of a block that was refused. Its length may be wrong, as its block was."""
        if not self._skip_body():
            return NEED_DATA
        self._outlasts_silence = self._body_was_read = False
        self.state = "doubt-whole"
        return None

    def _in_text(self) -> NeedData | None:
        buffer, lexer = self._buffer, self._lexer
        buffer.pos = lexer.feed(buffer.data, buffer.pos)
        if lexer.unfinished:
            return NEED_DATA
        if lexer.phase == "broken":
            self._begin_quarantine()
        elif self.state == "cut-text":
            self.state = "doubt-whole"
        else:
            self.state = "after-text" if self._losses.open else "in-step"
        return None

    def _begin_quarantine(self) -> None:
        if not self._losses.open:
            self._losses.resume()
        self.state = "quarantine"

    def _quarantine(self) -> NeedData:
        self._buffer.discard()
        return NEED_DATA

    def _begin_doubt(self, text: bytes, failure: InvalidRequest | ParseFailure, start: int) -> None:
        self._losses.begin(failure, start)
        self._begin_text()
        self._lexer.feed(text)
        self.state = "doubt-cut" if self._lexer.unfinished else "doubt-whole"

    def _in_doubt(self) -> NeedData | None:
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
        """No well-formed header block followed the doubtful body. Nothing was consumed."""
        if self._block_after == "doubt-cut":
            self._outlasts_silence = False
            self.state = "cut-text"
        else:
            self._begin_quarantine()

    def _stop_dropping(self, after: ParserState) -> None:
        """Discard what is buffered, which is lost too, and go on in the state `after`."""
        if self.state in _LOST_AGAIN and not self._losses.due:
            self._losses.resume()
        self._buffer.discard()
        self.state = after

    def _end(self) -> bool:
        """The input has ended; returns whether faults are due."""
        here = self._buffer.offset
        if self.state == "in-body":
            self._losses.begin(ParseFailure("length-mismatch"), here - len(self._parts.join(b"")))
        elif self.state == "in-block" and self._block_after is None:
            self._losses.begin(InvalidRequest("malformed-header"), here)
        self._stop_dropping("in-step")
        if self._losses.due:
            self._report_before("in-step")
        return self._losses.due

    def _report_before(self, after: ParserState) -> None:
        """Make the faults up to here the next events; `after` is the state after them."""
        self._losses.end(self._buffer.offset)
        self._state_after = after
        self.state = "reporting"

    def _reporting(self) -> Fault:
        fault = self._losses.report(self._buffer.offset)
        if not self._losses.due:
            self.state = self._state_after
        return fault
