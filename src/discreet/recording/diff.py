"""Where two JSON values differ. Knows no messages; the order of an object's members and how a number is spelt are nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
from msgspec import Raw

from ..client.json_path import Path
from .json_values import Json

Difference: TypeAlias = tuple[Path, "Json | Absent", "Json | Absent"]


class Absent(msgspec.Struct, frozen=True):
    """There is no such member or item on this side."""


ABSENT = Absent()


def differences(
    one: Json | Absent, other: Json | Absent, ignored: Callable[[Path], bool], path: Path = ()
) -> Iterator[Difference]:
    """The smallest differing parts, in the order of `one`. What `ignored` names is skipped with all that it holds.

    Raises `RecursionError` for values nested too deeply.
    """
    if ignored(path):
        return
    match one, other:
        case dict(), dict():
            for key in (*one, *(key for key in other if key not in one)):
                yield from differences(one.get(key, ABSENT), other.get(key, ABSENT), ignored, (*path, key))
        case list(), list():
            for place in range(max(len(one), len(other))):
                yield from differences(_item(one, place), _item(other, place), ignored, (*path, place))
        case Raw(), Raw():
            if not _equal_numbers(one, other):
                yield path, one, other
        case _:
            if type(one) is not type(other) or one != other:
                yield path, one, other


def _item(items: list[Json], place: int) -> Json | Absent:
    return items[place] if place < len(items) else ABSENT


def _equal_numbers(one: Raw, other: Raw) -> bool:
    if bytes(one) == bytes(other):
        return True
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (msgspec.DecodeError, ValueError):  # beyond every type: only equal spellings are surely equal
        return False
