"""Lines of code as a formatter would break them: whole where they fit, else one item a line. Knows no language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

INDENT = 4


class Group(msgspec.Struct, frozen=True):
    """Items between brackets. A group that does not fit has each item on a line of its own, a comma behind each."""

    before: str
    items: tuple[Piece, ...]
    after: str
    lone_comma: bool = False  # a comma behind a single item: Python's tuple of one


Piece: TypeAlias = str | Group


def lines(piece: Piece, *, width: int, depth: int = 0, indent: int = INDENT, end: str = "") -> Iterator[str]:
    """The piece at this depth of indentation, in lines of at most `width` where its words allow it."""
    margin = " " * (indent * depth)
    whole = margin + flat(piece) + end
    if isinstance(piece, str) or not piece.items or len(whole) <= width:
        yield whole
        return
    yield margin + piece.before
    for item in piece.items:
        yield from lines(item, width=width, depth=depth + 1, indent=indent, end=",")
    yield margin + piece.after + end


def flat(piece: Piece) -> str:
    """The piece on one line."""
    if isinstance(piece, str):
        return piece
    comma = "," if piece.lone_comma and len(piece.items) == 1 else ""
    return piece.before + ", ".join(map(flat, piece.items)) + comma + piece.after
