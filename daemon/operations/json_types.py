"""Finds types that JSON can't represent, and defaults that are not of their type, before a request meets them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, get_args

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, ValidationError, msgpack
from msgspec import inspect as types  # msgspec has loaded it already
from msgspec.json import Decoder, encode
from msgspec.structs import fields

from ...errors.decoders import convert, decoder_for, type_info

_ADVICE: Final = "use types that msgspec encodes, such as a Struct"
_MAX_DEPTH: Final = 64
"""Members within members that are looked through for one that can't be encoded: a value may hold itself."""
_EMPTY: Final = (list, dict, set, bytearray)
_PLAIN: Final = (bool, int, float, str)
_ARRAYS: Final = (list, tuple, set, frozenset)
_NEVER_HASHABLE: Final = (
    types.ListType, types.SetType, types.DictType, types.TypedDictType, types.ByteArrayType, types.RawType,
)  # fmt: skip
_NO_KEYS: Final = (
    types.NoneType, types.BoolType, types.RawType, types.CollectionType, types.TupleType, types.NamedTupleType,
    types.DictType, types.TypedDictType, types.StructType, types.DataclassType,
)  # fmt: skip
"""Types whose values are never JSON strings, which keys of objects are."""


def without_metadata(node: types.Type) -> types.Type:
    """The type itself, without `Metadata` around it."""
    return without_metadata(node.type) if isinstance(node, types.Metadata) else node


def require_json_type(annotation: Any, what: str) -> None:  # Any: whatever a handler is annotated with
    """Raises `TypeError` for the first type in `annotation`, nested ones included, that JSON can't represent.

    `what` begins the message: what the annotation is for.
    """
    try:
        fault = _find_fault(type_info(annotation), set())
    except (TypeError, RuntimeError) as exc:  # msgspec's own words, which name types only
        raise TypeError(f"{what}: {exc}") from exc
    if fault is not None:
        raise TypeError(f"{what}: {fault}")


def require_json_members(struct: type[Struct], prefix: str, suffix: str = "") -> None:
    """Raises `TypeError` for a member that JSON can't represent; `prefix` and `suffix` stand around its name."""
    for field in fields(struct):
        require_json_type(field.type, f"{prefix}{field.name}{suffix}")


def require_defaults(struct: type[Struct], prefix: str) -> None:
    """Raises `TypeError` for a member whose default does not fit its type."""
    for field in fields(struct):
        factory = field.default_factory
        default = factory() if factory in _EMPTY else field.default
        if default is not NODEFAULT:
            require_default(default, field.type, f"{prefix}{field.name}")


def require_default(default: Any, annotation: Any, what: str) -> None:
    """Raises `TypeError` for a default that is not one of the values that a caller may send, as the handler would see it."""
    if not _fits(default, annotation):
        from .type_phrases import describe_for_people  # late: only a wrong declaration needs it

        expected = describe_for_people(type_info(annotation))
        advice = "; annotate it with | None as well" if default is None else ""
        raise TypeError(
            f"{what}: its default, a value of {type(default).__name__}, does not fit its annotation: {expected}{advice}"
        )


def may_hold_floats(annotation: Any) -> bool:
    """Whether a value of this type may hold a float somewhere."""
    return _holds(type_info(annotation), (types.FloatType, types.AnyType, types.CustomType, types.RawType), set())


def _holds(node: object, kinds: tuple[type, ...], seen: set[int]) -> bool:
    if isinstance(node, kinds):
        return True
    if id(node) in seen:
        return False
    seen.add(id(node))
    return any(_holds(part, kinds, seen) for part in _parts(node))


_endless_double: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search
"""The first bytes of NaN and the infinities in MessagePack: type, sign, and an exponent of all ones. Others may hold it, too."""

_encode_packed: Final = msgpack.Encoder().encode
_decode: Final = Decoder().decode


