"""Reads what clients of HTTP read alike: event streams and the header `Retry-After`. Never reads a socket, waits or logs.

An event of a `text/event-stream` (WHATWG HTML, section 9.2) takes about twice its bytes while it is made, and once afterwards,
into however many lines it is divided.
"""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

MAX_ID_LENGTH: Final = 1024
"""Bytes of an id. It is sent back in a header."""

MAX_TYPE_LENGTH: Final = 1024
"""Bytes of the type of an event. A longer one is ignored."""

_BOM: Final = b"\xef\xbb\xbf"

_IN_HEADER: Final = re.compile(rb"[ -~]*").fullmatch
"""Ids that can be sent back. Other ids are ignored: one goes on from the last that can be."""


class TooLarge(Exception):
    """An event, or a line, is larger than the limit."""


class SseEvent(msgspec.Struct, frozen=True):
    """`id` is that of this event or of the last one before it that had one; None where none had. `type` is the field `event`,
    `retry_ms` the field `retry`. `has_own_id` is whether the id is this event's."""

    data: bytes
    id: str | None = None
    type: str | None = None
    retry_ms: int | None = None
    has_own_id: bool = False


@final
class SseParser:
    """`retry_seconds` is what the server asks to wait before a reconnection, None where it does not say."""

    def __init__(self, *, limit: int) -> None:
        self.retry_seconds: float | None = None
        self._limit = limit
        self._line = bytearray()  # one whose end has not come
        self._data: bytes | bytearray | None = None
        self._data_size = self._line_size = 0  # as many bytes came for them
        self._id: str | None = None
        self._type: str | None = None
        self._retry_ms: int | None = None
        self._has_own_id = False
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
            self._skip_lf = piece.endswith(b"\r")
            line = piece.rstrip(b"\r\n")
            if len(line) == len(piece):
                self._line += line
                break  # only the last one has no end
            if self._line:
                self._line += line
                line = bytes(self._line)
                self._line.clear()
            event = self._end_line(line)
            if event is not None:
                events.append(event)
        return events

    def _end_line(self, line: bytes) -> SseEvent | None:
        size, self._line_size = self._line_size, 0
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        if not line:
            return self._dispatch()
        name, value = _field(line)
        match name:
            case b"data":
                self._add_data(value)
                self._data_size += size
            case b"id" if len(value) <= MAX_ID_LENGTH and _IN_HEADER(value):
                self._id = value.decode()
                self._has_own_id = True
            case b"event" if len(value) <= MAX_TYPE_LENGTH:
                self._type = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) <= len("999999999"):
                self._retry_ms = int(value)
                self.retry_seconds = self._retry_ms / 1000
            case _:  # a comment, a field without a meaning here, or an unknown one
                pass
        return None

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
            return
        if isinstance(self._data, bytes):
            self._data = bytearray(self._data)
        self._data += b"\n"
        self._data += value

    def _dispatch(self) -> SseEvent | None:
        data, self._data, self._data_size = self._data, None, 0
        event = None if data is None else SseEvent(bytes(data), self._id, self._type, self._retry_ms, self._has_own_id)
        self._type, self._retry_ms, self._has_own_id = None, None, False
        return event


def _field(line: bytes) -> tuple[bytes, bytes]:
    """The name and the value of a line. No more than these is copied, since a line may be large."""
    colon = line.find(b":")
    if colon < 0:
        return line, b""
    return line[:colon], line[colon + 2 :] if line.startswith(b" ", colon + 1) else line[colon + 1 :]


_LONGEST_SECONDS: Final = len("999999999")


def retry_after_seconds(text: str) -> float | None:
    """The header's seconds, or the seconds until its date; None for what is neither. Never below 0."""
    from email.utils import parsedate_to_datetime  # late: seldom needed
    from time import time

    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(text[:_LONGEST_SECONDS])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    except (ValueError, OverflowError):
        return None


_PROBE_SECONDS: Final = 30
_LOST_PROBES: Final = 4
"""An end that vanished without a word is noticed after about two minutes, also by a stream that only listens."""


def keep_alive_options() -> list[tuple[int, int, int]]:
    """The options by which the system itself asks now and then whether the other end is there, as `setsockopt` takes them."""
    import socket  # late: 1.5 ms

    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_SECONDS),  # Linux, Windows
        ("TCP_KEEPALIVE", _PROBE_SECONDS),  # macOS
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _LOST_PROBES),
    ):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options
