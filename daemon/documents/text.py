"""Texts addressed as LSP does: by line and character, where a character is a unit of the encoding that was agreed on.

LSP 3.17, sections "Position" and "TextDocumentContentChangeEvent". Knows no messages. Lines end with `\\n`, `\\r\\n` or
`\\r`, and with nothing else that Python takes for a line end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, Literal, TypeAlias, final

PositionEncoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

ENCODINGS: Final[tuple[PositionEncoding, ...]] = ("utf-8", "utf-16", "utf-32")

_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_BYTES: Final[dict[PositionEncoding, tuple[str, int]]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
"""The codec of each encoding, and the bytes of one unit."""


def units(text: str, encoding: PositionEncoding) -> int:
    """How many units a text has."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    codec, size = _BYTES[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


def index_of(text: str, character: int, encoding: PositionEncoding) -> int:
    """The index in `text` of the character at this unit; that of its beginning for a unit within it, the end beyond."""
    if encoding == "utf-32" or text.isascii():
        return min(character, len(text))
    codec, size = _BYTES[encoding]
    return len(text.encode(codec, "surrogatepass")[: character * size].decode(codec, "ignore"))


@final
class Text:
    """A text that is changed in place. Lines count from 0."""

    __slots__ = ("_starts", "encoding", "value")

    def __init__(self, value: str, encoding: PositionEncoding) -> None:
        self.encoding: Final = encoding
        self.value = value
        self._starts = _starts(value)

    @property
    def line_count(self) -> int:
        """At least 1: behind the last line end begins a line."""
        return len(self._starts)

    def line(self, number: int) -> str:
        """A line without its end. Empty beyond the last line."""
        if not 0 <= number < len(self._starts):
            return ""
        return self.value[self._starts[number] : self._end_of(number)]

    def lines(self) -> list[str]:
        """All lines, without their ends."""
        return [self.line(number) for number in range(len(self._starts))]

    def offset(self, line: int, character: int) -> int:
        """The index in `value`. A character beyond the line's end is its end; a line beyond the last is the end of all."""
        if line >= len(self._starts):
            return len(self.value)
        return self._starts[line] + index_of(self.line(line), character, self.encoding)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and character of an index in `value`; of one within a line's end, that of the line's end."""
        offset = max(0, min(offset, len(self.value)))
        line = bisect_right(self._starts, offset) - 1
        end = min(offset, self._end_of(line))
        return line, units(self.value[self._starts[line] : end], self.encoding)

    def replace(self, start: int, end: int, text: str) -> None:
        """Put `text` in the place of what is between two indexes."""
        start, end = min(start, end), max(start, end)
        old, starts = self.value, self._starts
        self.value = old[:start] + text + old[end:]
        # Only the lines around the change are looked at again: one more on either side, where a \r and a \n may meet.
        first = bisect_right(starts, max(0, start - 1)) - 1
        last = bisect_right(starts, min(len(old), end + 1))
        grown = len(text) - (end - start)
        region_end = starts[last] + grown if last < len(starts) else len(self.value)
        region = self.value[starts[first] : region_end]
        between = [starts[first] + found.end() for found in _LINE_END.finditer(region)]
        if last < len(starts) and between and between[-1] == region_end:
            between.pop()
        self._starts = [*starts[: first + 1], *between, *(begin + grown for begin in starts[last:])]

    def _end_of(self, line: int) -> int:
        """The index behind a line's last character."""
        if line + 1 == len(self._starts):
            return len(self.value)
        end = self._starts[line + 1] - 1
        return end - 1 if self.value[end] == "\n" and end > self._starts[line] and self.value[end - 1] == "\r" else end


def _starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _LINE_END.finditer(text))]
