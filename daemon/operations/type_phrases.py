"""What a type looks like from the JSON side: which kinds of value it takes, and the words that say so.

Reads `msgspec.inspect` nodes and says declared facts only. Never sees a payload.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

import msgspec
from msgspec import inspect as types

Slotted: TypeAlias = types.TupleType | types.NamedTupleType | types.StructType
Fielded: TypeAlias = types.StructType | types.DataclassType | types.TypedDictType

_STRING: Final = frozenset({"string"})
_NUMBER: Final = frozenset({"number"})
_ARRAY: Final = frozenset({"array"})
_OBJECT: Final = frozenset({"object"})
_ANY: Final = frozenset({"string", "number", "boolean", "null", "array", "object"})


class _Leaf(msgspec.Struct, frozen=True):
    python: Any  # the annotation that msgspec decodes it by
    word: str
    kinds: frozenset[str]


_ANYTHING: Final = _Leaf(Any, "any value", _ANY)
_LEAVES: Final[dict[type[types.Type], _Leaf]] = {  # what is neither here nor a container counts as anything
    types.RawType: _Leaf(msgspec.Raw, "any value", _ANY),
    types.NoneType: _Leaf(type(None), "null", frozenset({"null"})),
    types.BoolType: _Leaf(bool, "boolean", frozenset({"boolean"})),
    types.IntType: _Leaf(int, "integer", _NUMBER),
    types.FloatType: _Leaf(float, "number", _NUMBER),
    types.DecimalType: _Leaf(decimal.Decimal, "decimal number", _STRING | _NUMBER),
    types.StrType: _Leaf(str, "string", _STRING),
    types.BytesType: _Leaf(bytes, "base64 string", _STRING),
    types.ByteArrayType: _Leaf(bytearray, "base64 string", _STRING),
    types.MemoryViewType: _Leaf(memoryview, "base64 string", _STRING),
    types.DateTimeType: _Leaf(datetime.datetime, "date-time", _STRING),
    types.DateType: _Leaf(datetime.date, "date", _STRING),
    types.TimeType: _Leaf(datetime.time, "time", _STRING),
    types.TimeDeltaType: _Leaf(datetime.timedelta, "duration", _STRING),
    types.UUIDType: _Leaf(uuid.UUID, "UUID", _STRING),
}
_GENERICS: Final[dict[type[types.Type], Any]] = {
    types.ListType: list,
    types.SetType: set,
    types.FrozenSetType: frozenset,
    types.VarTupleType: tuple,
    types.TupleType: tuple,
    types.DictType: dict,
}
_CONSTRAINTS: Final = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
_SIGNS: Final = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "a multiple of"}


class Slot(msgspec.Struct, frozen=True):
    """One place of an array whose places have types of their own."""

    type: types.Type
    required: bool


def kinds(node: types.Type) -> frozenset[str]:
    """The JSON types of which a value of this type can be."""
    match node:
        case types.Metadata():
            return kinds(node.type)
        case types.UnionType():
            return frozenset[str]().union(*map(kinds, node.types))
        case types.LiteralType():
            return frozenset(map(_kind_of_value, node.values))
        case types.EnumType():
            return frozenset(_kind_of_value(member.value) for member in node.cls)
        case types.CollectionType() | types.TupleType() | types.NamedTupleType():
            return _ARRAY
        case types.StructType():
            return _ARRAY if node.array_like else _OBJECT
        case types.DataclassType() | types.TypedDictType() | types.DictType():
            return _OBJECT
        case _:
            return _LEAVES.get(type(node), _ANYTHING).kinds


def _kind_of_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "number"
        case _:
            return "string"


def accepted(node: types.Type) -> tuple[str, ...] | None:
    """The closed list of values of a literal, an enum or a union of such; None where the type is open.

    Strings stand for themselves, other values as JSON.
    """
    match node:
        case types.Metadata():
            return accepted(node.type)
        case types.LiteralType():
            return tuple(map(_spelled, node.values))
        case types.EnumType():
            return tuple(_spelled(member.value) for member in node.cls)
        case types.UnionType():
            return _accepted_by_all(node.types)
        case _:
            return None


def _accepted_by_all(members: Iterable[types.Type]) -> tuple[str, ...] | None:
    values: list[str] = []
    for member in members:
        closed = ("null",) if isinstance(member, types.NoneType) else accepted(member)
        if closed is None:
            return None
        values += closed
    return tuple(dict.fromkeys(values))


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def phrase(node: types.Type) -> str:
    """The type in a few words: `integer >= 1`, `string of 1 to 10 characters`, `string or null`, `one of`."""
    if accepted(node) is not None:
        return "one of"
    match node:
        case types.Metadata():
            return phrase(node.type)
        case types.UnionType():
            return _alternatives(map(phrase, node.types))
        case types.IntType() | types.FloatType():
            return _joined(_word(node), _bounds(node))
        case types.StrType():
            pattern = "matching a pattern" if node.pattern else ""
            return _joined(_word(node), _span("of", node, "character"), pattern)
        case types.BytesType() | types.ByteArrayType() | types.MemoryViewType():
            return _joined(_word(node), _span("of", node, "byte"))
        case types.DateTimeType(tz=tz) | types.TimeType(tz=tz) if tz is not None:
            return f"{_word(node)} {'with' if tz else 'without'} time zone"
        case types.CollectionType():
            return _joined("array", _items(node.item_type), _span("with", node, "item"))
        case types.TupleType() | types.NamedTupleType():
            return _slots_phrase(node)
        case types.StructType() if node.array_like:
            return _slots_phrase(node)
        case types.DictType():
            return _joined("object", _keys(node.key_type), _span("of", node, "member"))
        case _:
            return _word(node)


def _word(node: types.Type) -> str:
    match node:
        case types.Metadata():
            return _word(node.type)
        case types.UnionType():
            return _alternatives(map(_word, node.types))
        case types.CustomType() if node.cls is not object:
            return node.cls.__name__
        case _ if kinds(node) == _ARRAY:
            return "array"
        case _ if kinds(node) == _OBJECT:
            return "object"
        case types.LiteralType() | types.EnumType():
            return _alternatives(sorted(kinds(node)))
        case _:
            return _LEAVES.get(type(node), _ANYTHING).word


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _alternatives(words: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def _items(item: types.Type) -> str:
    return "" if isinstance(item, types.AnyType) else f"of {_word(item)}"


def _keys(key: types.Type) -> str:
    plain = isinstance(key, types.AnyType) or key == types.StrType()
    return "" if plain else f"with {_word(key)} keys"


def _bounds(node: types.IntType | types.FloatType) -> str:
    limits = [(sign, getattr(node, name)) for name, sign in _SIGNS.items()]
    return " and ".join(f"{sign} {limit}" for sign, limit in limits if limit is not None)


def _span(preposition: str, node: Any, unit: str) -> str:  # Any: whichever node has the two lengths
    return _counted(preposition, node.min_length or 0, node.max_length, unit)


def _counted(preposition: str, low: int, high: int | None, unit: str) -> str:
    plural = unit if (high or low) == 1 else f"{unit}s"
    if low == high:
        return f"{preposition} {low} {plural}"
    if high is None:
        return f"{preposition} at least {low} {plural}" if low else ""
    return f"{preposition} {low} to {high} {plural}" if low else f"{preposition} at most {high} {plural}"


def slots(node: Slotted) -> tuple[Slot, ...]:
    """The places of a fixed tuple, a named tuple or an array-like struct, the struct's tag included."""
    match node:
        case types.TupleType():
            return tuple(Slot(item, required=True) for item in node.item_types)
        case types.NamedTupleType():
            return tuple(Slot(field.type, field.required) for field in node.fields)
        case types.StructType():
            tag = () if node.tag is None else (Slot(types.LiteralType((node.tag,)), required=True),)
            return tag + tuple(Slot(field.type, field.required) for field in node.fields)


