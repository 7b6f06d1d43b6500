"""What a message brings: media types that the agent takes (A2A 1.0 section 3.1.1), and JSON that can be written again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET

from ....errors.exceptions import FailureError
from ....errors.failures import ContentTypeNotSupported, InvalidParams
from .types import Message, Part

DEEPEST: Final = 256
"""Levels of objects and arrays in one JSON value. What is read must be writable too, by code that stands deeper in the stack."""


def check_content(message: Message, taken: Sequence[str]) -> None:
    """Raises `FailureError(ContentTypeNotSupported)` for a part of a type that is not taken: `text/plain`, `image/*`, `*/*`.

    A part that tells no type is what its kind is: text, or JSON; of a file nothing is known, and it may pass.
    """
    for part in message.parts:
        brought = _type_of(part)
        if brought is not None and not any(_covers(each, brought) for each in taken):
            raise FailureError(ContentTypeNotSupported(accepted=tuple(taken)))


def is_shallow(value: object) -> bool:
    """Whether a JSON value is nested no deeper than `DEEPEST`."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list, tuple))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def check_depth(message: Message, metadata: object) -> None:
    """Raises `FailureError(InvalidParams)` for JSON that is nested too deeply, by its path."""
    values = [("metadata", metadata), ("message.metadata", message.metadata)]
    for index, part in enumerate(message.parts):
        values += [(f"message.parts[{index}].data", part.data), (f"message.parts[{index}].metadata", part.metadata)]
    for path, value in values:
        if isinstance(value, (dict, list)) and not is_shallow(value):
            kind = "object" if isinstance(value, dict) else "array"
            raise FailureError(InvalidParams(path, f"JSON of at most {DEEPEST} levels", kind))


def _type_of(part: Part) -> str | None:
    if part.media_type:
        return part.media_type.partition(";")[0].strip().lower()
    if part.text is not None:
        return "text/plain"
    return None if part.data is UNSET else "application/json"


def _covers(taken: str, brought: str) -> bool:
    taken = taken.partition(";")[0].strip().lower()
    return taken in (brought, "*/*") or (taken.endswith("/*") and brought.startswith(taken[:-1]))
