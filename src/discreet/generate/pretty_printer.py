"""Breaks code into lines as formatters do: on one line if it fits, else one item a line. Knows no language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec


class Group(msgspec.Struct, frozen=True):
    """Items between brackets. A group that does not fit on one line has one item a line, each with a comma after it."""

    opening: str
    items: tuple[Code, ...]
    closing: str
    comma_if_single: bool = False  # a comma after a single item even on one line: Python's tuple of one


Code: TypeAlias = str | Group


def broken_lines(code: Code, *, width: int, indent: int, depth: int = 0, end: str = "") -> Iterator[str]:
    """Yield the code in lines of at most `width` characters, where its words allow it. `end` follows the last line."""
    margin = " " * (indent * depth)
    one_line = margin + on_one_line(code) + end
    if isinstance(code, str) or not code.items or len(one_line) <= width:
        yield one_line
        return
    yield margin + code.opening
    for item in code.items:
        yield from broken_lines(item, width=width, indent=indent, depth=depth + 1, end=",")
    yield margin + code.closing + end


def on_one_line(code: Code) -> str:
    """Return the code without any line break."""
    if isinstance(code, str):
        return code
    comma = "," if code.comma_if_single and len(code.items) == 1 else ""
    return code.opening + ", ".join(map(on_one_line, code.items)) + comma + code.closing