def _slots_phrase(node: Slotted) -> str:
    places = slots(node)
    least = max((index for index, slot in enumerate(places, 1) if slot.required), default=0)
    surplus_ignored = isinstance(node, types.StructType) and not node.forbid_unknown_fields
    return _joined("array", _counted("of", least, None if surplus_ignored else len(places), "item"))


def members(node: Fielded) -> dict[str, types.Field]:
    """The declared members of an object type by the name that they have in JSON, a struct's tag first."""
    fields = {field.encode_name: field for field in node.fields}
    if isinstance(node, types.StructType) and node.tag is not None and node.tag_field is not None:
        tag = types.Field(node.tag_field, node.tag_field, types.LiteralType((node.tag,)), required=False)
        return {tag.encode_name: tag} | fields
    return fields


def annotation(node: types.Type) -> Any:
    """A Python annotation that msgspec decodes as it would the type that this node was read from."""
    match node:
        case types.Metadata():
            return annotation(node.type)
        case types.UnionType():
            return Union[tuple(map(annotation, node.types))]  # noqa: UP007 - of a tuple made at run time
        case types.LiteralType():
            return Literal[node.values]
        case types.TupleType():
            return _GENERICS[type(node)][tuple(map(annotation, node.item_types))]
        case types.CollectionType():
            item = annotation(node.item_type)
            items = (item, ...) if isinstance(node, types.VarTupleType) else item
            return _constrained(_GENERICS[type(node)][items], node)
        case types.DictType():
            return _constrained(_GENERICS[type(node)][annotation(node.key_type), annotation(node.value_type)], node)
        case (
            types.StructType()
            | types.DataclassType()
            | types.TypedDictType()
            | types.NamedTupleType()
            | types.EnumType()
            | types.CustomType()
        ):
            return node.cls
        case _:
            return _constrained(_LEAVES.get(type(node), _ANYTHING).python, node)


def _constrained(python: Any, node: types.Type) -> Any:
    given = {name: getattr(node, name, None) for name in _CONSTRAINTS}
    given = {name: limit for name, limit in given.items() if limit is not None}
    return Annotated[python, msgspec.Meta(**given)] if given else python
