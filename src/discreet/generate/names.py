"""Names of the wire as names of programming languages, the same ones every time. Knows no language's own words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, final

_WORDS: Final = re.compile(r"[A-Za-z0-9]+")
_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@final
class Names:
    """The names of one scope: whoever comes second gets a number."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)

    def take(self, wanted: str) -> str:
        """`wanted`, or with the first number from 2 on that makes it a name of its own."""
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}{count}"
        self._taken.add(name)
        return name


def type_name(*parts: str) -> str:
    """The name of a type: `type_name("fs/read", "limit")` is `FsReadLimit`. Capitals within a word stay."""
    words = [word for part in parts for word in _WORDS.findall(part)]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Type{name}"


def error_name(code: str) -> str:
    """The name of an error: `error_name("FILE_NOT_FOUND")` is `FileNotFound`."""
    return type_name(code.title())


def constant_name(*parts: str) -> str:
    """The name of a constant: `constant_name("fs/read", "errors")` is `FS_READ_ERRORS`."""
    words = [word for part in parts for hump in _WORDS.findall(part) for word in _HUMPS.split(hump)]
    name = "_".join(words).upper()
    return name if name[:1].isalpha() else f"N{name}"


def member_name(wire: str, reserved: frozenset[str]) -> str:
    """The name of a member or param: the wire's own wherever it can stand in a program, with `_` behind it if reserved.

    Never begins with `_`: such names are private, and free for the generated code itself.
    """
    name = wire
    if not (wire.isidentifier() and unicodedata.is_normalized("NFKC", wire)):
        name = re.sub(r"[^A-Za-z0-9]+", "_", wire)
    name = name.lstrip("_") or "value"
    name = name if name[0].isalpha() else f"n{name}"
    return f"{name}_" if name in reserved else name
