"""The bytes that a parser has received and not yet worked off. Knows positions, not meanings.

A chunk is used as it came: frames are sliced out of it, only what is left of an unfinished header block is copied, in
front of the next chunk. Bodies that span chunks do not wait here; the parser moves them to where they are collected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import TypeAlias, final

Search: TypeAlias = "Callable[[bytes, int], re.Match[bytes] | None]"
"""The `search` of a compiled pattern."""


@final
class InputBuffer:
    """`data[pos:]` is what lies ahead. Parsers move `pos`; everything else is the buffer's own.

    `starved` is true when all that came has been worked through, as said by `run_dry`: the moment at which silence
    means something.
    """

    __slots__ = ("_base", "_later", "_later_size", "data", "ended", "pos", "starved")

    def __init__(self, offset: int) -> None:
        self.data = b""
        self.pos = 0
        self.ended = False
        self.starved = False
        self._base = offset
        self._later: list[bytes] = []
        self._later_size = 0

    def append(self, data: bytes) -> None:
        """Take in one chunk. O(1) when nothing is left over. Raises `ValueError` if empty, `RuntimeError` past the end."""
        if not data:
            raise ValueError("no bytes: say end_of_input() instead")
        if self.ended:
            raise RuntimeError("bytes after the end of the input")
        self.starved = False
        if self.pos == len(self.data) and not self._later:
            self._base += self.pos
            self.data = data
            self.pos = 0
        else:
            self._later.append(data)
            self._later_size += len(data)

    def end(self) -> None:
        """Nothing more will come. Saying so twice changes nothing."""
        self.ended = True

    def run_dry(self) -> bool:
        """The parser needs more than lies ahead: join what has come since. True if nothing has; then it must wait."""
        if not self._later:
            self.starved = True
            return True
        ahead = self.data[self.pos :]
        self._base += self.pos
        self.data = b"".join((ahead, *self._later))
        self.pos = 0
        self._later.clear()
        self._later_size = 0
        return False

    def take(self, most: int) -> bytes:
        """The next bytes, `most` of them or as many as lie ahead; a whole chunk is handed on without a copy."""
        taken = self.data[self.pos : self.pos + most]
        self.pos += len(taken)
        return taken

    def skip(self, most: int) -> int:
        """Drop the next `most` bytes, or as many as lie ahead; returns how many."""
        skipped = min(most, len(self.data) - self.pos)
        self.pos += skipped
        return skipped

    def skip_to(self, search: Search) -> bool:
        """Move to what `search` finds ahead; if it finds nothing, past everything and return False."""
        found = search(self.data, self.pos)
        self.pos = len(self.data) if found is None else found.start()
        return found is not None

    def drop(self) -> None:
        """Give up everything that lies ahead."""
        self.pos = len(self.data)

    def ahead(self) -> bytes:
        """A copy of everything that lies ahead."""
        return b"".join((self.data[self.pos :], *self._later))

    @property
    def here(self) -> int:
        """The stream offset of the next byte."""
        return self._base + self.pos

    @property
    def size(self) -> int:
        """How many bytes lie ahead."""
        return len(self.data) - self.pos + self._later_size


@final
class Collector:
    """Something large that comes in pieces: copied once as they come, handed over without another copy."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self.size = 0
        self._pieces = BytesIO()

    def add(self, piece: bytes) -> None:
        """Keep one more piece."""
        self.size += self._pieces.write(piece)

    def copy(self) -> bytes:
        """All pieces so far, which stay."""
        return self._pieces.getvalue()

    def join(self, last: bytes) -> bytes:
        """All pieces and a last one, which alone is returned as it is. Nothing is kept."""
        if not self.size:
            return last
        self._pieces.write(last)
        whole = self._pieces.getvalue()
        self._pieces = BytesIO()
        self.size = 0
        return whole
