"""What a client of some operations consists of, said without a language: types, errors, operations, each with its name.

Names of types are final here; what their members are called is each language's own affair.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

ScalarKind: TypeAlias = Literal[
    "any", "null", "boolean", "integer", "number", "string",
    "bytes", "date", "datetime", "decimal", "duration", "time", "uuid",
]  # fmt: skip


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts. Those that JSON has no type for are strings on the wire."""

    kind: ScalarKind


class Values(msgspec.Struct, frozen=True):
    """One out of a closed list."""

    values: tuple[str | int, ...]


class Many(msgspec.Struct, frozen=True):
    """An array of any length."""

    items: Type


class Places(msgspec.Struct, frozen=True):
    """An array whose places have types of their own, all of them required."""

    types: tuple[Type, ...]


class Keyed(msgspec.Struct, frozen=True):
    """An object of any members. `keys` is the closed list of their names, empty where any will do."""

    values: Type
    keys: tuple[str, ...] = ()


class Named(msgspec.Struct, frozen=True):
    """A declared type."""

    name: str


class Either(msgspec.Struct, frozen=True):
    """A union of at least two types, none of them itself a union."""

    types: tuple[Type, ...]


Type: TypeAlias = Scalar | Values | Many | Places | Keyed | Named | Either


class Field(msgspec.Struct, frozen=True):
    """A member, a param or a place. `default` is UNSET where none is known; `full_doc` tells it, `doc` does not."""

    wire: str
    type: Type
    required: bool
    doc: str = ""
    full_doc: str = ""
    default: object = msgspec.UNSET


class Tag(msgspec.Struct, frozen=True):
    """What tells the types of a union apart: a member, or with an empty name the first place."""

    wire: str
    value: str | int


class Record(msgspec.Struct, frozen=True):
    """A JSON object with declared members; with `positional`, an array whose places are the fields."""

    name: str
    doc: str
    fields: tuple[Field, ...]
    tag: Tag | None = None
    positional: bool = False


class Alias(msgspec.Struct, frozen=True):
    """A name for a type without members of its own."""

    name: str
    doc: str
    type: Type


class Error(msgspec.Struct, frozen=True):
    """A declared error; `fields` are its details."""

    name: str
    code: str
    message: str
    doc: str
    http_status: int
    retryable: bool
    fields: tuple[Field, ...]


class Operation(msgspec.Struct, frozen=True):
    """One method. `rest` is the type of further params, where it takes some; `errors` are names of `Error`s.

    `error_type` and `params_type` are names for what a language makes of them. The result of a subscription is one
    event.
    """

    wire: str
    verb: str
    streams: bool
    doc: str
    params: tuple[Field, ...]
    rest: Type | None
    result: Type
    errors: tuple[str, ...]
    error_type: str
    params_type: str


class Namespace(msgspec.Struct, frozen=True):
    """The operations whose names begin alike."""

    wire: str
    name: str
    operations: tuple[Operation, ...]


class Module(msgspec.Struct, frozen=True):
    """All of a client. An alias comes behind those that it refers to; everything else is sorted by name."""

    records: tuple[Record, ...]
    aliases: tuple[Alias, ...]
    errors: tuple[Error, ...]
    namespaces: tuple[Namespace, ...]


_WORD = 7
"""What a name counts for, however long it is: another one would not be shorter."""


def size(tp: Type) -> int:
    """About how many characters it takes to write a type down."""
    match tp:
        case Scalar() | Named():
            return _WORD
        case Values():
            return sum(len(str(value)) + 4 for value in tp.values)
        case Many():
            return size(tp.items) + len("list[]")
        case Keyed():
            return size(tp.values) + len("dict[str, ]") + sum(len(key) + 4 for key in tp.keys)
        case Places() | Either():
            return sum(size(part) + 3 for part in tp.types)
