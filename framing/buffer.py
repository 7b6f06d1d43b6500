"""The bytes that a parser has received and not yet consumed. Knows positions, never meanings.

A chunk is used as it was received: frames are sliced out of it, and only an unfinished header block is copied, in front of
the next chunk. The parser moves the parts of a body that spans chunks to a `BodyBuffer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final, TypeAlias, final

PatternSearch: TypeAlias = "Callable[[bytes, int], re.Match[bytes] | None]"
"""The method `search` of a compiled pattern."""

_PART: Final = 1 << 16


@final
class InputBuffer:
    """`data[pos:]` are the next bytes. Parsers advance `pos`; the buffer changes everything else.

    `pending` are the chunks behind `data`.
    `starved` is true if `load_more` found nothing: all input was consumed as far as it can be, so silence is meaningful.
    """

    __slots__ = ("_base", "_pending_size", "data", "ended", "pending", "pos", "starved")

    def __init__(self, offset: int) -> None:
        self.data = b""
        self.pos = 0
        self.ended = False
        self.starved = False
        self._base = offset
        self.pending: list[bytes] = []
        self._pending_size = 0

    def append(self, data: bytes) -> None:
        """Add one chunk. O(1) if nothing is left over. Raises `ValueError` if it is empty, `RuntimeError` after `end`."""
        if not data:
            raise ValueError("no bytes: call end_of_input() instead")
        if self.ended:
            raise RuntimeError("bytes after the end of the input")
        self.starved = False
        if self.pos == len(self.data) and not self.pending:
            self._base += self.pos
            self.data = data
            self.pos = 0
        else:
            self.pending.append(data)
            self._pending_size += len(data)

    def end(self) -> None:
        """Nothing more will be added. Idempotent."""
        self.ended = True

    def load_more(self) -> bool:
        """Append the chunks that were added since to `data`; returns False if there are none."""
        if not self.pending:
            self.starved = True
            return False
        ahead = self.data[self.pos :]
        self._base += self.pos
        self.data = b"".join((ahead, *self.pending))
        self.pos = 0
        self.pending.clear()
        self._pending_size = 0
        return True

    def take(self, most: int) -> bytes:
        """Consume and return the next bytes, at most `most`; a whole chunk is returned without a copy."""
        taken = self.data[self.pos : self.pos + most]
        self.pos += len(taken)
        return taken

    def skip(self, most: int) -> int:
        """Consume the next bytes, at most `most`; returns how many."""
        skipped = min(most, len(self.data) - self.pos)
        self.pos += skipped
        return skipped

    def skip_to(self, search: PatternSearch) -> bool:
        """Advance to what `search` finds. If it finds nothing, consume all of `data` and return False."""
        found = search(self.data, self.pos)
        self.pos = len(self.data) if found is None else found.start()
        return found is not None

    def discard(self) -> None:
        """Consume all of `data`."""
        self.pos = len(self.data)

    def remaining(self) -> bytes:
        """A copy of everything that is not consumed."""
        return b"".join((self.data[self.pos :], *self.pending))

    @property
    def offset(self) -> int:
        """The stream offset of the next byte."""
        return self._base + self.pos

    @property
    def ahead(self) -> int:
        """How many bytes `take` would return at most."""
        return len(self.data) - self.pos

    @property
    def size(self) -> int:
        """How many bytes are not consumed."""
        return len(self.data) - self.pos + self._pending_size


@final
class BodyBuffer:
    """A body that arrives in pieces: each piece is copied once, and the whole is returned without another copy.

    `add` and `join` raise `MemoryError` where there is no room; then nothing is kept.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self.size = 0
        self._pieces = BytesIO()

    def add(self, piece: bytes) -> None:
        """Add one more piece."""
        try:
            self.size += self._pieces.write(piece)
        except MemoryError:  # a BytesIO loses its content where it can't grow
            self._clear()
            raise

    def copy(self) -> bytes:
        """All pieces so far; they are kept."""
        return self._pieces.getvalue()

    def parts(self) -> Iterator[bytes]:
        """All pieces so far, cut into parts that need little memory; they are kept."""
        with self._pieces.getbuffer() as pieces:
            for start in range(0, self.size, _PART):
                yield bytes(pieces[start : start + _PART])

    def join(self, last: bytes) -> bytes:
        """All pieces and a last one, as one; nothing is kept. A piece that is the only one is returned without a copy."""
        if not self.size:
            return last
        self.add(last)
        whole = self._pieces.getvalue()
        self._clear()
        return whole

    def _clear(self) -> None:
        self._pieces = BytesIO()
        self.size = 0
