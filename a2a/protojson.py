"""Normalizes JSON that ProtoJSON allows and msgspec refuses, so that msgspec accepts it.

Rewrites the names of members, and values that their type refuses; free-form data stays as it is. Names may be those of the
protobuf, `context_id` for `contextId`; of two that mean the same the last counts. Null for an optional member counts as
absent, and so does `…_UNSPECIFIED`. Enumerations may be numbers. Bytes may be in the URL-safe alphabet or without padding.
Integers may be strings or have a fraction of zero. Other faults are left for the caller to report.

https://protobuf.dev/programming-guides/json/
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from enum import Enum
from itertools import repeat
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ..errors.decoders import DECODE_ERRORS, type_info
from .types import STATE_NUMBERS, Role, TaskState

_MAX_COMMAS: Final = 2_000_000
"""Limits the Python objects that a text may cost, because every item of an array or object becomes one. A text with more
commas stays as it is."""

_MAX_VALUES: Final = 40_000
"""Values that are looked at in one text; further ones stay as they are. At 3 µs each, a tenth of a second."""

_ENUM_NUMBERS: Final[dict[type[Enum], dict[int, Enum]]] = {
    Role: {1: Role.USER, 2: Role.AGENT},
    TaskState: {number: state for state, number in STATE_NUMBERS.items()},
}
_UNSPECIFIED: Final[dict[type[Enum], tuple[object, ...]]] = {
    Role: (0, "ROLE_UNSPECIFIED"),
    TaskState: (0, "TASK_STATE_UNSPECIFIED"),
}
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}")  # int32
_UPPER: Final = re.compile("[A-Z]")

_encode: Final = msgspec.json.Encoder().encode
_read_list: Final = msgspec.json.Decoder(list[Raw]).decode
_read_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text: Final = msgspec.json.Decoder(str).decode
_read_scalar: Final = msgspec.json.Decoder(str | int | float).decode
_NULL: Final = b"null"


def normalize(text: Raw | bytes, wire: type[Any]) -> bytes:
    """Return a text of the type `wire` normalized. What is no JSON stays as it is."""
    if bytes(text).count(b",") > _MAX_COMMAS:
        return bytes(text)
    return bytes(_normalize(type_info(wire), text, repeat(None, _MAX_VALUES)) or _NULL)


def _normalize(node: types.Type, text: Raw | bytes, budget: Iterator[None]) -> Raw | bytes | None:
    """Return the text rewritten or unchanged; None if it counts as absent. Each value takes one of the budget."""
    if next(budget, ...) is ... or isinstance(node, types.AnyType):
        return text
    if len(text) == len(_NULL) and bytes(text) == _NULL:
        return None
    try:
        match node:
            case types.UnionType():
                present = next(member for member in node.types if not isinstance(member, types.NoneType))
                return _normalize(present, text, budget)
            case types.StructType():
                return _normalize_members(node, _read_members(text), budget)
            case types.VarTupleType():
                return _encode([Raw(_normalize(node.item_type, item, budget) or item) for item in _read_list(text)])
            case types.EnumType():
                return _normalize_enum(node.cls, text)
            case types.BytesType():
                return _encode(encode_base64(decode_base64(_read_text(text))))
            case types.IntType():
                return _normalize_integer(text)
            case _:
                return text
    except (*DECODE_ERRORS, ValueError):
        return text


def _normalize_members(node: types.StructType, given: dict[str, Raw], budget: Iterator[None]) -> bytes:
    names = {_protobuf_name(field.encode_name): field.encode_name for field in node.fields}
    found: dict[str, Raw | bytes | None] = {names.get(name, name): value for name, value in given.items()}
    for field in node.fields:
        value = found.get(field.encode_name)
        if value is not None:
            found[field.encode_name] = _normalize(field.type, value, budget)
    return _encode({name: Raw(value) for name, value in found.items() if value is not None})


def _protobuf_name(name: str) -> str:
    """`contextId` is `context_id` in the protobuf."""
    return _UPPER.sub(lambda found: f"_{found[0].lower()}", name)


def _normalize_enum(kind: type[Enum], text: Raw | bytes) -> Raw | bytes | None:
    match _read_scalar(text):
        case value if value in _UNSPECIFIED.get(kind, ()):
            return None
        case int(number) if number in _ENUM_NUMBERS.get(kind, {}):
            return _encode(_ENUM_NUMBERS[kind][number])
        case _:
            return text


def _normalize_integer(text: Raw | bytes) -> Raw | bytes:
    match _read_scalar(text):
        case str(digits) if _INTEGER.fullmatch(digits):
            return _encode(int(digits))
        case float(number) if number.is_integer():
            return _encode(int(number))
        case _:
            return text


# Base64 as ProtoJSON accepts it: of either alphabet, padded or not (RFC 4648 sections 4 and 5).


_STANDARD: Final = str.maketrans("-_", "+/")
_MAX_PADDING: Final = 2


def decode_base64(text: str) -> bytes:
    """The bytes. Raises `ValueError` for a character of neither alphabet and for an impossible length."""
    body = text.rstrip("=")
    if len(text) - len(body) > _MAX_PADDING:
        raise ValueError("too much padding")
    return binascii.a2b_base64(body.translate(_STANDARD) + "=" * (-len(body) % 4), strict_mode=True)


def encode_base64(data: bytes) -> str:
    """The text, in the standard alphabet and padded."""
    return binascii.b2a_base64(data, newline=False).decode()
