"""Copies the fields of an event for the queue, and estimates their size. Never calls code of the values.

Containers are copied, because the caller may change them before the writer thread renders them. Everything else is kept
by reference and rendered later. So nothing here can raise or wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

FLAT_BYTES: Final = 32
"""The assumed size of a number, a flag or an object of another type."""

EXCEPTION_BYTES: Final = 4096
"""The assumed size of an exception: its traceback keeps frames alive."""

CONTAINER_BYTES: Final = 64 * 1024
"""How much of one container is copied: eight times as much as a line shows of a field."""

MAX_DEPTH: Final = 12
"""Levels of nesting."""

CUT: Final = "<cut>"
"""The scrubber's mark (`errors.redaction.limits.CUT`, which is expensive to import). It replaces a whole value that is too
deep or too large: half a secret would not be recognised as one."""


def copy_fields(fields: dict[str, object]) -> int:
    """Replace the containers in `fields` by copies. Returns the approximate size of all fields in bytes."""
    size = 0
    for key, value in fields.items():
        kind = type(value)
        if kind is str:
            size += len(value)  # type: ignore[arg-type]  # mypy doesn't narrow by `type(...) is`
        elif kind in _CONTAINERS:
            budget = [CONTAINER_BYTES]
            fields[key] = _copy(value, budget, MAX_DEPTH)
            size += CONTAINER_BYTES - budget[0]
        else:
            size += EXCEPTION_BYTES if issubclass(kind, BaseException) else FLAT_BYTES
    return size


_CONTAINERS: Final = frozenset({dict, list, tuple, set, frozenset})
"""Exactly these types: a subclass may run code of its own, so only the writer thread looks into it."""

_KEYS: Final = frozenset({str, int, float, bool, type(None)})
"""Keys of other types may run code of their own when they are hashed; their type names replace them."""


def _copy(value: object, budget: list[int], depth: int) -> object:
    kind = type(value)
    budget[0] -= len(value) if kind is str else FLAT_BYTES  # type: ignore[arg-type]
    if budget[0] < 0 or depth == 0:
        return CUT
    if kind is dict:
        return _copy_dict(value, budget, depth)  # type: ignore[arg-type]
    if kind in _CONTAINERS:
        return _copy_items(value, budget, depth)  # type: ignore[arg-type]
    return value


def _copy_dict(value: dict[object, object], budget: list[int], depth: int) -> dict[object, object]:
    result: dict[object, object] = {}
    for key, item in value.copy().items():
        if budget[0] < 0:
            break
        if type(key) is str:
            budget[0] -= len(key)
        plain = key if type(key) in _KEYS else f"<{type(key).__name__}>"
        result[plain] = _copy(item, budget, depth - 1)
    return result


def _copy_items(value: Iterable[object], budget: list[int], depth: int) -> list[object]:
    result: list[object] = []
    for item in list(value):
        if budget[0] < 0:
            break
        result.append(_copy(item, budget, depth - 1))
    return result
