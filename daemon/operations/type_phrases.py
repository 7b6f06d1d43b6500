"""Types in words, as error messages and descriptions say them. Says declared facts only, and never sees a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from ...errors.failures import JsonScalar
from .type_shapes import TupleLike, json_kinds, required_length, scalar, tuple_items

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
    """As `describe_type`, with the closed list where there is one. An enum that takes more than it lists has none."""
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
