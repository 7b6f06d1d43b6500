"""Texts addressed as LSP does: by line and character, where a character is a unit of the encoding that was agreed on.

LSP 3.17, sections "Position" and "TextDocumentContentChangeEvent". Knows no messages. Lines end with `\\n`, `\\r\\n` or
`\\r`, and with nothing else that Python takes for a line end.

A text is a rope of two levels: groups of leaves, and leaves of two thousand characters or so. So a change costs what it touches,
however long the line or the text is. A leaf never ends within a line end or a surrogate pair. Leaves and groups never change,
and versions of a text share them.

Editors that count in UTF-16 may send half a surrogate pair, or change one. Texts keep such halves, so that the other
half can join them, and show U+FFFD for each: it takes as many units in every encoding.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from sys import maxsize
from typing import Final, Literal, NamedTuple, TypeAlias, final

PositionEncoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
Place: TypeAlias = tuple[int, int]
"""A line and a character in it."""

Change: TypeAlias = tuple[tuple[Place, Place] | None, str]
"""A span, or None for the whole text, and what takes its place."""

ENCODINGS: Final[tuple[PositionEncoding, ...]] = ("utf-8", "utf-16", "utf-32")

LEAF: Final = 2048
"""Characters of a new leaf. One that is changed has up to twice as many. More make each change dearer, fewer make more leaves."""

SMALL_LEAF: Final = 512
"""Characters below which a changed leaf joins the next one, or a text would end as thousands of tiny ones."""

GROUP: Final = 16
"""Leaves of a new group. One that is changed has up to twice as many, and joins the next one below a quarter."""

LEAF_BYTES: Final = 256
"""Of a leaf beside its characters and lines, with its part of a group, rounded up (CPython, 64 bit)."""

LINE_BYTES: Final = 40
"""Of the place where a line begins."""

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
class _Leaf:
    """Two thousand characters or so. `units` counts in the text's encoding, `breaks` are the line ends."""

    __slots__ = ("_starts", "breaks", "chars", "text", "units")

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self.text: Final = text
        self.chars: Final = len(text)
        self.units: Final = self.chars if text.isascii() else units(text, encoding)
        self.breaks: Final = text.count("\n") + (text.count("\r") - text.count("\r\n") if "\r" in text else 0)
        self._starts: list[int] | None = None

    @property
    def size(self) -> int:
        """How many bytes it takes at most."""
        return self.chars * (1 if self.text.isascii() else 4) + LINE_BYTES * self.breaks + LEAF_BYTES

    @property
    def starts(self) -> list[int]:
        """The index behind each line end."""
        if self._starts is None:
            parts = self.text.splitlines(keepends=True)
            if len(parts) == self.breaks + (self.text[-1:] not in ("\r", "\n")):  # and no other ends of Python's
                self._starts = [*accumulate(map(len, parts))][: self.breaks]
            else:
                self._starts = [end.end() for end in _LINE_END.finditer(self.text)]
        return self._starts

    def line_end(self, number: int) -> int:
        """The index of the line end with this number in the leaf."""
        behind = self.starts[number]
        return behind - (2 if self.text[behind - 2 : behind] == "\r\n" else 1)


