"""Small parts of Python modules, spelled as ruff's formatter spells them: strings, docstrings, assignments."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence
from typing import Final

from . import layout
from .prose import paragraphs

WIDTH: Final = 88
"""What ruff and black break at when nobody tells them otherwise."""

PROSE_WIDTH: Final = 80
KEYWORDS: Final = frozenset(keyword.kwlist)

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(value: str | float | None) -> str:
    """A constant as an expression."""
    return text(value) if isinstance(value, str) else repr(value)


def text(value: str) -> str:
    """A string, in the quotes that need fewer escapes."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join(_escaped(char, quote) for char in value) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{quote}"
    return _ESCAPES.get(char) or (char if char.isprintable() else ascii(char)[1:-1])


def docstring(*blocks: str | Sequence[str], depth: int) -> list[str]:
    """The lines of a docstring; none where nothing is to be said."""
    margin = " " * (4 * depth)
    found = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in paragraphs(*blocks, width=PROSE_WIDTH)]
    if not found:
        return []
    found[0] = f" {found[0]}" if found[0].startswith('"') else found[0]
    if len(found) == 1:
        apart = " " if found[0].endswith('"') and not found[0].endswith('\\"') else ""
        return [f'{margin}"""{found[0]}{apart}"""']
    inner = [f"{margin}{line}".rstrip() for line in found[1:]]
    return [f'{margin}"""{found[0]}', *inner, f'{margin}"""']


def assigned(left: str, right: layout.Piece, *, depth: int) -> Iterator[str]:
    """A statement `left = right`; what is too long goes into brackets, its own or a pair around it."""
    margin = " " * (4 * depth)
    whole = f"{margin}{left} = {layout.flat(right)}"
    if len(whole) <= WIDTH or (isinstance(right, str) and len(margin) + 4 + len(right) > WIDTH):
        yield whole
    elif isinstance(right, str):
        yield from (f"{margin}{left} = (", f"{margin}    {right}", f"{margin})")
    else:
        group = layout.Group(f"{left} = {right.before}", right.items, right.after, right.lone_comma)
        yield from layout.lines(group, width=WIDTH, depth=depth)


def union(left: str, parts: Sequence[str]) -> Iterator[str]:
    """A statement at the margin that names the union of some types."""
    whole = " | ".join(parts)
    if len(left) + len(" = ") + len(whole) <= WIDTH:
        yield f"{left} = {whole}"
    elif len(whole) + 4 <= WIDTH:
        yield from (f"{left} = (", f"    {whole}", ")")
    else:
        yield from (f"{left} = (", f"    {parts[0]}", *(f"    | {part}" for part in parts[1:]), ")")
