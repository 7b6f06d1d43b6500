"""Turns names on the wire into names of programs, the same ones every time. Knows no language's reserved words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, final

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
