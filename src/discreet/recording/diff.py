"""Finds where two JSON values differ. Knows nothing of messages.

The order of an object's members does not matter, nor how a number is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
from msgspec import Raw

from ..client.json_path import Path
from .json_values import Json


class Missing(msgspec.Struct, frozen=True):
    """One of the two values has no such member or item."""


MISSING = Missing()

ValueDifference: TypeAlias = tuple[Path, "Json | Missing", "Json | Missing"]


def differences(
    one: Json | Missing, other: Json | Missing, ignored: Callable[[Path], bool], path: Path = ()
) -> Iterator[ValueDifference]:
    """The smallest parts that differ, in the order of `one`. A path that is `ignored` is skipped with everything below it.

    Raises `RecursionError` for values nested too deeply.
    """
    if ignored(path):
        return
    match one, other:
        case dict(), dict():
            for key in (*one, *(key for key in other if key not in one)):
                yield from differences(one.get(key, MISSING), other.get(key, MISSING), ignored, (*path, key))
        case list(), list():
            for index in range(max(len(one), len(other))):
                yield from differences(_item(one, index), _item(other, index), ignored, (*path, index))
        case Raw(), Raw():
            if not _equal_numbers(one, other):
                yield path, one, other
        case _:
            if type(one) is not type(other) or one != other:
                yield path, one, other


def _item(items: list[Json], index: int) -> Json | Missing:
    return items[index] if index < len(items) else MISSING


def _equal_numbers(one: Raw, other: Raw) -> bool:
    if bytes(one) == bytes(other):
        return True
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, ValueError):  # no type can hold the numbers: only equal texts are surely equal
        return False