@final
class _Group:
    """Neighbouring leaves. `breaks_at` and `chars_at` are what it has up to the end of each leaf."""

    __slots__ = ("_size", "breaks", "breaks_at", "chars", "chars_at", "leaves", "units")

    def __init__(self, leaves: Sequence[_Leaf]) -> None:
        self.leaves: Final = leaves
        self.breaks_at: Final = [*accumulate(map(_breaks, leaves))]
        self.chars_at: Final = [*accumulate(map(_chars, leaves))]
        self.breaks: Final = self.breaks_at[-1]
        self.chars: Final = self.chars_at[-1]
        self.units: Final = sum(map(_units, leaves))
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes its leaves take at most."""
        if not self._size:
            self._size = sum(map(_size, self.leaves))
        return self._size


_breaks: Final = attrgetter("breaks")
_chars: Final = attrgetter("chars")
_units: Final = attrgetter("units")
_size: Final = attrgetter("size")


class _Found(NamedTuple):
    """A place: so many units behind `start` in a leaf, and not behind `end`, where the line or the leaf ends."""

    group: int
    leaf: int
    start: int
    end: int
    character: int


@final
class Text:
    """A text that never changes, so that any thread may read it. Lines count from 0."""

    def __init__(self, value: str | list[_Group], encoding: PositionEncoding) -> None:
        self.encoding: Final = encoding
        self._groups = _grown(value, encoding) if isinstance(value, str) else value

    @cached_property
    def value(self) -> str:
        return shown(self.exact)

    @property
    def exact(self) -> str:
        """The text with its unpaired surrogates, which can't be encoded."""
        return "".join([leaf.text for group in self._groups for leaf in group.leaves])

    @cached_property
    def size(self) -> int:
        """How many bytes it takes at most."""
        return sum(map(_size, self._groups))

    def line(self, number: int) -> str:
        """A line without its end. Empty beyond the last line."""
        if not 0 <= number <= self._breaks_at[-1]:
            return ""
        found = _find(self._groups, self._breaks_at, (number, 0), self.encoding)
        leaf = self._groups[found.group].leaves[found.leaf]
        if found.end < leaf.chars:
            return shown(leaf.text[found.start : found.end])
        start = self.offset(number, 0)
        return self.value[start : self.offset(number, maxsize)]

    def lines(self) -> list[str]:
        """All lines, without their ends. At least one: behind the last line end begins a line."""
        return _LINE_END.split(self.value) if "\r" in self.value else self.value.split("\n")

    def offset(self, line: int, character: int) -> int:
        """The index in `value`. A character beyond the line's end is its end; a line beyond the last is the end of all."""
        found = _find(self._groups, self._breaks_at, (line, character), self.encoding)
        group = self._groups[found.group]
        leaf = group.leaves[found.leaf]
        before: int = self._chars_at[found.group] - group.chars + group.chars_at[found.leaf] - leaf.chars
        part = shown(leaf.text[found.start : found.end])
        return before + found.start + index_of(part, found.character, self.encoding)

    def position(self, offset: int) -> Place:
        """Line and character of an index in `value`; of one within a line's end, that of the line's end."""
        offset = max(0, min(offset, self._chars_at[-1]))
        at = bisect_left(self._chars_at, offset)
        group = self._groups[at]
        offset -= self._chars_at[at] - group.chars
        in_group = bisect_left(group.chars_at, offset)
        leaf = group.leaves[in_group]
        offset -= group.chars_at[in_group] - leaf.chars
        behind = bisect_right(leaf.starts, offset)
        if behind < leaf.breaks:
            offset = min(offset, leaf.line_end(behind))
        line = self._breaks_at[at] - group.breaks + group.breaks_at[in_group] - leaf.breaks + behind
        start = leaf.starts[behind - 1] if behind else 0
        character = units(shown(leaf.text[start:offset]), self.encoding)
        return line, character if behind else character + self._units_before(at, in_group)

    def _units_before(self, at: int, in_group: int) -> int:
        """How many units of the line that goes on in this leaf are in the leaves before."""
        found, leaves = 0, self._groups[at].leaves[:in_group]
        while True:
            for leaf in reversed(leaves):
                if leaf.breaks:
                    return found + units(leaf.text[leaf.starts[-1] :], self.encoding)
                found += leaf.units
            at -= 1
            while at >= 0 and not self._groups[at].breaks:
                found += self._groups[at].units
                at -= 1
            if at < 0:
                return found
            leaves = self._groups[at].leaves

    def changed(self, changes: Iterable[Change]) -> Text:
        """The text after these changes, one after the other. Each costs what it touches, not the whole text."""
        groups = list(self._groups)
        for span, text in changes:
            if span is None:
                groups = _grown(text, self.encoding)
            else:
                _replace(groups, min(span), max(span), text, self.encoding)
        return Text(groups, self.encoding)

    @cached_property
    def _breaks_at(self) -> list[int]:
        """The line ends up to the end of each group."""
        return [*accumulate(map(_breaks, self._groups))]

    @cached_property
    def _chars_at(self) -> list[int]:
        return [*accumulate(map(_chars, self._groups))]


def _find(groups: Sequence[_Group], breaks_at: Sequence[int], place: Place, encoding: PositionEncoding) -> _Found:
    """Where a place is: at the line's end beyond it, and at the end of all beyond the last line."""
    line, character = max(0, place[0]), max(0, place[1])
    at = in_group = start = 0
    if line > breaks_at[-1]:
        last = groups[-1].leaves[-1]
        return _Found(len(groups) - 1, len(groups[-1].leaves) - 1, last.chars, last.chars, 0)
    if line:
        at = bisect_left(breaks_at, line)
        group = groups[at]
        line -= breaks_at[at] - group.breaks
        in_group = bisect_left(group.breaks_at, line)
        leaf = group.leaves[in_group]
        line -= group.breaks_at[in_group] - leaf.breaks
        start = leaf.starts[line - 1]
    while True:  # `line` is now the number of the line's end among those of the leaf
        leaf = groups[at].leaves[in_group]
        if line < leaf.breaks:
            return _Found(at, in_group, start, leaf.line_end(line), character)
        rest = leaf.units if start == 0 else units(leaf.text[start:], encoding)
        if character <= rest or (following := _after(groups, at, in_group)) is None:
            return _Found(at, in_group, start, leaf.chars, character)
        at, in_group = following
        character, line, start = character - rest, 0, 0
        while in_group == 0 and at + 1 < len(groups) and not groups[at].breaks and character > groups[at].units:
            character -= groups[at].units
            at += 1


