"""A child's stderr, always read, so that a child that writes much to it never stands still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias, final

from ...framing.transports.interface import ByteTransport

StderrMode: TypeAlias = Literal["inherit", "collect"] | Callable[[str], object]
"""Where a child's stderr goes: to this process's own, into a bounded tail, or line by line to a callback.

The callback gets lines without their ends and returns at once; what it raises ends the connection.
"""

TAIL_BYTES: Final = 64 * 1024
"""How much of the end is kept: several tracebacks."""

LINE_BYTES: Final = 64 * 1024
"""Longer lines are handed over in pieces."""


class Sink(Protocol):
    def feed(self, data: bytes) -> None:
        """Take some bytes."""
        ...

    def finish(self) -> None:
        """There are no more."""
        ...


@final
class Tail:
    """Keeps the last `TAIL_BYTES`."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data
        del self._held[:-TAIL_BYTES]

    def finish(self) -> None:
        """Nothing is left to do."""

    def __str__(self) -> str:
        return self._held.decode(errors="replace")


@final
class Lines:
    """Hands each line to a callback, as text, without its end; bytes that are no UTF-8 are replaced."""

    def __init__(self, callback: Callable[[str], object]) -> None:
        self._callback = callback
        self._partial = bytearray()

    def feed(self, data: bytes) -> None:
        self._partial += data
        if b"\n" in data:
            *lines, self._partial = self._partial.split(b"\n")
            for line in lines:
                self._hand_over(line)
        while len(self._partial) >= LINE_BYTES:
            self._hand_over(self._partial[:LINE_BYTES])
            del self._partial[:LINE_BYTES]

    def finish(self) -> None:
        if self._partial:
            self._hand_over(self._partial)
            self._partial.clear()

    def _hand_over(self, line: bytearray) -> None:
        self._callback(line.removesuffix(b"\r").decode(errors="replace"))


async def drain(stream: ByteTransport, sink: Sink) -> None:
    """Feed the sink until the stream ends. Can be cancelled and begun anew."""
    while data := await stream.receive():
        sink.feed(data)
    sink.finish()
