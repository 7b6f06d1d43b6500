"""Types as Python annotations, and the imports that a module needs for them. Declares nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never, final

import msgspec

from ..ir import (
    Alias,
    ArrayType,
    Client,
    ErrorType,
    Field,
    LiteralType,
    MapType,
    Record,
    ScalarKind,
    ScalarType,
    TupleType,
    Type,
    TypeReference,
    UnionType,
)
from ..names import member_name
from ..pretty_printer import Group, on_one_line
from .syntax import KEYWORDS, constant
from .unions import DecodableUnions

BUILTINS: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"})
"""The builtins that annotations use. A member of such a name would hide it in its class."""

IMPORT_SOURCES: Final = {
    "Any": "typing",
    "Caller": "discreet.client.typed",
    "Decimal": "decimal",
    "Final": "typing",
    "Literal": "typing",
    "Mapping": "collections.abc",
    "OperationError": "discreet.errors",
    "Peer": "discreet.client",
    "Struct": "msgspec",
    "Subscription": "discreet.client",
    "TypeAlias": "typing",
    "UNSET": "msgspec",
    "UUID": "uuid",
    "UnsetType": "msgspec",
}
"""The names that a module may import, and the modules that they come from."""

MODULES: Final = {"builtins": "import builtins", "dt": "import datetime as dt", "msgspec": "import msgspec"}
RESERVED: Final = KEYWORDS | IMPORT_SOURCES.keys() | MODULES.keys()

_SCALARS: Final[dict[ScalarKind, str]] = {
    "any": "Any",
    "null": "None",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "string": "str",
    "bytes": "bytes",
    "date": "dt.date",
    "datetime": "dt.datetime",
    "decimal": "Decimal",
    "duration": "dt.timedelta",
    "time": "dt.time",
    "uuid": "UUID",
}


@final
class Annotations:
    """Writes the types of one module. `used` collects the names to import, `reserved` are the names no member may have."""

    def __init__(self, client: Client) -> None:
        self.used: set[str] = set()
        self._unions = DecodableUnions(client)
        listed: tuple[Record | Alias | ErrorType, ...] = (*client.records, *client.aliases, *client.errors)
        declared = {declared.name for declared in listed}
        self.reserved = RESERVED | declared | {"self", "result"}
        self._hidden = BUILTINS & {self.member(name) for name in _member_names(client)}

    def member(self, wire_name: str) -> str:
        """Return the name of a member, param or method."""
        return member_name(wire_name, self.reserved)

    def use(self, name: str) -> str:
        """Return the name, which is imported then. A builtin that some member hides is qualified."""
        if name in self._hidden:
            name = f"builtins.{name}"
        self.used.add(name.partition(".")[0])
        return name

    def annotation(self, tp: Type) -> str:
        """Return a type as an expression that msgspec decodes, too."""
        return " | ".join(self.alternatives(tp))

    def alternatives(self, tp: Type) -> list[str]:
        """Return the members of a union, each as an expression; any other type is its only member."""
        match tp:
            case ScalarType():
                return [self.use(_SCALARS[tp.kind])]
            case TypeReference():
                return [tp.name]
            case LiteralType() | TupleType() | MapType():
                return [on_one_line(self.group(tp))]
            case ArrayType():
                return [f"{self.use('list')}[{self.annotation(tp.items)}]"]
            case UnionType():
                written = (part for member in self._unions.members(tp) for part in self.alternatives(member))
                return list(dict.fromkeys(written))
            case _:
                assert_never(tp)

    def group(self, tp: LiteralType | TupleType | MapType) -> Group:
        """Return a type that has several things between its brackets, so that it can be broken there."""
        match tp:
            case LiteralType():
                return Group(f"{self.use('Literal')}[", tuple(map(constant, tp.values)), "]")
            case TupleType():
                return Group(f"{self.use('tuple')}[", tuple(map(self.annotation, tp.items)) or ("()",), "]")
            case MapType():
                key = self.annotation(LiteralType(tp.keys)) if tp.keys else self.use("str")
                return Group(f"{self.use('dict')}[", (key, self.annotation(tp.values)), "]")


def _member_names(client: Client) -> Iterable[str]:
    listed: tuple[Record | ErrorType, ...] = (*client.records, *client.errors)
    for declared in listed:
        yield from (field.wire_name for field in declared.fields)
    for namespace in client.namespaces:
        for operation in namespace.operations:
            yield operation.method
            yield from (field.wire_name for field in operation.params)


def default_value(field: Field, aliases: Mapping[str, Type]) -> str | None:
    """Return the default of a member as an expression, if it is a constant of the member's type; else None."""
    return _constant_of_type(field.default, field.type, aliases)


def _constant_of_type(value: Any, tp: Type, aliases: Mapping[str, Type]) -> str | None:  # Any: JSON
    match value, tp:
        case msgspec.UnsetType(), _:
            return None
        case _, TypeReference(name=name) if name in aliases:
            return _constant_of_type(value, aliases[name], aliases)
        case _, UnionType(members=members):
            return next(filter(None, (_constant_of_type(value, member, aliases) for member in members)), None)
        case [], ArrayType():
            return "[]"
        case {}, MapType() if not value:
            return "{}"
        case ((str() | int() | float() | None), ScalarType(kind=kind)):
            return constant(value) if kind == "any" or kind in _KINDS[type(value)] else None
        case ((str() | int()), LiteralType(values=values)) if not isinstance(value, bool):
            return constant(value) if value in values else None
        case _:
            return None


_KINDS: Final[dict[type, tuple[ScalarKind, ...]]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    type(None): ("null",),
}
