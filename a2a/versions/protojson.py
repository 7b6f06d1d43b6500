"""Reads params. Normalizes JSON that ProtoJSON allows and msgspec refuses, so that msgspec accepts it, which most requests never
need.

Rewrites only values that their type refuses, and the names of members; free-form data stays as it is. Names may be those of
the protobuf, `context_id` for `contextId`; of two that mean the same the last counts. Null for an optional member counts as
absent, and so does `…_UNSPECIFIED`. Enumerations may be numbers. Bytes may be in the URL-safe alphabet or without padding.
Integers may be strings or have a fraction of zero. Other faults are left for the caller to report.

https://protobuf.dev/programming-guides/json/
"""

from __future__ import annotations

import binascii
import functools
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar, final

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ...daemon.operations.params import Arguments, InputModel
from ...daemon.operations.type_phrases import to_annotation
from ...errors.decoders import DECODE_ERRORS, build_decoder, type_info
from ...errors.exceptions import FailureError
from ..types import STATE_NUMBERS, Role, TaskState

W = TypeVar("W")


def object_input(
    wire: type[W], convert: Callable[[W, str], Arguments], *, normalize: Callable[[Raw | bytes], bytes] | None = None
) -> InputModel:
    """Params that are one object of type `wire`; unknown members are ignored.

    `convert(params, prefix)` returns the handler's arguments and raises `FailureError(InvalidParams)` for what the type can't
    rule out. `normalize` may rewrite params that were refused or may have names of the protobuf. They are then read again, and
    the faults left are reported.
    """
    read = build_decoder(wire)

    def decode(raw: Raw | bytes | None, prefix: str = "") -> Arguments:
        text: Raw | bytes = b"{}" if raw is None else raw
        if normalize is not None and has_protobuf_names(text):
            return convert(_read_again(text, prefix), prefix)
        try:
            return convert(read(text), prefix)
        except DECODE_ERRORS:
            pass  # leave the handler: an exception raised here would carry msgspec's text as its context
        return convert(_read_again(text, prefix), prefix)

    def _read_again(text: Raw | bytes, prefix: str) -> Any:
        if normalize is not None:
            text = normalize(text)
            try:
                return read(text)
            except DECODE_ERRORS:
                pass

        from ...daemon.operations.input_errors import find_input_error  # late: a valid request does not need it

        raise FailureError(find_input_error(wire, text, prefix=prefix))

    names = tuple(each.encode_name for each in msgspec.structs.fields(wire))  # type: ignore[arg-type]
    return InputModel(wire, names, None, takes_context=True, keyword_only=(), decode=decode)


def join_path(prefix: str, path: str) -> str:
    """The path of a member in the caller's params. `prefix` is the path of the object that was decoded; empty for the whole."""
    return f"{prefix}.{path}" if prefix else path


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


_MAX_COMMAS: Final = 2_000_000
"""Limits the Python objects that a text may cost, because every item of an array or object becomes one. A text with more
commas stays as it is."""

_MAX_REWRITES: Final = 20_000
"""Arguments rewritten in one text; further ones stay as they are. At 5 µs each, a tenth of a second."""

_ENUM_NUMBERS: Final[dict[type[Enum], dict[int, Enum]]] = {
    Role: {1: Role.USER, 2: Role.AGENT},
    TaskState: {number: state for state, number in STATE_NUMBERS.items()},
}
_UNSPECIFIED: Final[dict[type[Enum], tuple[object, ...]]] = {
    Role: (0, "ROLE_UNSPECIFIED"),
    TaskState: (0, "TASK_STATE_UNSPECIFIED"),
}
_END_OF_PROTOBUF_NAME: Final = re.compile(rb'_[a-z]{1,32}"\s*:')  # its first letter is a literal: that is what is fast
_ESCAPE: Final = rb"\u005"  # of an underscore, and of some others
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}")  # int32

_encode: Final = msgspec.json.Encoder().encode
_read_list: Final = msgspec.json.Decoder(list[Raw]).decode
_read_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_read_text: Final = msgspec.json.Decoder(str).decode
_read_scalar: Final = msgspec.json.Decoder(str | int | float).decode
_NULL: Final = b"null"


@final
class _Budget:
    """How many more values may be rewritten."""

    __slots__ = ("remaining",)

    def __init__(self) -> None:
        self.remaining = _MAX_REWRITES


