"""What an event takes with it into the backlog: the caller's values as they are now, and roughly how large they are.

Containers are copied, because the caller may change them before the writer's thread renders them. Everything else is
kept by reference and rendered later. Calls no code of the values, so nothing here can raise or wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

FLAT_BYTES: Final = 32
"""What a number, a flag or an object of unknown kind is taken for."""

EXCEPTION_BYTES: Final = 4096
"""What an exception is taken for: its traceback keeps frames alive."""

CONTAINER_BYTES: Final = 64 * 1024
"""How much of one container is kept: eight times what the sink prints of a field."""

MAX_DEPTH: Final = 12
"""Levels of nesting."""

CUT: Final = "<cut>"
"""The scrubber's mark, for a whole value that is too deep or too much: half a secret would not be recognised as one."""


def take(fields: dict[str, object]) -> int:
    """Replaces the containers in `fields` by copies and returns the approximate size of everything in bytes."""
    size = 0
    for key, value in fields.items():
        kind = type(value)
        if kind is str:
            size += len(value)  # type: ignore[arg-type]  # mypy doesn't narrow by `type(...) is`
        elif kind in _CONTAINERS:
            room = [CONTAINER_BYTES]
            fields[key] = _copy(value, room, MAX_DEPTH)
            size += CONTAINER_BYTES - room[0]
        else:
            size += EXCEPTION_BYTES if issubclass(kind, BaseException) else FLAT_BYTES
    return size


_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset})
"""Exactly these types: a subclass may run code of its own, so that the writer's thread looks at it."""

_KEYS: Final = frozenset({str, int, float, bool, type(None)})
"""Keys of other types may run code of their own when they are hashed."""


def _copy(value: object, room: list[int], depth: int) -> object:
    kind = type(value)
    room[0] -= len(value) if kind is str else FLAT_BYTES  # type: ignore[arg-type]
    if room[0] < 0 or depth == 0:
        return CUT
    if kind is dict:
        return _copy_dict(value, room, depth)  # type: ignore[arg-type]
    if kind in _CONTAINERS:
        return _copy_items(value, room, depth)  # type: ignore[arg-type]
    return value


def _copy_dict(value: dict[object, object], room: list[int], depth: int) -> dict[object, object]:
    result: dict[object, object] = {}
    for key, item in value.copy().items():
        if room[0] < 0:
            break
        if type(key) is str:
            room[0] -= len(key)
        plain = key if type(key) in _KEYS else f"<{type(key).__name__}>"
        result[plain] = _copy(item, room, depth - 1)
    return result


def _copy_items(value: Iterable[object], room: list[int], depth: int) -> list[object]:
    result: list[object] = []
    for item in list(value):
        if room[0] < 0:
            break
        result.append(_copy(item, room, depth - 1))
    return result