def require_finite(value: object) -> None:
    """Raises `ValueError` for a value that holds NaN or an infinity, in whatever msgspec encodes.

    A second encoding, in which they are no `null`, tells in C that there is none: nothing in it looks like one, or the
    value is the same by way of JSON. Only where one may be, each value is looked at.
    """
    try:
        packed = _encode_packed(value)
        if _endless_double(packed) is None or packed == _encode_packed(_decode(encode(value))):
            return
    except (TypeError, ValueError, OverflowError, RecursionError):  # MessagePack holds integers of 64 bits alone
        pass
    waiting = [value]
    while waiting:
        match waiting.pop():
            case float() as number if not math.isfinite(number):
                raise ValueError(f"JSON can't represent {number}")
            case dict() as mapping:
                waiting += mapping.values()
            case list() | tuple() | set() | frozenset() as items:
                waiting += items
            case Struct() as struct:
                waiting += (getattr(struct, name) for name in struct.__struct_fields__)
            case other if hasattr(other, "__dict__") and not isinstance(other, type):
                waiting += vars(other).values()  # a dataclass, or of attrs
            case other:
                waiting += (getattr(other, name, None) for name in getattr(type(other), "__dataclass_fields__", ()))


def unencodable_member(value: object) -> str:
    """Find the first member of a value that JSON can't represent, as `$.entries[0].path`; empty for the value itself."""
    place = ""
    for _ in range(_MAX_DEPTH):
        step = next(((step, member) for step, member in _members(value) if not _encodes(member)), None)
        if step is None:
            break
        place, value = place + step[0], step[1]
    return f"${place}" if place else ""


def _members(value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            yield from (
                (f".{key}" if isinstance(key, str) and key.isidentifier() else "[…]", value[key]) for key in value
            )
        case list() | tuple():
            yield from ((f"[{index}]", item) for index, item in enumerate(value))
        case Struct():
            yield from ((f".{name}", getattr(value, name, None)) for name in value.__struct_fields__)
        case _:
            yield from ((f".{name}", getattr(value, name, None)) for name in getattr(value, "__dataclass_fields__", ()))


def _encodes(value: object) -> bool:
    try:
        encode(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _find_fault(node: object, seen: set[int]) -> str | None:
    """Name the part of a type that JSON can't represent, in a few words."""
    if id(node) in seen:  # recursive types
        return None
    seen.add(id(node))
    match node:
        case types.CustomType() if node.cls is not object:
            return f"JSON can't represent the type {node.cls.__name__}; {_ADVICE}"
        case types.SetType() | types.FrozenSetType() if not _is_hashable(node.item_type):
            return "a set can't hold items that have no hash, such as lists; use a list"
        case types.DictType() if isinstance(without_metadata(node.key_type), _NO_KEYS):
            return "the keys of a JSON object are strings; use a dict with keys that are"
        case _:
            pass
    return next((found for part in _parts(node) if (found := _find_fault(part, seen)) is not None), None)


def _parts(node: object) -> list[object]:
    """Return the parts of a type."""
    if isinstance(node, types.Type | types.Field):
        return [getattr(node, name) for name in _fields(node)]
    return list(node) if isinstance(node, tuple) else []


def _fields(node: Struct) -> tuple[str, ...]:
    return () if isinstance(node, types.LiteralType) else node.__struct_fields__


def _is_hashable(node: types.Type) -> bool:
    match without_metadata(node):
        case types.UnionType(types=parts) | types.TupleType(item_types=parts):
            return all(map(_is_hashable, parts))
        case types.VarTupleType(item_type=item):
            return _is_hashable(item)
        case types.StructType(cls=cls):
            return cls.__struct_config__.frozen or not cls.__struct_config__.eq or "__hash__" in vars(cls)
        case types.DataclassType(cls=cls):
            return cls.__hash__ is not None
        case plain:
            return not isinstance(plain, _NEVER_HASHABLE)


def _fits(default: Any, annotation: Any) -> bool:
    if default is UNSET:
        return _takes_unset(annotation)
    if isinstance(default, str) and any("\ud800" <= char <= "\udfff" for char in default):
        return False
    if type(default) is annotation and annotation in _PLAIN:
        return True
    if isinstance(without_metadata(type_info(annotation)), types.AnyType | types.CustomType | types.RawType):
        return True
    try:
        seen = convert(default, annotation)
    except (ValidationError, TypeError, ValueError):
        return _reads_back(default, annotation)
    arrays = isinstance(seen, _ARRAYS) and isinstance(default, _ARRAYS)
    return arrays or type(seen) is type(default) or bool(seen == default)


def _reads_back(default: Any, annotation: Any) -> bool:
    """Whether a caller who sends the default gives the handler the default: flags, which `convert` refuses."""
    try:
        return bool(decoder_for(annotation)(encode(default)) == default)
    except (ValidationError, TypeError, ValueError):
        return False


def _takes_unset(annotation: Any) -> bool:
    return annotation is UnsetType or any(map(_takes_unset, get_args(annotation)))