_Rewrite: TypeAlias = Callable[[Raw | bytes, _Budget], Raw | bytes | None]
"""Returns a refused text rewritten or unchanged, None if it counts as absent. Raises one of `DECODE_ERRORS` for another type."""


@final
class Normalizer:
    """Normalizes texts of the type `wire`."""

    def __init__(self, wire: type[Any]) -> None:
        self._value = functools.cache(lambda: _Value(type_info(wire)))  # late: a valid text does not need it

    def __call__(self, text: Raw | bytes) -> bytes:
        if bytes(text).count(b",") > _MAX_COMMAS:
            return bytes(text)
        return bytes(self._value().normalize(text, _Budget()) or _NULL)


def has_protobuf_names(text: Raw | bytes) -> bool:
    """Whether the text may have names of the protobuf, which msgspec would ignore. Also true for some others."""
    data = bytes(text)
    return _END_OF_PROTOBUF_NAME.search(data) is not None or _ESCAPE in data


@final
class _Value:
    """Normalizes values of one type."""

    __slots__ = ("_has_names", "_read", "_rewrite")

    def __init__(self, node: types.Type) -> None:
        self._read = build_decoder(to_annotation(node))
        self._rewrite = _rewrite_of(node)
        self._has_names = self._rewrite is not _keep

    def normalize(self, text: Raw | bytes, budget: _Budget) -> Raw | bytes | None:
        if budget.remaining <= 0:
            return text
        try:
            self._read(text)
        except DECODE_ERRORS:
            pass
        else:
            if not (self._has_names and has_protobuf_names(text)):
                return text
        budget.remaining -= 1
        if len(text) == len(_NULL) and bytes(text) == _NULL:
            return None
        try:
            return self._rewrite(text, budget)
        except (*DECODE_ERRORS, ValueError):
            return text


def _rewrite_of(node: types.Type) -> _Rewrite:
    match node:
        case types.UnionType():
            return _rewrite_of(next(member for member in node.types if not isinstance(member, types.NoneType)))
        case types.StructType():
            return _rewrite_members(node)
        case types.VarTupleType():
            return _rewrite_items(node)
        case types.EnumType():
            return _rewrite_enum(node)
        case types.BytesType():
            return _rewrite_bytes
        case types.IntType():
            return _rewrite_integer
        case _:
            return _keep


def _rewrite_members(node: types.StructType) -> _Rewrite:
    members = {field.encode_name: _Value(field.type) for field in node.fields}
    names = {_protobuf_name(name): name for name in members}

    def rewrite(text: Raw | bytes, budget: _Budget) -> bytes:
        given: dict[str, Raw | bytes | None] = {
            names.get(name, name): value for name, value in _read_members(text).items()
        }
        for name, member in members.items():
            value = given.get(name)
            if value is not None:
                given[name] = member.normalize(value, budget)
        return _encode({name: Raw(value) for name, value in given.items() if value is not None})

    return rewrite


def _protobuf_name(name: str) -> str:
    """`contextId` is `context_id` in the protobuf."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _rewrite_items(node: types.VarTupleType) -> _Rewrite:
    items = _Value(node.item_type)

    def rewrite(text: Raw | bytes, budget: _Budget) -> bytes:
        return _encode([Raw(items.normalize(item, budget) or item) for item in _read_list(text)])

    return rewrite


def _rewrite_enum(node: types.EnumType) -> _Rewrite:
    numbers, absent = _ENUM_NUMBERS.get(node.cls, {}), _UNSPECIFIED.get(node.cls, ())

    def rewrite(text: Raw | bytes, _: _Budget) -> Raw | bytes | None:
        match _read_scalar(text):
            case value if value in absent:
                return None
            case int(number) if number in numbers:
                return _encode(numbers[number])
            case _:
                return text

    return rewrite


def _rewrite_bytes(text: Raw | bytes, _: _Budget) -> bytes:
    return _encode(encode_base64(decode_base64(_read_text(text))))


def _rewrite_integer(text: Raw | bytes, _: _Budget) -> Raw | bytes:
    match _read_scalar(text):
        case str(digits) if _INTEGER.fullmatch(digits):
            return _encode(int(digits))
        case float(number) if number.is_integer():
            return _encode(int(number))
        case _:
            return text


def _keep(text: Raw | bytes, _: _Budget) -> Raw | bytes:
    return text
