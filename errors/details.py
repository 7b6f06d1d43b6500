"""Scrubs the details of a declared error along their declared type, and finds facts that would never be seen.

Only what may hold any text is scrubbed. Closed lists, numbers, booleans, dates and UUIDs can't hold a secret: removing one
would break the published schema of the error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect as types

from .decoders import type_info

Fields: TypeAlias = "dict[str, types.Type]"

_CLOSED: Final = (
    types.NoneType, types.BoolType, types.IntType, types.FloatType, types.DecimalType, types.LiteralType, types.EnumType,
    types.UUIDType, types.DateTimeType, types.DateType, types.TimeType, types.TimeDeltaType,
)  # fmt: skip
"""Types whose values are numbers, members of a closed list, or texts of a format that no secret has."""
_ANY_TEXT: Final = (types.StrType, types.AnyType, types.RawType, types.CustomType)
_BYTES: Final = (types.BytesType, types.ByteArrayType, types.MemoryViewType)
_OBJECTS: Final = (types.StructType, types.DataclassType, types.TypedDictType)
_ARRAYS: Final = (types.ListType, types.VarTupleType, types.SetType, types.FrozenSetType, types.CollectionType)


def without_secrets(details: object, tp: Any) -> tuple[object, int]:
    """The details, given as JSON values, without secrets in their texts, and the number of replacements.

    Without any, the result is equal to `details`.
    """
    return _scrub(details, _type_info(tp), "")


def hidden_facts(tp: type[msgspec.Struct]) -> list[str]:
    """The names of texts in details of this type that the scrubber would always remove, in dotted form."""
    return list(dict.fromkeys(_hidden(_type_info(tp), "", frozenset())))


@lru_cache(maxsize=256)
def _type_info(tp: Any) -> types.Type:
    return type_info(tp)


def _scrub(value: Any, node: types.Type, name: str) -> tuple[Any, int]:
    from .redaction import scrub_details, scrub_known  # late: costs start-up time
    from .redaction.limits import REDACTED

    node = _member_for(value, _plain(node))
    if isinstance(node, _CLOSED):
        return value, 0
    if isinstance(node, _BYTES):  # base64: the other layers would take any for a secret
        return (value, 0) if scrub_known(str(value)) == value else (REDACTED, 1)
    if isinstance(value, Mapping) and isinstance(node, (*_OBJECTS, types.DictType)):
        return _scrub_object(value, node)
    if isinstance(value, list):
        scrubbed = [_scrub(item, of, name) for item, of in zip(value, _item_types(node, len(value)), strict=True)]
        return [item for item, _ in scrubbed], sum(count for _, count in scrubbed)
    if not name:
        return scrub_details(value)
    named, count = scrub_details({name: value})
    assert isinstance(named, Mapping)
    return next(iter(named.values())), count


def _scrub_object(value: Mapping[str, Any], node: types.Type) -> tuple[dict[str, Any], int]:
    from .redaction import scrub_secrets  # late: costs start-up time

    fields = _fields(node)
    other = node.value_type if isinstance(node, types.DictType) else types.AnyType()
    result: dict[str, Any] = {}
    total = 0
    for key, item in value.items():
        shown, in_key = (key, 0) if key in fields else scrub_secrets(key)
        result[shown], in_item = _scrub(item, fields.get(key, other), key)
        total += in_key + in_item
    return result, total


def _item_types(node: types.Type, count: int) -> list[types.Type]:
    """The types of the items of an array of `count` items."""
    if isinstance(node, _ARRAYS):
        return [node.item_type] * count
    if isinstance(node, types.TupleType):
        given = list(node.item_types)
    else:  # a struct that is encoded as an array: its tag comes first
        given = list(_fields(node).values())
        if isinstance(node, types.StructType) and node.tag is not None:
            given.insert(0, types.NoneType())
    return [*given, *[types.AnyType()] * count][:count]


def _plain(node: types.Type) -> types.Type:
    while isinstance(node, types.Metadata):
        node = node.type
    return node


def _member_for(value: object, node: types.Type) -> types.Type:
    """The member of a union that a JSON value belongs to. Where several could hold it, the least closed one."""
    if not isinstance(node, types.UnionType):
        return node
    members = [_plain(member) for member in node.types]
    match value:
        case str():
            literals = [member for member in members if isinstance(member, types.LiteralType | types.EnumType)]
            if any(value in _values(member) for member in literals):
                return literals[0]
            return next((member for member in members if not isinstance(member, (*_CLOSED, *_OBJECTS))), members[0])
        case Mapping():
            found = [member for member in members if isinstance(member, (*_OBJECTS, types.DictType))]
            tagged = [m for m in found if isinstance(m, types.StructType) and value.get(m.tag_field or "") == m.tag]
            return next(iter([*tagged, *found]), types.AnyType())
        case list():
            return next(
                (member for member in members if isinstance(member, (*_ARRAYS, types.TupleType))), types.AnyType()
            )
        case _:
            return types.NoneType()


def _values(node: types.Type) -> tuple[object, ...]:
    if isinstance(node, types.EnumType):
        return tuple(member.value for member in node.cls)
    return node.values if isinstance(node, types.LiteralType) else ()


def _fields(node: types.Type) -> Fields:
    fields = getattr(node, "fields", ())
    return {field.encode_name: field.type for field in fields}


def _hidden(node: types.Type, name: str, above: frozenset[type]) -> Iterator[str]:
    from .redaction.layers.sensitivity import Sensitivity, name_sensitivity  # late: costs start-up time

    node = _plain(node)
    if isinstance(node, types.UnionType):
        for member in node.types:
            yield from _hidden(member, name, above)
    elif isinstance(node, (*_OBJECTS, types.NamedTupleType)):
        if node.cls not in above:
            for field, of in _fields(node).items():
                yield from _hidden(of, name if _is_positional(node) else _dotted(name, field), above | {node.cls})
    elif isinstance(node, _ARRAYS):
        yield from _hidden(node.item_type, name, above)
    elif isinstance(node, types.DictType):
        for key in _values(_plain(node.key_type)) or ("*",):
            yield from _hidden(node.value_type, _dotted(name, str(key)), above)
    elif isinstance(node, types.TupleType):
        for item in node.item_types:
            yield from _hidden(item, name, above)
    elif isinstance(node, _ANY_TEXT) and name_sensitivity(name.rpartition(".")[2]) is Sensitivity.CERTAIN:
        yield name


def _is_positional(node: types.Type) -> bool:
    """Whether it is an array in JSON, so that its fields have no names there."""
    return isinstance(node, types.NamedTupleType) or (isinstance(node, types.StructType) and node.array_like)


def _dotted(name: str, field: str) -> str:
    return f"{name}.{field}" if name else field
