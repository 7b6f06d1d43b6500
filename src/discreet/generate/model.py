"""The model of a client: its types, errors and operations, without any language's syntax.

Names of types are final here. Each language chooses the names of members, params and methods itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

ScalarKind: TypeAlias = Literal[
    "any", "null", "boolean", "integer", "number", "string",
    "bytes", "date", "datetime", "decimal", "duration", "time", "uuid",
]  # fmt: skip


class ScalarType(msgspec.Struct, frozen=True):
    """A value without parts. A kind that JSON has no type for is a string on the wire."""

    kind: ScalarKind


class LiteralType(msgspec.Struct, frozen=True):
    """One of a closed list of values."""

    values: tuple[str | int, ...]


class ArrayType(msgspec.Struct, frozen=True):
    """An array of any length."""

    items: Type


class TupleType(msgspec.Struct, frozen=True):
    """An array of fixed length, with a type for each item."""

    items: tuple[Type, ...]


class MapType(msgspec.Struct, frozen=True):
    """An object with any members. `keys` is the closed list of their names; empty means any name."""

    values: Type
    keys: tuple[str, ...] = ()


class TypeReference(msgspec.Struct, frozen=True):
    """A `Record` or an `Alias`, by name."""

    name: str


class UnionType(msgspec.Struct, frozen=True):
    """A union of at least two types, none of them a union."""

    members: tuple[Type, ...]


Type: TypeAlias = ScalarType | LiteralType | ArrayType | TupleType | MapType | TypeReference | UnionType

ANY_TYPE: Final = ScalarType("any")


class Field(msgspec.Struct, frozen=True):
    """A member of an object, or a param.

    `default` is UNSET where none is known. `full_description` is the description with the default added.
    """

    wire_name: str
    type: Type
    required: bool
    description: str = ""
    full_description: str = ""
    default: Any = msgspec.UNSET  # JSON


class RecordTag(msgspec.Struct, frozen=True):
    """The member that tells the records of a union apart."""

    wire_name: str
    value: str | int


class Record(msgspec.Struct, frozen=True):
    """A JSON object with declared members."""

    name: str
    description: str
    fields: tuple[Field, ...]
    tag: RecordTag | None = None


class Alias(msgspec.Struct, frozen=True):
    """A name for a type that is not a record."""

    name: str
    description: str
    type: Type


class ErrorType(msgspec.Struct, frozen=True):
    """An error that an operation declares. `fields` are its details."""

    name: str
    code: str
    message: str
    description: str
    http_status: int
    retryable: bool
    fields: tuple[Field, ...]


class Operation(msgspec.Struct, frozen=True):
    """One operation. `method` is the last part of its wire name.

    `extra_params` is the type of further params, None where none are taken. `result` is the type of one event if
    `is_subscription`. `errors` are names of `ErrorType`s. `error_union` and `params_type` are names for the types
    that a language declares for the errors and the params, `error_list` is that of a constant with all errors.
    """

    wire_name: str
    method: str
    is_subscription: bool
    description: str
    params: tuple[Field, ...]
    extra_params: Type | None
    result: Type
    errors: tuple[str, ...]
    error_union: str
    error_list: str
    params_type: str


class Namespace(msgspec.Struct, frozen=True):
    """The operations whose wire names have the same first part."""

    wire_name: str
    name: str
    description: str
    operations: tuple[Operation, ...]


class Client(msgspec.Struct, frozen=True):
    """A whole client. Each alias follows the aliases that it refers to; everything else is sorted by name."""

    records: tuple[Record, ...]
    aliases: tuple[Alias, ...]
    errors: tuple[ErrorType, ...]
    namespaces: tuple[Namespace, ...]


def union_of(members: Iterable[Type]) -> Type:
    """Return the union, without unions in it and without repetition. With `ANY_TYPE` in it, or empty, it is `ANY_TYPE`."""
    flat: dict[Type, None] = {}
    for member in members:
        flat |= dict.fromkeys(member.members if isinstance(member, UnionType) else (member,))
    if ANY_TYPE in flat or not flat:
        return ANY_TYPE
    return next(iter(flat)) if len(flat) == 1 else UnionType(tuple(flat))


def parts_of(tp: Type) -> tuple[Type, ...]:
    """Return the types directly inside a type."""
    match tp:
        case ArrayType(items=part) | MapType(values=part):
            return (part,)
        case TupleType(items=parts) | UnionType(members=parts):
            return parts
        case _:
            return ()


def map_references(tp: Type, replace: Callable[[TypeReference], Type]) -> Type:
    """Return the type with each reference in it replaced."""
    parts = tuple(map_references(part, replace) for part in parts_of(tp))
    match tp:
        case TypeReference():
            return replace(tp)
        case ArrayType():
            return ArrayType(parts[0])
        case TupleType():
            return TupleType(parts)
        case MapType():
            return MapType(parts[0], tp.keys)
        case UnionType():
            return union_of(parts)
        case _:
            return tp


def references(tp: Type) -> Iterator[str]:
    """Yield the name of each reference in a type."""
    if isinstance(tp, TypeReference):
        yield tp.name
    for part in parts_of(tp):
        yield from references(part)


_NAME_CHARS: Final = 7
"""The size of any name: replacing a long one by an alias would not make the type shorter."""


def written_size(tp: Type) -> int:
    """Return about how many characters it takes to write the type down."""
    inner = sum(written_size(part) + 3 for part in parts_of(tp))
    match tp:
        case ScalarType() | TypeReference():
            return _NAME_CHARS
        case LiteralType():
            return sum(len(str(value)) + 4 for value in tp.values)
        case ArrayType():
            return inner + len("list[]") - 3
        case MapType():
            return inner + len("dict[str, ]") - 3 + sum(len(key) + 4 for key in tp.keys)
        case _:
            return inner
