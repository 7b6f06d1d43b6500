"""Pieces of TypeScript source, formatted as prettier formats them: constants, comments, union types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from ..descriptions import wrapped
from ..pretty_printer import Code, broken_lines

LINE_WIDTH: Final = 80
"""The default of prettier."""

INDENT: Final = 2

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def lines(code: Code, *, depth: int = 0) -> Iterator[str]:
    """Yield the code, broken into lines."""
    return broken_lines(code, width=LINE_WIDTH, indent=INDENT, depth=depth)


def constant(value: str | int) -> str:
    """Return a constant as an expression."""
    return string(value) if isinstance(value, str) else json.dumps(value)


def string(value: str) -> str:
    """Return a string literal, in the quotes that need fewer escapes."""
    escaped = "".join(json.dumps(char, ensure_ascii=not char.isprintable())[1:-1] for char in value)
    if value.count('"') <= value.count("'"):
        return f'"{escaped}"'
    return "'" + escaped.replace('\\"', '"').replace("'", "\\'") + "'"


def property_name(wire_name: str) -> str:
    """Return the name of a property, in quotes if it is not an identifier."""
    return wire_name if _IDENTIFIER.fullmatch(wire_name) else string(wire_name)


def comment(*blocks: str | Sequence[str], margin: str = "") -> list[str]:
    """Return the lines of a JSDoc comment; none if the blocks are empty. No text can end the comment early."""
    text = wrapped(*blocks, width=LINE_WIDTH - len(margin) - len(" *  */"))
    found = [line.replace("*/", "*\\/") for line in text]
    if not found:
        return []
    one_line = f"{margin}/** {found[0]} */"
    if len(found) == 1 and len(one_line) <= LINE_WIDTH:
        return [one_line]
    return [f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in found), f"{margin} */"]


def union_declaration(left: str, members: Sequence[str], *, margin: str = "") -> Iterator[str]:
    """Yield `left` and the union of some types; `left` is `export type A =` or `readonly a:`."""
    whole = f"{' | '.join(members)};"
    if len(f"{margin}{left} {whole}") <= LINE_WIDTH or len(members) == 1:
        yield from _broken_in_braces(f"{margin}{left} {whole}", margin)
    elif len(f"{margin}  {whole}") <= LINE_WIDTH:
        yield from (margin + left, f"{margin}  {whole}")
    else:
        yield margin + left
        yield from (f"{margin}  | {member}" for member in members[:-1])
        yield f"{margin}  | {members[-1]};"


def _broken_in_braces(line: str, margin: str) -> Iterator[str]:
    """Yield a line; if it is too long and has braces, broken inside them."""
    before, brace, rest = line.partition("{ ")
    inner, end, after = rest.rpartition(" }")
    if len(line) <= LINE_WIDTH or not (brace and end):
        yield line
    else:
        yield from (f"{before}{{", f"{margin}  {inner};", f"{margin}}}{after}")
