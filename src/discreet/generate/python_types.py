"""Types as Python annotations, and what a module must import for them. Declares nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never, final

import msgspec

from .layout import Group, flat
from .model import (
    Alias,
    Either,
    Error,
    Field,
    Keyed,
    Many,
    Module,
    Named,
    Places,
    Record,
    Scalar,
    ScalarKind,
    Type,
    Values,
)
from .names import member_name
from .python_text import KEYWORDS, literal

BUILTINS: Final = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"})
"""Those that annotations use. A member of such a name would hide them in its class."""

IMPORTS: Final = {
    "Any": "typing",
    "Caller": "discreet.client.typed",
    "Decimal": "decimal",
    "Events": "discreet.client.typed",
    "Final": "typing",
    "Literal": "typing",
    "Mapping": "collections.abc",
    "OperationError": "discreet.errors",
    "Peer": "discreet.client",
    "Struct": "msgspec",
    "TypeAlias": "typing",
    "UNSET": "msgspec",
    "UUID": "uuid",
    "UnsetType": "msgspec",
}
"""Where a module's names come from."""

MODULES: Final = {"builtins": "import builtins", "dt": "import datetime as dt", "msgspec": "import msgspec"}
RESERVED: Final = KEYWORDS | IMPORTS.keys() | MODULES.keys()

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
class Vocabulary:
    """The names that one module uses, and the members whose names it must step around."""

    def __init__(self, module: Module) -> None:
        self.used: set[str] = set()
        listed: tuple[Record | Alias | Error, ...] = (*module.records, *module.aliases, *module.errors)
        declared = {declared.name for declared in listed}
        self.reserved = RESERVED | declared | {"self", "result"}
        self._hidden = BUILTINS & {self.member(name) for name in _members(module)}

    def member(self, wire: str) -> str:
        """The name of a member, param or method."""
        return member_name(wire, self.reserved)

    def use(self, name: str) -> str:
        """The name, imported, or qualified where a member hides it."""
        if name in self._hidden:
            name = f"builtins.{name}"
        self.used.add(name.partition(".")[0])
        return name

    def annotation(self, tp: Type) -> str:
        """A type as an expression, which is also what msgspec decodes."""
        return " | ".join(self.alternatives(tp))

    def alternatives(self, tp: Type) -> list[str]:
        """The types of a union, each an expression; one for any other type."""
        match tp:
            case Scalar():
                return [self.use(_SCALARS[tp.kind])]
            case Named():
                return [tp.name]
            case Values() | Places() | Keyed():
                return [flat(self.group(tp))]
            case Many():
                return [f"{self.use('list')}[{self.annotation(tp.items)}]"]
            case Either():
                parts = (part for inner in tp.types for part in self.alternatives(inner))
                return list(dict.fromkeys(parts))
            case _:
                assert_never(tp)

    def group(self, tp: Values | Places | Keyed) -> Group:
        """A type with more than one thing between its brackets."""
        match tp:
            case Values():
                return Group(f"{self.use('Literal')}[", tuple(map(literal, tp.values)), "]")
            case Places():
                return Group(f"{self.use('tuple')}[", tuple(map(self.annotation, tp.types)) or ("()",), "]")
            case Keyed():
                key = self.annotation(Values(tp.keys)) if tp.keys else self.use("str")
                return Group(f"{self.use('dict')}[", (key, self.annotation(tp.values)), "]")


def _members(module: Module) -> Iterable[str]:
    listed: tuple[Record | Error, ...] = (*module.records, *module.errors)
    for declared in listed:
        yield from (field.wire for field in declared.fields)
    for namespace in module.namespaces:
        for operation in namespace.operations:
            yield operation.verb
            yield from (field.wire for field in operation.params)


def default(field: Field, aliases: dict[str, Type]) -> str | None:
    """The default of a member where it is a constant of its type; None for others, which are left unset."""
    return _default(field.default, field.type, aliases)


def _default(value: object, tp: Type, aliases: dict[str, Type]) -> str | None:
    match value, tp:
        case msgspec.UnsetType(), _:
            return None
        case _, Named(name=name) if name in aliases:
            return _default(value, aliases[name], aliases)
        case _, Either(types=types):
            return next(filter(None, (_default(value, part, aliases) for part in types)), None)
        case [], Many():
            return "[]"
        case {}, Keyed() if not value:
            return "{}"
        case ((str() | int() | float() | None), Scalar(kind=kind)):
            return literal(value) if kind == "any" or kind in _KINDS[type(value)] else None
        case ((str() | int()), Values(values=values)) if not isinstance(value, bool):
            return literal(value) if value in values else None
        case _:
            return None


_KINDS: Final[dict[type, tuple[ScalarKind, ...]]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    type(None): ("null",),
}
