"""Reads and writes JSON values without loss: numbers keep every digit.

Stricter than most decoders: text that is no UTF-8 or no JSON is refused, `NaN` included.
"""

from __future__ import annotations

import json
from typing import Final, NoReturn, TypeAlias

import msgspec
from msgspec import Raw

Json: TypeAlias = "dict[str, Json] | list[Json] | str | bool | Raw | None"
"""A number is kept as its text, in a `Raw`."""

JSON_ERRORS: Final = (ValueError, RecursionError)
"""What `load` and `dump` raise. `UnicodeError`, for text that is no UTF-8 and for lone surrogates, is a `ValueError`."""


def load(text: bytes) -> Json:
    """Read one JSON text. Of equal keys the last wins. Raises one of `JSON_ERRORS`."""
    value: Json = json.loads(text.decode(), parse_int=_number, parse_float=_number, parse_constant=_refuse)
    return value


def dump(value: Json) -> bytes:
    """The shortest text of a value. Raises one of `JSON_ERRORS`."""
    return msgspec.json.encode(value)


def _number(text: str) -> Raw:
    return Raw(text.encode())


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
