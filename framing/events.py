"""What a parser is told and what it answers: limits, frames, faults, and the two moments without either.

Values only; nothing here reads or decides.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

import msgspec

from ..errors.failures import InvalidRequest, ParseFailure

Framing: TypeAlias = Literal["content-length", "newline"]

SMALLEST_HEADER_LIMIT: Final = 64
"""Bytes. A block of one `Content-Length` line with 18 digits must fit, see `content_length`."""


class FrameLimits(msgspec.Struct, frozen=True):
    """How much a peer may send at once, in bytes: a body or a line, and a header block with its line ends.

    Raises `ValueError` for a `max_body` below 1 or a `max_header` below 64.
    """

    max_body: int = 10 * 1024 * 1024
    max_header: int = 8192

    def __post_init__(self) -> None:
        if self.max_body < 1 or self.max_header < SMALLEST_HEADER_LIMIT:
            raise ValueError(f"max_body must be at least 1, max_header at least {SMALLEST_HEADER_LIMIT}")


DEFAULT_LIMITS: Final = FrameLimits()


class Frame(msgspec.Struct, gc=False):
    """One body: exactly the declared bytes, or one line without its line end and the white space around it.

    Nobody has looked into it: whoever finds that it is no JSON text tells the parser with `refuse_body`.
    """

    body: bytes


class Fault(msgspec.Struct, frozen=True):
    """One loss: the `size` bytes from `offset` on, counted from the start of the stream, were dropped.

    A `ParseFailure` counts from the first byte of the body or line, an `InvalidRequest` from that of the header block, or
    of the text where a block was due. If still more is dropped for the same reason, a further fault begins where this one
    ends; only the text behind a faulty block and the late rest of a reported body are skipped without a word.
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
"""Everything received has been worked off; only more bytes, a rest, a time-out or the end can change anything."""

END_OF_INPUT: Final = EndOfInput()
"""The input has ended and every frame and fault has been read. Every later call says so again."""

Event: TypeAlias = Frame | Fault | NeedData | EndOfInput
