"""Turns the bytes of a document into values: JSON, or else YAML. Reads and fetches nothing."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final

import msgspec

from .nodes import DocumentError, Path
from .yaml_tree import parse_yaml

MAX_DEPTH: Final = 200
"""How deep objects and arrays may be nested. Documents of thousands of operations have about 40 levels."""

_INTS: Final = range(-(2**63), 2**64)
"""The whole numbers that every part of an import can carry. Others become floats."""

_MARKS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def parse(text: bytes, note: Callable[[Path, str], None]) -> Any:  # Any: JSON
    """The value of a text. `note` is told what was read otherwise than it stands there. Raises `DocumentError`."""
    text = _utf8(text)
    start = text.lstrip()[:1]
    if not start:
        raise DocumentError("the document is empty")
    tree = _json(text) if start in b"{[" else parse_yaml(text, note)
    _check(tree)
    return tree


def _utf8(text: bytes) -> bytes:
    for mark, encoding in _MARKS.items():
        if text.startswith(mark):
            try:
                return text.decode(encoding).encode()
            except UnicodeError as exc:
                raise DocumentError(f"the document is no text in {encoding}") from exc
    return text


def _json(text: bytes) -> Any:  # Any: JSON
    try:
        return msgspec.json.decode(text)
    except RecursionError as exc:
        raise DocumentError(_TOO_DEEP) from exc
    except UnicodeDecodeError as exc:
        raise DocumentError("no JSON: the document is no UTF-8") from exc
    except msgspec.DecodeError as exc:  # its text quotes nothing of the document
        raise DocumentError(f"no JSON: {exc}") from exc


_SHORT: Final = 40
"""Longer strings are rarely the same."""

_TOO_DEEP: Final = f"nested deeper than {MAX_DEPTH} levels"


def _check(tree: Any) -> None:
    """Refuses what is nested too deeply, and makes floats of whole numbers that are too large.

    Short strings that are the same become one, and so do objects with nothing but one of them, such as references: most of
    the memory of a document.
    """
    level: list[Any] = [[tree]]
    texts: dict[str, str] = {}
    objects: dict[tuple[str, str], Any] = {}
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for container in level:
            places = container.items() if type(container) is dict else enumerate(container)
            for place, value in places:
                kind = type(value)
                if kind is str:
                    if len(value) <= _SHORT:
                        container[place] = texts.setdefault(value, value)
                elif kind is dict and len(value) == 1 and type(only := next(iter(value.values()))) is str:
                    container[place] = objects.setdefault((next(iter(value)), only), value)
                elif kind is dict or kind is list:
                    if value:
                        below.append(value)
                elif kind is int and value not in _INTS:
                    container[place] = _as_float(value)
        if not below:
            return
        level = below
    raise DocumentError(_TOO_DEEP)


def _as_float(number: int) -> float | str:
    try:
        return float(number)
    except OverflowError:
        return str(number)
