"""JSON texts as values that lose nothing on the way back: numbers keep every digit that was written.

Stricter than most: what is no UTF-8 or no JSON is refused, `NaN` among it.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn, TypeAlias

import msgspec
from msgspec import Raw

Json: TypeAlias = "dict[str, Json] | list[Json] | str | bool | Raw | None"
"""A number is its text, as `Raw`."""

UNREADABLE: Final = (ValueError, RecursionError)
"""What `load` and `dump` raise. `UnicodeError` is among the first: text that is no UTF-8, or half a character."""


def load(text: bytes) -> Json:
    """Read one JSON text. Of equal keys the last wins. Raises one of `UNREADABLE`."""
    value: Json = json.loads(text.decode(), parse_int=_number, parse_float=_number, parse_constant=_refuse)
    return value


def dump(value: Json) -> bytes:
    """The shortest text of a value. Raises one of `UNREADABLE`."""
    return msgspec.json.encode(value)


def _number(text: str) -> Raw:
    return Raw(text.encode())


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
