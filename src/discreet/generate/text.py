"""Text for generated code: names, comments wrapped into lines, and code broken as formatters do. Knows no language."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias, final

import msgspec

_WORDS: Final = re.compile(r"[A-Za-z0-9]+")
_CASE_CHANGES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@final
class NameScope:
    """The names of one scope. No name is given out twice."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def unique(self, wanted: str) -> str:
        """Return `wanted`, or if it is taken, `wanted` with the first free number from 2 on. The result is taken then."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}{count}"
        self._taken.add(name)
        return name


def type_name(*parts: str) -> str:
    """Return the name of a type: `type_name("fs/read", "limit")` is `FsReadLimit`. Capitals within a word stay."""
    words = [word for part in parts for word in _WORDS.findall(part)]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Type{name}"


def error_name(code: str) -> str:
    """Return the name of an error: `error_name("FILE_NOT_FOUND")` is `FileNotFound`."""
    return type_name(code.title())


def constant_name(*parts: str) -> str:
    """Return the name of a constant: `constant_name("fs/read", "errors")` is `FS_READ_ERRORS`."""
    words = [word for part in parts for run in _WORDS.findall(part) for word in _CASE_CHANGES.split(run)]
    name = "_".join(words).upper()
    return name if name[:1].isalpha() else f"N{name}"


def member_name(wire_name: str, reserved: frozenset[str]) -> str:
    """Return the name of a member, param or method: the wire's own if it is an identifier, with `_` after it if reserved.

    The result never begins with `_`, so such names are free for the generated code itself.
    """
    name = wire_name
    if not (name.isidentifier() and unicodedata.is_normalized("NFKC", name)):
        name = re.sub(r"[^A-Za-z0-9]+", "_", name)
    name = name.lstrip("_") or "value"
    name = name if name[0].isalpha() else f"n{name}"
    return f"{name}_" if name in reserved else name


# -- comments --------------------------------------------------------------------------------------------------


def wrapped(*blocks: str | Sequence[str], width: int) -> list[str]:
    """Wrap blocks into lines of at most `width` characters, where words allow it, with a blank line between blocks.

    A block is a text, whose paragraphs are wrapped, or a list, whose items have hanging indents. Characters that could
    move a cursor or end a line become blanks. Empty blocks are left out.
    """
    found: list[str] = []
    for block in blocks:
        for part in block.split("\n\n") if isinstance(block, str) else (block,):
            items = (part,) if isinstance(part, str) else part
            lines = [line for item in items for line in _wrapped(item, width, hanging=not isinstance(part, str))]
            found += ["", *lines] if found and lines else lines
    return found


def _wrapped(text: str, width: int, *, hanging: bool) -> list[str]:
    words = "".join(char if char.isprintable() else " " for char in text)
    later = "    " if hanging else ""
    return textwrap.wrap(words.strip(), width, subsequent_indent=later, break_long_words=False, break_on_hyphens=False)


# -- code ------------------------------------------------------------------------------------------------------


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
