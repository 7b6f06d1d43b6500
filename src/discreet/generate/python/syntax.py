"""Pieces of Python source, formatted as ruff formats them: constants, docstrings, assignments."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..descriptions import wrapped
from ..pretty_printer import Code, Group, broken_lines, on_one_line

LINE_WIDTH: Final = 88
"""The default of ruff and black."""

DOCSTRING_WIDTH: Final = 80
INDENT: Final = 4
KEYWORDS: Final = frozenset(keyword.kwlist)

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPED_QUOTE_AT_END: Final = re.compile(r'(?<!\\)(?:\\\\)*"$')


def lines(code: Code, *, depth: int = 0) -> Iterator[str]:
    """Yield the code, broken into lines."""
    return broken_lines(code, width=LINE_WIDTH, indent=INDENT, depth=depth)


def constant(value: str | float | None) -> str:
    """Return a constant as an expression."""
    return string(value) if isinstance(value, str) else repr(value)


def string(value: str) -> str:
    """Return a string literal, in the quotes that need fewer escapes."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join(_escaped(char, quote) for char in value) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{quote}"
    return _ESCAPES.get(char) or (char if char.isprintable() else ascii(char)[1:-1])


def docstring(*blocks: str | Sequence[str], depth: int) -> list[str]:
    """Return the lines of a docstring; none if the blocks are empty. No text can end the docstring early."""
    margin = " " * (INDENT * depth)
    text = wrapped(*blocks, width=DOCSTRING_WIDTH)
    found = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in text]
    if not found:
        return []
    found[0] = f" {found[0]}" if found[0].startswith('"') else found[0]
    if len(found) == 1:
        space = " " if _UNESCAPED_QUOTE_AT_END.search(found[0]) else ""
        return [f'{margin}"""{found[0]}{space}"""']
    inner = [f"{margin}{line}".rstrip() for line in found[1:]]
    return [f'{margin}"""{found[0]}', *inner, f'{margin}"""']


def assignment(left: str, right: Code, *, depth: int) -> Iterator[str]:
    """Yield a statement `left = right`. A long right side is broken in its own brackets, or in a pair put around it."""
    margin = " " * (INDENT * depth)
    one_line = f"{margin}{left} = {on_one_line(right)}"
    if len(one_line) <= LINE_WIDTH or (isinstance(right, str) and len(margin) + INDENT + len(right) > LINE_WIDTH):
        yield one_line
    elif isinstance(right, str):
        yield from (f"{margin}{left} = (", f"{margin}    {right}", f"{margin})")
    else:
        group = Group(f"{left} = {right.opening}", right.items, right.closing, right.comma_if_single)
        yield from lines(group, depth=depth)


def union_assignment(left: str, members: Sequence[str]) -> Iterator[str]:
    """Yield a statement at the margin that assigns the union of some types."""
    whole = " | ".join(members)
    if len(left) + len(" = ") + len(whole) <= LINE_WIDTH:
        yield f"{left} = {whole}"
    elif len(whole) + INDENT <= LINE_WIDTH:
        yield from (f"{left} = (", f"    {whole}", ")")
    else:
        yield from (f"{left} = (", f"    {members[0]}", *(f"    | {member}" for member in members[1:]), ")")