def _after(groups: Sequence[_Group], at: int, in_group: int) -> tuple[int, int] | None:
    """The group and the leaf behind this leaf; None behind the last one."""
    if in_group + 1 < len(groups[at].leaves):
        return at, in_group + 1
    return (at + 1, 0) if at + 1 < len(groups) else None


def _before(groups: Sequence[_Group], at: int, in_group: int) -> tuple[int, int] | None:
    """The group and the leaf before this leaf; None before the first one."""
    if in_group:
        return at, in_group - 1
    return (at - 1, len(groups[at - 1].leaves) - 1) if at else None


def _replace(groups: list[_Group], start: Place, end: Place, text: str, encoding: PositionEncoding) -> None:
    """Put a text in the place of a span."""
    breaks_at = [*accumulate(map(_breaks, groups))]
    first, (before, after) = _cut(groups, _find(groups, breaks_at, start, encoding), encoding)
    last = first
    if start != end:
        last, (_, after) = _cut(groups, _find(groups, breaks_at, end, encoding), encoding)
    region = _joined(before + text + after)
    while (previous := _before(groups, *first)) is not None:
        leaf = groups[previous[0]].leaves[previous[1]]
        if len(region) >= SMALL_LEAF and not _inseparable(leaf.text[-1:], region[:1]):
            break
        first, region = previous, _joined(leaf.text + region)
    while (following := _after(groups, *last)) is not None:
        leaf = groups[following[0]].leaves[following[1]]
        if len(region) >= SMALL_LEAF and not _inseparable(region[-1:], leaf.text[:1]):
            break
        last, region = following, _joined(region + leaf.text)
    leaves = [
        *groups[first[0]].leaves[: first[1]],
        *([_Leaf(region, encoding)] if len(region) <= 2 * LEAF else _leaves(region, encoding)),
        *groups[last[0]].leaves[last[1] + 1 :],
    ]
    from_, to = first[0], last[0] + 1
    if len(leaves) < GROUP // 4 and to < len(groups):
        leaves += groups[to].leaves
        to += 1
    groups[from_:to] = [_Group(leaves)] if len(leaves) <= 2 * GROUP else _grouped(leaves)


def _cut(
    groups: Sequence[_Group], found: _Found, encoding: PositionEncoding
) -> tuple[tuple[int, int], tuple[str, str]]:
    """The leaf of a place, and what stands in it before and behind. UTF-16 may cut a surrogate pair in two; the others never
    cut a character.
    """
    text = groups[found.group].leaves[found.leaf].text
    place, part = (found.group, found.leaf), text[found.start : found.end]
    if encoding != "utf-16" or part.isascii():
        index = found.start + index_of(shown(part), found.character, encoding)
        return place, (text[:index], text[index:])
    codec, size = _BYTES[encoding]
    encoded = part.encode(codec, "surrogatepass")
    before = encoded[: found.character * size].decode(codec, "surrogatepass")
    behind = encoded[found.character * size :].decode(codec, "surrogatepass")
    return place, (text[: found.start] + before, behind + text[found.end :])


def _inseparable(left: str, right: str) -> bool:
    """Whether two characters are one line end or one surrogate pair."""
    return (left == "\r" and right == "\n") or ("\ud800" <= left < "\udc00" and "\udc00" <= right < "\ue000")


def _grown(text: str, encoding: PositionEncoding) -> list[_Group]:
    return _grouped(_leaves(_joined(text), encoding))


def _leaves(text: str, encoding: PositionEncoding) -> list[_Leaf]:
    """The leaves of a text; at least one."""
    found: list[_Leaf] = []
    start = 0
    while start < len(text) or not found:
        end = start + LEAF
        if text[end - 1 : end + 1] == "\r\n":
            end += 1
        found.append(_Leaf(text[start:end], encoding))
        start = end
    return found


def _grouped(leaves: Sequence[_Leaf]) -> list[_Group]:
    return [_Group(leaves[start : start + GROUP]) for start in range(0, len(leaves), GROUP)]


def _joined(text: str) -> str:
    """The text with one character for each two surrogates that are a pair now."""
    if text.isascii() or not _UNPAIRED.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def shown(text: str) -> str:
    """The text with U+FFFD for each surrogate in it."""
    return text if text.isascii() else _UNPAIRED.sub("\ufffd", text)
