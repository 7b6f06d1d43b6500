"""Turns bytes into frames and faults: one interface for both framings. Never reads, never waits, has no clock.

Pass in what happened (`receive_data`, `end_of_input`, `clock_expired`), then call `next_event` until it returns `NEED_DATA`.
Then `clock` tells which clock must run.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias, assert_never

from ..errors.failures import InvalidRequest, ParseFailure
from .content_length import ContentLengthParser
from .events import DEFAULT_LIMITS, Clock, Event, FrameLimits, Framing

FramingChoice: TypeAlias = Literal["content-length", "newline", "auto"]


class Parser(Protocol):
    """Turns one stream of bytes into frames and faults; they do not depend on how the stream is cut into chunks.

    No input makes a method raise. If `next_event` is called up to `NEED_DATA` after every chunk, time is linear in the input,
    and memory stays below `max_body` + `max_header` + one chunk.
    """

    @property
    def framing(self) -> Framing | None:
        """The framing of the stream; None until the first byte that decides it."""
        ...

    @property
    def clock(self) -> Clock | None:
        """The clock that runs: `frame` while a frame has begun and not ended; a silence where it would change something, because
        bytes are being dropped, a body is in doubt, or a fault is due.
        """
        ...

    @property
    def progress(self) -> int:
        """Changes with every frame, and with the bytes of oversize bodies that are discarded: the frame time-out then starts
        anew."""
        ...

    @property
    def pending(self) -> int:
        """Bytes that are buffered."""
        ...

    def leftover(self) -> bytes | None:
        """Bytes that bring a new parser into this parser's state. Changes nothing.

        None if no bytes can: something is being dropped or in doubt, a fault is due, or the input has ended.
        """
        ...

    def receive_data(self, data: bytes) -> None:
        """Add one chunk; O(len) amortised. `next_event` does the parsing.

        Raises `ValueError` if it is empty and `RuntimeError` after `end_of_input`.
        """
        ...

    def end_of_input(self) -> None:
        """The input has ended. An unfinished frame becomes a fault; `END_OF_INPUT` follows the last event."""
        ...

    def next_event(self) -> Event:
        """The next frame or fault in the order of the stream, or `NEED_DATA`, or `END_OF_INPUT`.

        A fault is returned when the next message is sure to be read (docs/protocol.md, section 1.1, rule 9).
        """
        ...

    def refuse_body(self, failure: InvalidRequest | ParseFailure) -> None:
        """Report that the frame of the last `next_event` call is no JSON object or array.

        `next_event` returns the fault when it is due, which may be much later (docs/protocol.md, section 1.1, rules 6 and
        9). Raises `RuntimeError` if the last call returned no frame.
        """
        ...

    def clock_expired(self) -> None:
        """The time of `clock` has passed: a partial frame is dropped, or what awaits silence ends. Ignored before `NEED_DATA`."""
        ...


def parser_for(framing: FramingChoice, limits: FrameLimits = DEFAULT_LIMITS) -> Parser:
    """A new parser for the start of a stream."""
    match framing:
        case "content-length":
            return ContentLengthParser(limits)
        case "newline":
            from .newline import NewlineParser  # late, as below: usually not needed

            return NewlineParser(limits)
        case "auto":
            from .newline import AutoParser

            return AutoParser(limits)
        case _:
            assert_never(framing)
