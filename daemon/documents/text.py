"""Texts addressed as LSP does: by line and character, where a character is a unit of the encoding that was agreed on.

LSP 3.17, sections "Position" and "TextDocumentContentChangeEvent". Knows no messages. Lines end with `\\n`, `\\r\\n` or
`\\r`, and with nothing else that Python takes for a line end.

Editors that count in UTF-16 may send half a surrogate pair, or change one. Texts keep such halves, so that the other
half can join them, and show U+FFFD for each: it takes as many units in every encoding.
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

LINE_BYTES: Final = 84
"""Of a string beside its characters, up to 76, and of the reference to it."""

_UNPAIRED: Final = re.compile("[\ud800-\udfff]")
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
        self._size = _size(self._lines)

    @cached_property
    def value(self) -> str:
        return shown(self.exact)

    @property
    def exact(self) -> str:
        """The text with its unpaired surrogates, which can't be encoded."""
        return "".join(self._lines)

    @property
    def size(self) -> int:
        """How many bytes the lines take at most."""
        return self._size

    def line(self, number: int) -> str:
        """A line without its end. Empty beyond the last line."""
        return shown(_without_end(self._lines[number])) if 0 <= number < len(self._lines) else ""

    def lines(self) -> list[str]:
        """All lines, without their ends. At least one: behind the last line end begins a line."""
        return [shown(_without_end(line)) for line in self._lines]

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
        result = Text("", self.encoding)
        result._lines, result._size = list(self._lines), self._size
        for span, text in changes:
            if span is None:
                result._lines = _split(text)
                result._size = _size(result._lines)
            else:
                result._size += _replace(result._lines, min(span), max(span), text, self.encoding)
        return result

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, and last the length of the text."""
        return [0, *accumulate(map(len, self._lines))]


def _replace(lines: list[str], start: Place, end: Place, text: str, encoding: PositionEncoding) -> int:
    """Put a text in the place of a span; how many bytes the lines take more."""
    first, (before, _) = _cut(lines, start, encoding)
    last, (_, after) = _cut(lines, end, encoding)
    region = _joined(before + text + after)
    if first and region[:1] == "\n" and lines[first - 1][-1:] == "\r":  # they are one line end now
        first -= 1
        region = lines[first] + region
    if last + 1 < len(lines) and region[-1:] == "\r" and lines[last + 1][:1] == "\n":
        last += 1
        region += lines[last]
    new = _LINE.findall(region)
    if last + 1 >= len(lines) and (not new or _without_end(new[-1]) != new[-1]):
        new.append("")
    more = _size(new) - _size(lines[first : last + 1])
    lines[first : last + 1] = new
    return more


def _size(lines: list[str]) -> int:
    """What strings take at most, with the references to them (CPython, 64 bit)."""
    return sum(len(line) if line.isascii() else 4 * len(line) for line in lines) + LINE_BYTES * len(lines)


def _cut(lines: list[str], place: Place, encoding: PositionEncoding) -> tuple[int, tuple[str, str]]:
    """The line of a place, and what stands in it before and behind; the end of all beyond the last line."""
    line, character = place
    if line >= len(lines):
        return len(lines) - 1, (lines[-1], "")
    line = max(0, line)
    return line, _halves(lines[line], max(0, character), encoding)


def _halves(line: str, character: int, encoding: PositionEncoding) -> tuple[str, str]:
    """A line before and behind a unit. UTF-16 may cut a surrogate pair in two; the others never cut a character."""
    text = _without_end(line)
    if encoding == "utf-16" and not text.isascii():
        codec, size = _BYTES[encoding]
        encoded = text.encode(codec, "surrogatepass")
        before = encoded[: character * size].decode(codec, "surrogatepass")
        return before, encoded[character * size :].decode(codec, "surrogatepass") + line[len(text) :]
    index = index_of(shown(text), character, encoding)
    return line[:index], line[index:]


def _joined(text: str) -> str:
    """The text with one character for each two surrogates that are a pair now."""
    if text.isascii() or not _UNPAIRED.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def shown(text: str) -> str:
    """The text with U+FFFD for each surrogate in it."""
    return text if text.isascii() else _UNPAIRED.sub("\ufffd", text)


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
