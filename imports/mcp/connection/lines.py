"""Divides what a server writes into lines of bounded length. Never reads, never waits, never logs."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from msgspec import Struct

HEAD_BYTES: Final = 256
"""What is kept of the beginning of a line that is too long: enough for the id of the answer that it would be."""


class Oversize(Struct, frozen=True):
    """A line that was too long, by its beginning. The rest of it was dropped."""

    head: bytes


Line: TypeAlias = bytes | Oversize


@final
class LineSplitter:
    """Takes chunks, gives lines without their ends. Blank lines are left out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in this chunk, and the one that just became too long."""
        found: list[Line] = []
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece, found)
            self._end(found)
        self._add(rest, found)
        return found

    def _add(self, piece: bytes, found: list[Line]) -> None:
        if self._dropping:
            return
        if len(self._begun) + len(piece) > self._limit:
            found.append(Oversize(bytes(self._begun[:HEAD_BYTES] + piece[:HEAD_BYTES])[:HEAD_BYTES]))
            self._begun.clear()
            self._dropping = True
        else:
            self._begun += piece

    def _end(self, found: list[Line]) -> None:
        line = bytes(self._begun).strip(b" \t\r")
        self._begun.clear()
        if not self._dropping and line:
            found.append(line)
        self._dropping = False
