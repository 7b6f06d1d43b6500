"""Reads a child's stderr all the time, so that a child that writes much to it never blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias, final

from ..framing.transports.interface import ByteTransport

StderrChoice: TypeAlias = Literal["inherit", "collect"]

StderrMode: TypeAlias = StderrChoice | Callable[[str], object]
"""What happens to a child's stderr: it is this process's own, its end is kept in memory, or a callback gets each line.

The callback gets lines without their line ends and must return at once. An exception of the callback ends the connection.
"""

TAIL_BYTES: Final = 64 * 1024
"""How much of the end is kept: enough for several tracebacks."""

LINE_BYTES: Final = 64 * 1024
"""The callback gets a longer line in pieces."""


class StderrSink(Protocol):
    """Receives what a child writes to stderr."""

    def feed(self, data: bytes) -> None:
        """Take some bytes."""
        ...

    def finish(self) -> None:
        """The stream has ended."""
        ...


@final
class StderrTail:
    """Keeps the last `TAIL_BYTES`; `str()` decodes them."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data
        del self._data[:-TAIL_BYTES]

    def finish(self) -> None:
        """Does nothing."""

    def __str__(self) -> str:
        return self._data.decode(errors="replace")


@final
class StderrLines:
    """Calls a callback with each line, as text without its line end. Bytes that are no UTF-8 are replaced."""

    def __init__(self, callback: Callable[[str], object]) -> None:
        self._callback = callback
        self._partial = bytearray()

    def feed(self, data: bytes) -> None:
        self._partial += data
        if b"\n" in data:
            *lines, self._partial = self._partial.split(b"\n")
            for line in lines:
                self._call(line)
        while len(self._partial) >= LINE_BYTES:
            self._call(self._partial[:LINE_BYTES])
            del self._partial[:LINE_BYTES]

    def finish(self) -> None:
        if self._partial:
            self._call(self._partial)
            self._partial.clear()

    def _call(self, line: bytearray) -> None:
        self._callback(line.removesuffix(b"\r").decode(errors="replace"))


async def drain(stream: ByteTransport, sink: StderrSink) -> None:
    """Feed the sink until the stream ends. It may be cancelled and called again."""
    while data := await stream.receive():
        sink.feed(data)
    sink.finish()
