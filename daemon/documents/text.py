"""Texts addressed as LSP does: by line and character, where a character is a unit of the encoding that was agreed on.

LSP 3.17, sections "Position" and "TextDocumentContentChangeEvent". Knows no messages. Lines end with `\\n`, `\\r\\n` or
`\\r`, and with nothing else that Python takes for a line end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate
from typing import Final, Literal, TypeAlias, final

PositionEncoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
Place: TypeAlias = tuple[int, int]
"""A line and a character in it."""

Change: TypeAlias = tuple[tuple[Place, Place] | None, str]
"""A span, or None for the whole text, and what takes its place."""

ENCODINGS: Final[tuple[PositionEncoding, ...]] = ("utf-8", "utf-16", "utf-32")

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
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
    character = max(0, character)
    if encoding == "utf-32" or text.isascii():
        return min(character, len(text))
    codec, size = _BYTES[encoding]
    return len(text.encode(codec, "surrogatepass")[: character * size].decode(codec, "ignore"))


@final
class Text:
    """A text that never changes, so that any thread may read it. Lines count from 0."""

    def __init__(self, value: str, encoding: PositionEncoding) -> None:
        self.encoding: Final = encoding
        self._lines = _split(value)

    @cached_property
    def value(self) -> str:
        return "".join(self._lines)

    @cached_property
    def size(self) -> int:
        """About how many bytes the lines take (CPython, 64 bit: 49 for each string, 8 for the reference to it)."""
        return sum(map(len, self._lines)) + 57 * len(self._lines)

    @property
    def line_count(self) -> int:
        """At least 1: behind the last line end begins a line."""
        return len(self._lines)

    def line(self, number: int) -> str:
        """A line without its end. Empty beyond the last line."""
        return _without_end(self._lines[number]) if 0 <= number < len(self._lines) else ""

    def lines(self) -> list[str]:
        """All lines, without their ends."""
        return [_without_end(line) for line in self._lines]

    def offset(self, line: int, character: int) -> int:
        """The index in `value`. A character beyond the line's end is its end; a line beyond the last is the end of all."""
        if line >= len(self._lines):
            return self._starts[-1]
        line = max(0, line)
        return self._starts[line] + index_of(self.line(line), character, self.encoding)

    def position(self, offset: int) -> Place:
        """Line and character of an index in `value`; of one within a line's end, that of the line's end."""
        offset = max(0, min(offset, self._starts[-1]))
        line = min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1)
        return line, units(self.line(line)[: offset - self._starts[line]], self.encoding)

    def changed(self, changes: Iterable[Change]) -> Text:
        """The text after these changes, one after the other. Each costs what it touches, not the whole text."""
        lines = list(self._lines)
        for span, text in changes:
            if span is None:
                lines = _split(text)
            else:
                _replace(lines, min(span), max(span), text, self.encoding)
        result = Text("", self.encoding)
        result._lines = lines
        return result

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, and last the length of the text."""
        return [0, *accumulate(map(len, self._lines))]


def _replace(lines: list[str], start: Place, end: Place, text: str, encoding: PositionEncoding) -> None:
    first, before = _cut(lines, start, encoding)
    last, after = _cut(lines, end, encoding)
    region = lines[first][:before] + text + lines[last][after:]
    if first and region[:1] == "\n" and lines[first - 1][-1:] == "\r":  # they are one line end now
        first -= 1
        region = lines[first] + region
    if last + 1 < len(lines) and region[-1:] == "\r" and lines[last + 1][:1] == "\n":
        last += 1
        region += lines[last]
    new = _LINE.findall(region)
    if last + 1 < len(lines) and (not new or _without_end(new[-1]) == new[-1]):  # the line end behind it is gone
        last += 1
        new = _LINE.findall(region + lines[last])
    if last + 1 >= len(lines) and (not new or _without_end(new[-1]) != new[-1]):
        new.append("")
    lines[first : last + 1] = new


def _cut(lines: list[str], place: Place, encoding: PositionEncoding) -> Place:
    """The line of a place and the index in it; the end of all beyond the last line."""
    line, character = place
    if line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    line = max(0, line)
    return line, index_of(_without_end(lines[line]), character, encoding)


def _split(text: str) -> list[str]:
    """The lines with their ends. The last one has none."""
    lines: list[str] = _LINE.findall(text)
    if not lines or _without_end(lines[-1]) != lines[-1]:
        lines.append("")
    return lines


def _without_end(line: str) -> str:
    if line[-2:] == "\r\n":
        return line[:-2]
    return line[:-1] if line[-1:] in ("\n", "\r") and line else line
