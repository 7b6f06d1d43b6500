"""Bytes in, frames and faults out: one interface for both framings.

A parser has no clock and no descriptor. Whoever drives it says what happened, then reads `next_event` until it answers
`NEED_DATA`, then looks at `mid_frame` and `wants_rest` to see which silence would mean something.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, assert_never

from ..errors.failures import ParseFailure
from .content_length import ContentLengthParser
from .events import (
    DEFAULT_LIMITS,
    END_OF_INPUT,
    NEED_DATA,
    EndOfInput,
    Event,
    Fault,
    Frame,
    FrameLimits,
    Framing,
    NeedData,
)

__all__ = [
    "DEFAULT_LIMITS",
    "END_OF_INPUT",
    "NEED_DATA",
    "EndOfInput",
    "Event",
    "Fault",
    "Frame",
    "FrameLimits",
    "Framing",
    "FramingChoice",
    "NeedData",
    "Parser",
    "parser_for",
]

FramingChoice: TypeAlias = Literal["content-length", "newline", "auto"]


class Parser(Protocol):
    """Turns one stream of bytes into frames and faults; any chunking of the stream gives the same ones.

    Nothing that the bytes hold makes a method raise. Time is linear in what is received. Memory stays below `max_body` +
    `max_header` + a chunk while `next_event` is read up to `NEED_DATA` before the next chunk comes.
    """

    @property
    def framing(self) -> Framing | None:
        """What the peer speaks; None while the first byte that decides has not come."""
        ...

    @property
    def mid_frame(self) -> bool:
        """True while a frame has begun and not ended: the frame deadline runs."""
        ...

    @property
    def progress(self) -> int:
        """Bytes of oversize bodies that were discarded so far. When it changes, the frame deadline starts anew."""
        ...

    @property
    def wants_rest(self) -> bool:
        """True while silence would change something: bytes are being dropped, or a doubt waits to be resolved."""
        ...

    @property
    def pending(self) -> int:
        """Bytes that are held."""
        ...

    def leftover(self) -> bytes | None:
        """Bytes that put a new parser where this one stands, to be fed before what comes next. Changes nothing.

        None while no bytes could: something is being dropped or in doubt, a fault waits to be read, the input has ended.
        """
        ...

    def receive_data(self, data: bytes) -> None:
        """Take in one chunk; O(len) amortised, nothing is parsed yet.

        Raises `ValueError` if it is empty and `RuntimeError` after `end_of_input`.
        """
        ...

    def end_of_input(self) -> None:
        """Nothing more will come. What is unfinished becomes a fault; `END_OF_INPUT` follows the last event."""
        ...

    def next_event(self) -> Event:
        """The next frame or fault in the order of the stream, or why there is none."""
        ...

    def refuse_body(self, failure: ParseFailure) -> None:
        """The frame that `next_event` returned last, just now, holds no JSON text.

        The fault comes out of `next_event` when it is due, which may be much later (section 1.1, rules 6 and 9). Raises
        `RuntimeError` when there is no such frame.
        """
        ...

    def frame_timed_out(self) -> None:
        """The frame deadline has passed: drop what has come of the frame. Ignored unless `mid_frame` and `NEED_DATA`."""
        ...

    def input_rested(self) -> None:
        """The input was polled and silent for 250 ms. Ignored unless `wants_rest` and `NEED_DATA`."""
        ...


def parser_for(framing: FramingChoice, limits: FrameLimits = DEFAULT_LIMITS) -> Parser:
    """A new parser at the start of a stream."""
    match framing:
        case "content-length":
            return ContentLengthParser(limits)
        case "newline":
            from .newline import NewlineParser  # late, as below: the usual start does without

            return NewlineParser(limits)
        case "auto":
            from .auto import AutoParser

            return AutoParser(limits)
        case _:
            assert_never(framing)
