"""The structure of types as JSON sees it: which kinds of value a type takes, and what an array or object consists of.

Reads `msgspec.inspect` nodes. Never sees a value.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

import msgspec
from msgspec import inspect as types

TupleLike: TypeAlias = types.TupleType | types.NamedTupleType | types.StructType
"""Types whose values are arrays in which each item has a type of its own; of structs, the array-like ones."""

ObjectLike: TypeAlias = types.StructType | types.DataclassType | types.TypedDictType
"""Types whose values are objects with declared members."""

_STRING: Final = frozenset({"string"})
_NUMBER: Final = frozenset({"number"})
_ARRAY: Final = frozenset({"array"})
_OBJECT: Final = frozenset({"object"})
_ANY: Final = frozenset({"string", "number", "boolean", "null", "array", "object"})


class ScalarType(msgspec.Struct, frozen=True):
    """A type without parts. msgspec decodes it by `annotation`; `phrase` says it to people; `kinds` are its JSON types."""

    annotation: Any
    phrase: str
    kinds: frozenset[str]


_ANYTHING: Final = ScalarType(Any, "any value", _ANY)
_SCALARS: Final[dict[type[types.Type], ScalarType]] = {
    types.RawType: ScalarType(msgspec.Raw, "any value", _ANY),
    types.NoneType: ScalarType(type(None), "null", frozenset({"null"})),
    types.BoolType: ScalarType(bool, "boolean", frozenset({"boolean"})),
    types.IntType: ScalarType(int, "integer", _NUMBER),
    types.FloatType: ScalarType(float, "number", _NUMBER),
    types.DecimalType: ScalarType(decimal.Decimal, "decimal number", _STRING | _NUMBER),
    types.StrType: ScalarType(str, "string", _STRING),
    types.BytesType: ScalarType(bytes, "base64 string", _STRING),
    types.ByteArrayType: ScalarType(bytearray, "base64 string", _STRING),
    types.MemoryViewType: ScalarType(memoryview, "base64 string", _STRING),
    types.DateTimeType: ScalarType(datetime.datetime, "date-time", _STRING),
    types.DateType: ScalarType(datetime.date, "date", _STRING),
    types.TimeType: ScalarType(datetime.time, "time", _STRING),
    types.TimeDeltaType: ScalarType(datetime.timedelta, "duration", _STRING),
    types.UUIDType: ScalarType(uuid.UUID, "UUID", _STRING),
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


class TupleItem(msgspec.Struct, frozen=True):
    """One item of a `TupleLike` type."""

    type: types.Type
    required: bool


def without_metadata(node: types.Type) -> types.Type:
    """The type itself, without `Metadata` around it."""
    return without_metadata(node.type) if isinstance(node, types.Metadata) else node


def scalar(node: types.Type) -> ScalarType:
    """The row of a type without parts. A type that is not in the table counts as anything."""
    return _SCALARS.get(type(node), _ANYTHING)


def json_kinds(node: types.Type) -> frozenset[str]:
    """The JSON types of which a value of this type can be."""
    match node:
        case types.Metadata():
            return json_kinds(node.type)
        case types.UnionType():
            return frozenset[str]().union(*map(json_kinds, node.types))
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
            return scalar(node).kinds


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


def tuple_items(node: TupleLike) -> tuple[TupleItem, ...]:
    """The items of a fixed tuple, a named tuple or an array-like struct, the struct's tag included."""
    match node:
        case types.TupleType():
            return tuple(TupleItem(item, required=True) for item in node.item_types)
        case types.NamedTupleType():
            return tuple(TupleItem(field.type, field.required) for field in node.fields)
        case types.StructType():
            tag = () if node.tag is None else (TupleItem(types.LiteralType((node.tag,)), required=True),)
            return tag + tuple(TupleItem(field.type, field.required) for field in node.fields)


def required_length(items: tuple[TupleItem, ...]) -> int:
    """How many items an array must have at least."""
    return max((index for index, item in enumerate(items, 1) if item.required), default=0)


def object_members(node: ObjectLike) -> dict[str, types.Field]:
    """The declared members by their names in JSON, a struct's tag first."""
    fields = {field.encode_name: field for field in node.fields}
    if isinstance(node, types.StructType) and node.tag is not None and node.tag_field is not None:
        tag = types.Field(node.tag_field, node.tag_field, types.LiteralType((node.tag,)), required=False)
        return {tag.encode_name: tag} | fields
    return fields


def to_annotation(node: types.Type) -> Any:
    """A Python annotation that msgspec decodes like the type that this node was read from."""
    match node:
        case types.Metadata():
            return to_annotation(node.type)
        case types.UnionType():
            return Union[tuple(map(to_annotation, node.types))]  # noqa: UP007 - of a tuple made at run time
        case types.LiteralType():
            return Literal[node.values]
        case types.TupleType():
            return _GENERICS[type(node)][tuple(map(to_annotation, node.item_types))]
        case types.CollectionType():
            item = to_annotation(node.item_type)
            items = (item, ...) if isinstance(node, types.VarTupleType) else item
            return _constrained(_GENERICS[type(node)][items], node)
        case types.DictType():
            key, value = to_annotation(node.key_type), to_annotation(node.value_type)
            return _constrained(_GENERICS[type(node)][key, value], node)
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
            return _constrained(scalar(node).annotation, node)


def _constrained(annotation: Any, node: types.Type) -> Any:
    given = {name: getattr(node, name, None) for name in _CONSTRAINTS}
    given = {name: limit for name, limit in given.items() if limit is not None}
    return Annotated[annotation, msgspec.Meta(**given)] if given else annotation
