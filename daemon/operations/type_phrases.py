"""Types as JSON sees them: which kinds of value a type takes, what an array or object consists of, and that in words.

Reads `msgspec.inspect` nodes. Says declared facts only, and never sees a value.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

import msgspec
from msgspec import inspect as types

from ...errors.failures import JsonScalar

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


# In words.


_SIGNS: Final = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "a multiple of"}


def accepted_values(node: types.Type) -> tuple[JsonScalar, ...] | None:
    """The closed list of values of a literal, an enum or a union of such, as a caller may send them; None for other types."""
    match node:
        case types.Metadata():
            return accepted_values(node.type)
        case types.LiteralType():
            return tuple(node.values)
        case types.EnumType():
            return tuple(member.value for member in node.cls)
        case types.UnionType():
            return _accepted_by_all(node.types)
        case _:
            return None


def _accepted_by_all(members: Iterable[types.Type]) -> tuple[JsonScalar, ...] | None:
    values: list[JsonScalar] = []
    for member in members:
        closed = (None,) if isinstance(member, types.NoneType) else accepted_values(member)
        if closed is None:
            return None
        values += closed
    return tuple({(type(value), value): value for value in values}.values())  # True is equal to 1


def describe_type(node: types.Type) -> str:
    """The type in a few words: `integer >= 1`, `string of 1 to 10 characters`, `string or null`.

    A type with a closed list of values is `one of`: `accepted_values` gives the list.
    """
    if accepted_values(node) is not None:
        return "one of"
    match node:
        case types.Metadata():
            return describe_type(node.type)
        case types.UnionType():
            return _alternatives(map(describe_type, node.types))
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
            return _tuple_phrase(node)
        case types.StructType() if node.array_like:
            return _tuple_phrase(node)
        case types.DictType():
            return _joined("object", _keys(node.key_type), _span("of", node, "member"))
        case _:
            return _word(node)


def describe_for_people(node: types.Type) -> str:
    """Describe a type as `describe_type` does, with the closed list if there is one. An enum that takes more than it lists has
    none."""
    closed = accepted_values(node)
    if closed is None:
        return describe_type(node)
    if isinstance(node, types.EnumType) and "_missing_" in vars(node.cls):
        return _word(node)
    return f"one of {', '.join(map(json_text, closed))}"


def json_text(value: JsonScalar) -> str:
    """A value as messages list it: a string as it is, any other as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _word(node: types.Type) -> str:
    match node:
        case types.Metadata():
            return _word(node.type)
        case types.UnionType():
            return _alternatives(map(_word, node.types))
        case types.CustomType() if node.cls is not object:
            return node.cls.__name__
        case _ if json_kinds(node) == {"array"}:
            return "array"
        case _ if json_kinds(node) == {"object"}:
            return "object"
        case types.LiteralType() | types.EnumType():
            return _alternatives(sorted(json_kinds(node)))
        case _:
            return scalar(node).phrase


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


def _tuple_phrase(node: TupleLike) -> str:
    items = tuple_items(node)
    open_ended = isinstance(node, types.StructType) and not node.forbid_unknown_fields
    return _joined("array", _counted("of", required_length(items), None if open_ended else len(items), "item"))
