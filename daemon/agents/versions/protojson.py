"""Rewrites JSON that ProtoJSON allows and a plain reader of the types refuses, so that it is read. Never needed by most.

By the type of every value that is refused (and of no other: free-form data stays as it came): null for a member that has
a default is as if it was absent, enumerations may come by number, `…_UNSPECIFIED` is as if absent, bytes may be of the
URL-safe alphabet or without padding, integers may be in a string or have a fraction of zero. What is wrong otherwise
stays as it is, to be told.

https://protobuf.dev/programming-guides/json/
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ...operations.msgspec_errors import DECODE_ERRORS
from ...operations.type_shapes import to_annotation
from ..model.types import STATE_NUMBERS, Role, TaskState
from .base64_text import decode_base64, encode_base64

_MOST_COMMAS: Final = 2_000_000
"""Every value of an array or object that is opened becomes an object of its own, and a comma stands for it."""

_MOST_MENDED: Final = 20_000
"""Values that are looked at in one text; the rest stays as it is. At 5 µs each, a tenth of a second."""

_NUMBERS: Final[dict[type[Enum], dict[int, Enum]]] = {
    Role: {1: Role.USER, 2: Role.AGENT},
    TaskState: {number: state for state, number in STATE_NUMBERS.items()},
}
_UNSPECIFIED: Final[dict[type[Enum], tuple[object, ...]]] = {
    Role: (0, "ROLE_UNSPECIFIED"),
    TaskState: (0, "TASK_STATE_UNSPECIFIED"),
}
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}")  # int32

_encode: Final = msgspec.json.Encoder().encode
_read_list: Final = msgspec.json.Decoder(list[Raw]).decode
_read_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text: Final = msgspec.json.Decoder(str).decode
_read_scalar: Final = msgspec.json.Decoder(str | int | float).decode
_NULL: Final = b"null"


@final
class _Budget:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _MOST_MENDED


_Mend: TypeAlias = Callable[[Raw | bytes, _Budget], Raw | bytes | None]
"""A refused text rewritten, or as it was; None for what is as if absent. Raises one of `DECODE_ERRORS` for another kind."""


def mending(wire: type[Any]) -> Callable[[Raw | bytes], bytes]:
    """How texts for this type are rewritten."""
    slot = functools.cache(lambda: _Slot(types.type_info(wire)))  # late: a good text does not need it

    def mend(text: Raw | bytes) -> bytes:
        if bytes(text).count(b",") > _MOST_COMMAS:
            return bytes(text)
        return bytes(slot().mended(text, _Budget()) or _NULL)

    return mend


@final
class _Slot:
    """A place for values of one type."""

    __slots__ = ("_mend", "_read")

    def __init__(self, node: types.Type) -> None:
        self._read = msgspec.json.Decoder(to_annotation(node)).decode
        self._mend = _mend_for(node)

    def mended(self, text: Raw | bytes, budget: _Budget) -> Raw | bytes | None:
        if budget.left <= 0:
            return text
        try:
            self._read(text)
        except DECODE_ERRORS:
            pass
        else:
            return text
        budget.left -= 1
        if len(text) == len(_NULL) and bytes(text) == _NULL:
            return None
        try:
            return self._mend(text, budget)
        except (*DECODE_ERRORS, ValueError):
            return text


def _mend_for(node: types.Type) -> _Mend:
    match node:
        case types.UnionType():
            return _mend_for(next(member for member in node.types if not isinstance(member, types.NoneType)))
        case types.StructType():
            return _members(node)
        case types.VarTupleType():
            return _items(node)
        case types.EnumType():
            return _enum(node)
        case types.BytesType():
            return _bytes
        case types.IntType():
            return _integer
        case _:
            return _as_it_is


def _members(node: types.StructType) -> _Mend:
    slots = {field.encode_name: _Slot(field.type) for field in node.fields}

    def mend(text: Raw | bytes, budget: _Budget) -> bytes:
        given: dict[str, Raw | bytes | None] = {**_read_members(text)}
        for name, slot in slots.items():
            value = given.get(name)
            if value is not None:
                given[name] = slot.mended(value, budget)
        return _encode({name: Raw(value) for name, value in given.items() if value is not None})

    return mend


def _items(node: types.VarTupleType) -> _Mend:
    slot = _Slot(node.item_type)

    def mend(text: Raw | bytes, budget: _Budget) -> bytes:
        return _encode([Raw(slot.mended(item, budget) or item) for item in _read_list(text)])

    return mend


def _enum(node: types.EnumType) -> _Mend:
    numbers, absent = _NUMBERS.get(node.cls, {}), _UNSPECIFIED.get(node.cls, ())

    def mend(text: Raw | bytes, _: _Budget) -> Raw | bytes | None:
        match _read_scalar(text):
            case value if value in absent:
                return None
            case int(number) if number in numbers:
                return _encode(numbers[number])
            case _:
                return text

    return mend


def _bytes(text: Raw | bytes, _: _Budget) -> bytes:
    return _encode(encode_base64(decode_base64(_read_text(text))))


def _integer(text: Raw | bytes, _: _Budget) -> Raw | bytes:
    match _read_scalar(text):
        case str(digits) if _INTEGER.fullmatch(digits):
            return _encode(int(digits))
        case float(number) if number.is_integer():
            return _encode(int(number))
        case _:
            return text


def _as_it_is(text: Raw | bytes, _: _Budget) -> Raw | bytes:
    return text
