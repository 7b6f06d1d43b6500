"""Writes a client as a Python module: structs, error classes and a class per namespace. The text is formatted as by ruff.

Types carry no limits: the daemon checks its params, and has checked its results.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, assert_never, final

import msgspec

from ..schemas.documents import OperationSchema
from .model import (
    ANY_TYPE,
    Alias,
    ArrayType,
    Client,
    ErrorType,
    Field,
    LiteralType,
    MapType,
    Namespace,
    Operation,
    Record,
    ScalarKind,
    ScalarType,
    TupleType,
    Type,
    TypeReference,
    UnionType,
)
from .schemas import build_client
from .text import Code, Group, NameScope, broken_lines, member_name, on_one_line, wrapped

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
        objects = [member for member in wider if isinstance(member, MapType) or self._record(member)]
        if len(objects) > 1 and not self._are_tagged(objects):
            wider = _replaced(wider, objects, MapType(ANY_TYPE))
        arrays = [member for member in wider if isinstance(member, ArrayType | TupleType)]
        if len(arrays) > 1:
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


_HEADER: Final = ("# generated by discreet", "# ruff: noqa")
_EXCEPTION_ATTRIBUTES: Final = frozenset({"add_note", "args", "definition", "details", "with_traceback"})


def python_client(operations: Iterable[OperationSchema]) -> str:
    """Return the text of the client. The same operations give the same text. Raises `SchemaError`."""
    exceptions = {name for name in dir(builtins) if name[:1].isupper()}
    client = build_client(operations, RESERVED | exceptions)
    return "\n".join(_ModuleWriter(client).module()) + "\n"


class _ModuleWriter:
    """Writes one module, and collects what it has to import."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._types = Annotations(client)
        self._aliases = {alias.name: alias.type for alias in client.aliases}

    def module(self) -> Iterator[str]:
        body = [line for block in self._blocks() for line in (*block, "", "")]  # before the imports, which depend on it
        about = ", ".join(namespace.wire_name or "operations" for namespace in self._client.namespaces)
        yield from _HEADER
        yield from docstring(f"Typed clients of a daemon: {about or 'nothing'}.", depth=0)
        yield from ("", "from __future__ import annotations", "")
        yield from self._imports()
        yield from ("", *body[:-2]) if body else ()

    def _imports(self) -> Iterator[str]:
        used = self._types.used
        yield from (statement for name, statement in MODULES.items() if name in used and name != "msgspec")
        sources = sorted({IMPORT_SOURCES[name] for name in used if name in IMPORT_SOURCES})
        own = [source for source in sources if source.startswith(("discreet", "msgspec"))]
        for group in ([source for source in sources if source not in own], own):
            if group is own and "msgspec" in used:
                yield MODULES["msgspec"]
            for source in group:
                found = sorted(name for name in used if IMPORT_SOURCES.get(name) == source)
                whole = f"from {source} import {', '.join(found)}"
                yield from lines(
                    whole if len(whole) <= LINE_WIDTH else Group(f"from {source} import (", (*found,), ")")
                )
            if group:
                yield ""

    def _blocks(self) -> Iterator[list[str]]:
        client = self._client
        for record in client.records:
            yield self._record(record)
        if client.aliases:
            yield [line for alias in client.aliases for line in self._alias(alias)]
        for error in client.errors:
            yield self._error(error)
        declared = [line for namespace in client.namespaces for line in self._error_unions(namespace)]
        if declared:
            yield declared
        for namespace in client.namespaces:
            yield list(self._namespace(namespace))

    def _record(self, record: Record) -> list[str]:
        options = ["frozen=True", "kw_only=True"]
        if record.tag is not None:
            options += [f"tag_field={string(record.tag.wire_name)}", f"tag={constant(record.tag.value)}"]
        head = Group(f"class {record.name}(", (self._types.use("Struct"), *options), "):")
        return self._class(head, record.description, record.fields, self._types.reserved)

    def _error(self, error: ErrorType) -> list[str]:
        options = [f"code={string(error.code)}", f"message={string(error.message)}", f"http_status={error.http_status}"]
        options += ["retryable=True"] if error.retryable else []
        head = Group(f"class {error.name}(", (self._types.use("OperationError"), *options), "):")
        return self._class(head, error.description, error.fields, self._types.reserved | _EXCEPTION_ATTRIBUTES)

    def _class(
        self,
        head: Group,
        description: str,
        fields: tuple[Field, ...],
        reserved: frozenset[str],
    ) -> list[str]:
        names = NameScope(reserved)
        named = [(names.unique(self._types.member(field.wire_name)), field) for field in fields]
        about = [
            (name, field.description if self._writes_default(field) else field.full_description)
            for name, field in named
        ]
        described = docstring(description, [f"`{name}`: {what}" for name, what in about if what], depth=1)
        members = [line for name, field in named for line in self._member(name, field)]
        between = [""] if described and members else []
        return [*lines(head), *described, *between, *(members or ([] if described else ["    pass"]))]

    def _writes_default(self, field: Field) -> bool:
        """Whether a member's default is part of the code, so that its description need not tell it."""
        return default_value(field, self._aliases) is not None

    def _member(self, name: str, field: Field) -> Iterator[str]:
        annotation = self._types.annotation(field.type)
        value = None if field.required else default_value(field, self._aliases)
        if value is None and not field.required:
            annotation = f"{annotation} | {self._types.use('UnsetType')}"
            value = self._types.use("UNSET")
        if name != field.wire_name:
            yield from assignment(f"{name}: {annotation}", self._renamed(field.wire_name, value), depth=1)
        elif value is None:
            yield f"    {name}: {annotation}"
        else:
            yield from assignment(f"{name}: {annotation}", value, depth=1)

    def _renamed(self, wire_name: str, value: str | None) -> Group:
        """Return what is assigned to a member whose name on the wire is another one."""
        self._types.use("msgspec")
        factory = {"[]": "list", "{}": "dict"}.get(value or "")
        if factory is not None:
            given = [f"default_factory={self._types.use(factory)}"]
        else:
            given = [] if value is None else [f"default={value}"]
        return Group("msgspec.field(", (*given, f"name={string(wire_name)}"), ")")

    def _alias(self, alias: Alias) -> Iterator[str]:
        left = f"{alias.name}: {self._types.use('TypeAlias')}"
        if isinstance(alias.type, LiteralType | TupleType | MapType):
            yield from assignment(left, self._types.group(alias.type), depth=0)
        else:
            yield from union_assignment(left, self._types.alternatives(alias.type))
        yield from docstring(alias.description, depth=0)

    def _error_unions(self, namespace: Namespace) -> Iterator[str]:
        for operation in namespace.operations:
            if not operation.errors:
                continue
            left = f"{operation.error_union}: {self._types.use('TypeAlias')}"
            yield from union_assignment(left, operation.errors)
            errors = Group("(", operation.errors, ")", comma_if_single=True)
            yield from assignment(f"{operation.error_list}: {self._types.use('Final')}", errors, depth=0)

    def _namespace(self, namespace: Namespace) -> Iterator[str]:
        self._types.used |= {"Caller", "Mapping", "Peer", "UNSET", "UnsetType"}
        text_type, float_type = self._types.use("str"), self._types.use("float")
        yield f"class {namespace.name}:"
        yield from docstring(
            f"{namespace.description}, called over a peer.",
            "`timeout` is how many seconds a call waits, None for no limit; the default is the peer's. "
            "`service_params` are sent with every request. A declared error is raised as its class; every other "
            "failure is a `discreet.client.ClientError`.",
            depth=1,
        )
        yield from (
            "",
            "    def __init__(",
            "        self,",
            "        peer: Peer,",
            "        *,",
            f"        timeout: {float_type} | None | UnsetType = UNSET,",
            f"        service_params: Mapping[{text_type}, {text_type}] | None = None,",
            "    ) -> None:",
            "        self._caller = Caller(peer, timeout=timeout, service_params=service_params)",
        )
        names = NameScope(self._types.reserved)
        for operation in namespace.operations:
            yield ""
            yield from self._method(names.unique(self._types.member(operation.method)), operation)

    def _method(self, name: str, operation: Operation) -> Iterator[str]:
        names = NameScope(self._types.reserved)
        params = sorted(operation.params, key=lambda field: not field.required)
        named = [(names.unique(self._types.member(field.wire_name)), field) for field in params]
        extra = names.unique("more") if operation.extra_params is not None else ""
        yield from self._head(name, named, extra, operation)
        about = [f"`{name}`: {field.full_description}" for name, field in named if field.full_description]
        raised = ", ".join(f"`{error}`" for error in operation.errors)
        yield from docstring(operation.description, about, f"Raises {raised}." if raised else "", depth=2)
        sent = [f"{string(field.wire_name)}: {name}" for name, field in named]
        yield from self._call(Group("{", (*([f"**{extra}"] if extra else []), *sent), "}"), operation)

    def _call(self, params: Group, operation: Operation) -> Iterator[str]:
        result = self._types.annotation(operation.result)
        errors = (operation.error_list,) if operation.errors else ()
        given: tuple[Code, ...] = (string(operation.wire_name), params, result, *errors)
        if operation.is_subscription:
            yield from lines(Group("return self._caller.subscribe(", given, ")"), depth=2)
        else:
            yield from lines(Group(f"result: {result} = await self._caller.call(", given, ")"), depth=2)
            yield "        return result"

    def _head(self, name: str, named: list[tuple[str, Field]], extra: str, operation: Operation) -> Iterator[str]:
        result = self._types.annotation(operation.result)
        kind = "def" if operation.is_subscription else "async def"
        returned = f"{self._types.use('Subscription')}[{result}]" if operation.is_subscription else result
        params = tuple(self._params(named, extra, operation))
        yield from lines(Group(f"{kind} {name}(", params, f") -> {returned}:"), depth=1)

    def _params(self, named: list[tuple[str, Field]], extra: str, operation: Operation) -> Iterator[str]:
        yield "self"
        yield from (f"{name}: {self._types.annotation(field.type)}" for name, field in named if field.required)
        optional = [(name, field) for name, field in named if not field.required]
        yield from ("*",) if optional else ()
        for name, field in optional:
            unset = f"{self._types.use('UnsetType')} = {self._types.use('UNSET')}"
            yield f"{name}: {self._types.annotation(field.type)} | {unset}"
        if operation.extra_params is not None:
            yield f"**{extra}: {self._types.annotation(operation.extra_params)}"
