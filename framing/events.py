"""The limits of a parser and the events that it returns: frames, faults, "need data", "end of input". Values only."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

import msgspec

from ..errors.failures import InvalidRequest, ParseFailure

# Keeps the losses of a parser until they may be reported: one fault for each. Never drops anything itself.


@final
class Losses:
    """The losses that are not reported, in the order of the stream.

    While the last one is `open`, what is dropped next belongs to it. `due` is true while there is any.
    """

    __slots__ = ("_ended", "_failure", "_start", "due", "open")

    def __init__(self) -> None:
        self._failure: InvalidRequest | ParseFailure = InvalidRequest("malformed-header")
        self._start = 0
        self._ended: list[Fault] = []
        self.open = self.due = False

    def begin(self, failure: InvalidRequest | ParseFailure, start: int) -> None:
        """A new loss begins at this offset of the stream; one that is open ends there."""
        self.end(start)
        self._failure = failure
        self._start = start
        self.open = self.due = True

    def resume(self) -> None:
        """More is lost for the reason of the last loss, which was reported: a further loss, where that one ended."""
        self.open = self.due = True

    def end(self, end: int) -> None:
        """The open loss, if there is one, ends at this offset."""
        if self.open:
            self._ended.append(Fault(self._failure, end - self._start, self._start))
            self._start = end
            self.open = False

    def report(self, end: int) -> Fault:
        """Take the first fault that is due. An open loss ends at `end`."""
        self.end(end)
        fault = self._ended.pop(0)
        self.due = bool(self._ended)
        return fault


Framing: TypeAlias = Literal["content-length", "newline"]

Clock: TypeAlias = Literal["frame", "short", "long"]
"""A wait of a parser: for the frame time-out, or for a silence of the input. The channel has their seconds."""

MIN_HEADER_LIMIT: Final = 64
"""Bytes. A block of one `Content-Length` line with 18 digits must fit: `content_length` reads it without checking."""


class FrameLimits(msgspec.Struct, frozen=True):
    """The largest body (or line) and the largest header block, with its line ends, in bytes.

    Raises `ValueError` for a `max_body` below 1 or a `max_header` below 64.
    """

    max_body: int = 10 * 1024 * 1024
    max_header: int = 8192

    def __post_init__(self) -> None:
        if self.max_body < 1 or self.max_header < MIN_HEADER_LIMIT:
            raise ValueError(f"max_body must be at least 1, max_header at least {MIN_HEADER_LIMIT}")


DEFAULT_LIMITS: Final = FrameLimits()


class Frame(msgspec.Struct, gc=False):
    """One body: exactly the declared bytes, or one line without its line end and the white space around it.

    The parser has not looked into it. If it is no JSON text, call the parser's `refuse_body`.
    """

    body: bytes


class Fault(msgspec.Struct, frozen=True):
    """One loss: `size` bytes were dropped, from `offset` on, which counts from the start of the stream.

    A `ParseFailure` begins at the first byte of the body or line, an `InvalidRequest` at the first byte of the header block
    or of the unframed text. If more is dropped after it was reported, a further fault begins where this one ends. Two
    things may then be dropped without a fault: the text after a faulty block, and the late rest of a body.
    """

    failure: ParseFailure | InvalidRequest
    size: int
    offset: int


@final
class NeedData:
    """The type of `NEED_DATA`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NEED_DATA"


@final
class EndOfInput:
    """The type of `END_OF_INPUT`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "END_OF_INPUT"


NEED_DATA: Final = NeedData()
"""Everything received is consumed. Only more bytes, silence, a time-out or the end of input can change anything."""

END_OF_INPUT: Final = EndOfInput()
"""The input has ended, and every frame and fault was returned. Every later call returns this again."""

Event: TypeAlias = Frame | Fault | NeedData | EndOfInput
