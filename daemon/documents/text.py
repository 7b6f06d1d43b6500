"""Texts addressed as LSP does: by line and character, where a character is a unit of the encoding that was agreed on.

LSP 3.17, sections "Position" and "TextDocumentContentChangeEvent". Knows no messages. Lines end with `\n`, `\r\n` or
`\r`, and with nothing else that Python takes for a line end.

Editors that count in UTF-16 may send half a surrogate pair, or change one. Texts keep such halves, so that the other
half can join them, and show U+FFFD for each: it takes as many units in every encoding.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, Literal, TypeAlias, final

PositionEncoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
Place: TypeAlias = tuple[int, int]
"""A line and a character in it."""

Change: TypeAlias = tuple[tuple[Place, Place] | None, str]
"""A span, or None for the whole text, and what takes its place."""

ENCODINGS: Final[tuple[PositionEncoding, ...]] = ("utf-8", "utf-16", "utf-32")

LINE_BYTES: Final = 80
"""What a line takes beside its characters, rounded up (CPython, 64 bit)."""

_UNPAIRED: Final = re.compile("[\ud800-\udfff]")
_LINE_END: Final = re.compile(r"\r\n?|\n")
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
    """A text that never changes, so that any thread may read it. Lines count from 0. `size` is how many bytes it may take."""

    def __init__(self, value: str, encoding: PositionEncoding) -> None:
        self.encoding: Final = encoding
        self._lines: Sequence[str] = _lines_of(_joined(value))
        """With their ends. The last one has none."""
        self.size = _size(self._lines)

    @cached_property
    def value(self) -> str:
        return shown(self.exact)

    @property
    def exact(self) -> str:
        """The text with its unpaired surrogates, which can't be encoded."""
        return "".join(self._lines)

    def line(self, number: int) -> str:
        """A line without its end. Empty beyond the last line."""
        return shown(_without_end(self._lines[number])) if 0 <= number < len(self._lines) else ""

    def lines(self) -> list[str]:
        """All lines, without their ends. At least one: behind the last line end begins a line."""
        return [shown(_without_end(line)) for line in self._lines]

    def offset(self, line: int, character: int) -> int:
        """The index in `value`. A character beyond the line's end is its end; a line beyond the last is the end of all."""
        line = max(0, line)
        if line >= len(self._lines):
            return self._starts[-1]
        return self._starts[line] + index_of(self.line(line), character, self.encoding)

    def position(self, offset: int) -> Place:
        """Line and character of an index in `value`; of one within a line's end, that of the line's end."""
        offset = max(0, min(offset, self._starts[-1]))
        line = bisect_right(self._starts, offset, 0, len(self._lines)) - 1
        return line, units(self.line(line)[: offset - self._starts[line]], self.encoding)

    @cached_property
    def _starts(self) -> list[int]:
        """The index of each line, and of the end of all."""
        return [0, *accumulate(map(len, self._lines))]

    def changed(self, changes: Iterable[Change]) -> Text:
        """The text after these changes, one after the other."""
        new = Text("", self.encoding)
        lines, new.size = list(self._lines), self.size
        for span, text in changes:
            if span is None:
                lines = _lines_of(_joined(text))
                new.size = _size(lines)
            else:
                new.size += _replace(lines, min(span), max(span), text, self.encoding)
        new._lines = lines
        return new


def _replace(lines: list[str], start: Place, end: Place, text: str, encoding: PositionEncoding) -> int:
    """Put a text in the place of a span. Returns by how many bytes the lines have grown."""
    first, before, after = _cut(lines, start, encoding)
    last = first
    if start != end:
        last, _, after = _cut(lines, end, encoding)
    region = _joined(before + text + after)
    if first and region.startswith("\n") and lines[first - 1].endswith("\r"):  # one line end now
        first -= 1
        region = lines[first] + region
    if region.endswith("\r") and lines[last + 1 : last + 2] and lines[last + 1].startswith("\n"):
        last += 1
        region += lines[last]
    new = _lines_of(region)
    if last + 1 < len(lines):
        new.pop()  # the next line begins behind the region's last line end
    grown = _size(new) - _size(lines[first : last + 1])
    lines[first : last + 1] = new
    return grown


def _cut(lines: Sequence[str], place: Place, encoding: PositionEncoding) -> tuple[int, str, str]:
    """The line of a place, and what stands in it before and behind. UTF-16 may cut a surrogate pair in two; the others never
    cut a character.
    """
    number, character = max(0, place[0]), max(0, place[1])
    if number >= len(lines):
        return len(lines) - 1, lines[-1], ""
    line = lines[number]
    part = _without_end(line)
    if encoding != "utf-16" or part.isascii():
        index = index_of(shown(part), character, encoding)
        return number, line[:index], line[index:]
    codec, size = _BYTES[encoding]
    encoded = part.encode(codec, "surrogatepass")
    before = encoded[: character * size].decode(codec, "surrogatepass")
    behind = encoded[character * size :].decode(codec, "surrogatepass")
    return number, before, behind + line[len(part) :]


def _lines_of(text: str) -> list[str]:
    """The lines with their ends, and behind the last line end one more, which may be empty."""
    if "\r" not in text:
        lines = [f"{line}\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        return lines
    ends = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _size(lines: Iterable[str]) -> int:
    """How many bytes lines take at most."""
    return sum(len(line) * (1 if line.isascii() else 4) + LINE_BYTES for line in lines)


def _joined(text: str) -> str:
    """The text with one character for each two surrogates that are a pair now."""
    if text.isascii() or not _UNPAIRED.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def shown(text: str) -> str:
    """The text with U+FFFD for each surrogate in it."""
    return text if text.isascii() else _UNPAIRED.sub("\ufffd", text)
