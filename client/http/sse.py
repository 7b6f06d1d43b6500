"""Turns the bytes of a `text/event-stream` into events (WHATWG HTML, section 9.2). Never reads, never waits, never logs."""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

MAX_ID_LENGTH: Final = 1024
"""Bytes of an id. It is sent back in a header."""

_BOM: Final = b"\xef\xbb\xbf"

_IN_HEADER: Final = re.compile(rb"[ -~]*").fullmatch
"""What can be sent back. Other ids are ignored: one goes on from the last that can be."""


class TooLarge(Exception):
    """An event, or a line, is larger than the limit."""


class SseEvent(msgspec.Struct, frozen=True):
    """`id` is that of this event or of the last one before it that had one; None where none had."""

    data: bytes
    id: str | None = None


@final
class SseParser:
    """`retry_seconds` is what the server asks to wait before a reconnection, None where it does not say."""

    def __init__(self, *, limit: int) -> None:
        self.retry_seconds: float | None = None
        self._limit = limit
        self._line: list[bytes] = []  # the pieces of a line whose end has not come
        self._data: list[bytes] = []
        self._data_size = self._line_size = 0
        self._id: str | None = None
        self._skip_lf = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that are whole with these bytes. Raises `TooLarge`; then nothing more can be parsed."""
        if self._skip_lf and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_lf = False
        events: list[SseEvent] = []
        for piece in chunk.splitlines(keepends=True):
            self._line_size += len(piece)
            if self._data_size + self._line_size > self._limit:
                raise TooLarge
            line = piece.rstrip(b"\r\n")
            self._line.append(line)
            if len(line) == len(piece):
                break  # only the last one has no end
            self._skip_lf = piece.endswith(b"\r")
            event = self._end_line()
            if event is not None:
                events.append(event)
        return events

    def _end_line(self) -> SseEvent | None:
        line, size = b"".join(self._line), self._line_size
        self._line.clear()
        self._line_size = 0
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._data_size += size
            case b"id" if len(value) <= MAX_ID_LENGTH and _IN_HEADER(value):
                self._id = value.decode()
            case b"retry" if value.isdigit() and len(value) <= len("999999999"):
                self.retry_seconds = int(value) / 1000
            case _:  # a comment, a field without a meaning here, or an unknown one
                pass
        return None

    def _dispatch(self) -> SseEvent | None:
        data = b"\n".join(self._data)
        had_data = bool(self._data)
        self._data.clear()
        self._data_size = 0
        return SseEvent(data, self._id) if had_data else None
