"""Types as Python annotations, and the imports that a module needs for them. Declares nothing."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, assert_never, final

import msgspec

from .model import (
    ANY_TYPE,
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
from .text import Code, Group, broken_lines, member_name, on_one_line, wrapped

# Unions as msgspec can decode them: members that it can't tell apart become one wider type. Writes no code.
#
# By the JSON type of a value msgspec chooses among at most one type for arrays, one for objects and one for texts. Only
# tagged records and literals may stand beside each other.


_TEXTS: Final[frozenset[ScalarKind]] = frozenset(
    {"string", "bytes", "date", "datetime", "decimal", "duration", "time", "uuid"}
)
_STRING: Final = ScalarType("string")


class DecodableUnions:
    """Widens the unions of one client."""

    def __init__(self, client: Client) -> None:
        self._records: Mapping[str, Record] = {record.name: record for record in client.records}
        self._aliases: Mapping[str, Type] = {alias.name: alias.type for alias in client.aliases}

    def members(self, union: UnionType) -> tuple[Type, ...]:
        """Return the members of the union, or wider ones in their place. Those that can be told apart stay as they are."""
        flat = tuple(dict.fromkeys(part for member in union.members for part in self._parts(member)))
        wider = _texts(flat)
        objects = [member for member in wider if self._is_object(member)]
        is_told = len(objects) < 2 or self._are_tagged(objects)
        if not is_told:
            wider = _replaced(wider, objects, MapType(ANY_TYPE))
        arrays = [member for member in wider if self._is_array(member)]
        beside_record = is_told and any(map(self._record, objects))
        if (len(arrays) > 1 and not self._are_tagged(arrays)) or (beside_record and any(map(self._record, arrays))):
            wider = _replaced(wider, arrays, ArrayType(ANY_TYPE))
        return union.members if wider == flat else tuple(dict.fromkeys(wider))

    def _parts(self, member: Type) -> Iterator[Type]:
        match member:
            case TypeReference(name=name) if name in self._aliases:
                yield from self._parts(self._aliases[name])
            case UnionType(members=members):
                for part in members:
                    yield from self._parts(part)
            case _:
                yield member

    def _record(self, member: Type) -> Record | None:
        return self._records.get(member.name) if isinstance(member, TypeReference) else None

    def _is_object(self, member: Type) -> bool:
        record = self._record(member)
        return isinstance(member, MapType) if record is None else not record.positional

    def _is_array(self, member: Type) -> bool:
        record = self._record(member)
        return isinstance(member, ArrayType | TupleType) if record is None else record.positional

    def _are_tagged(self, members: list[Type]) -> bool:
        """Whether all are records with different values of one tag."""
        tags = [record.tag for record in map(self._record, members) if record is not None and record.tag is not None]
        same_place = len({(tag.wire_name, type(tag.value)) for tag in tags}) == 1
        return len(tags) == len(members) == len({tag.value for tag in tags}) and same_place


def _texts(members: tuple[Type, ...]) -> tuple[Type, ...]:
    texts = [member for member in members if isinstance(member, ScalarType) and member.kind in _TEXTS]
    literals = [m for m in members if isinstance(m, LiteralType) and any(isinstance(value, str) for value in m.values)]
    if len(texts) > 1 or (literals and texts and texts != [_STRING]):
        return _replaced(members, texts, _STRING)
    return members


def _replaced(members: tuple[Type, ...], found: Sequence[Type], wider: Type) -> tuple[Type, ...]:
    """Return the members, with one wider type in place of those that were found."""
    first = found[0]
    return tuple(wider if member == first else member for member in members if member == first or member not in found)


# Pieces of Python source, formatted as ruff formats them: constants, docstrings, assignments.


LINE_WIDTH: Final = 88
"""The default of ruff and black."""

DOCSTRING_WIDTH: Final = 80
INDENT: Final = 4
KEYWORDS: Final = frozenset(keyword.kwlist)

_ESCAPES: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPED_QUOTE_AT_END: Final = re.compile(r'(?<!\\)(?:\\\\)*"$')


def lines(code: Code, *, depth: int = 0) -> Iterator[str]:
    """Yield the code, broken into lines."""
    return broken_lines(code, width=LINE_WIDTH, indent=INDENT, depth=depth)


def constant(value: str | float | None) -> str:
    """Return a constant as an expression."""
    return string(value) if isinstance(value, str) else repr(value)


def string(value: str) -> str:
    """Return a string literal, in the quotes that need fewer escapes."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join(_escaped(char, quote) for char in value) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{quote}"
    return _ESCAPES.get(char) or (char if char.isprintable() else ascii(char)[1:-1])


def docstring(*blocks: str | Sequence[str], depth: int) -> list[str]:
    """Return the lines of a docstring; none if the blocks are empty. No text can end the docstring early."""
    margin = " " * (INDENT * depth)
    text = wrapped(*blocks, width=DOCSTRING_WIDTH)
    found = [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in text]
    if not found:
        return []
    found[0] = f" {found[0]}" if found[0].startswith('"') else found[0]
    if len(found) == 1:
        space = " " if _UNESCAPED_QUOTE_AT_END.search(found[0]) else ""
        return [f'{margin}"""{found[0]}{space}"""']
    inner = [f"{margin}{line}".rstrip() for line in found[1:]]
    return [f'{margin}"""{found[0]}', *inner, f'{margin}"""']


def assignment(left: str, right: Code, *, depth: int) -> Iterator[str]:
    """Yield a statement `left = right`. A long right side is broken in its own brackets, or in a pair put around it."""
    margin = " " * (INDENT * depth)
    one_line = f"{margin}{left} = {on_one_line(right)}"
    if len(one_line) <= LINE_WIDTH or (isinstance(right, str) and len(margin) + INDENT + len(right) > LINE_WIDTH):
        yield one_line
    elif isinstance(right, str):
        yield from (f"{margin}{left} = (", f"{margin}    {right}", f"{margin})")
    else:
        group = Group(f"{left} = {right.opening}", right.items, right.closing, right.comma_if_single)
        yield from lines(group, depth=depth)


def union_assignment(left: str, members: Sequence[str]) -> Iterator[str]:
    """Yield a statement at the margin that assigns the union of some types."""
    whole = " | ".join(members)
    if len(left) + len(" = ") + len(whole) <= LINE_WIDTH:
        yield f"{left} = {whole}"
    elif len(whole) + INDENT <= LINE_WIDTH:
        yield from (f"{left} = (", f"    {whole}", ")")
    else:
        yield from (f"{left} = (", f"    {members[0]}", *(f"    | {member}" for member in members[1:]), ")")


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
