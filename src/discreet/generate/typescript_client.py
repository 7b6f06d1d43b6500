"""Writes a client as a TypeScript module: interfaces, error unions and a class per namespace. Formatted as by prettier."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, assert_never, final

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
    RecordTag,
    ScalarKind,
    ScalarType,
    TupleType,
    Type,
    TypeReference,
    UnionType,
    union_of,
)
from .schemas import build_client
from .text import Code, Group, NameScope, broken_lines, member_name, wrapped

# Types as TypeScript expressions, and the aliases that a module must declare for them. Declares nothing.


# Pieces of TypeScript source, formatted as prettier formats them: constants, comments, union types.


LINE_WIDTH: Final = 80
"""The default of prettier."""

INDENT: Final = 2

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def lines(code: Code, *, depth: int = 0) -> Iterator[str]:
    """Yield the code, broken into lines."""
    return broken_lines(code, width=LINE_WIDTH, indent=INDENT, depth=depth)


def constant(value: str | int) -> str:
    """Return a constant as an expression."""
    return string(value) if isinstance(value, str) else json.dumps(value)


def string(value: str) -> str:
    """Return a string literal, in the quotes that need fewer escapes."""
    escaped = "".join(json.dumps(char, ensure_ascii=not char.isprintable())[1:-1] for char in value)
    if value.count('"') <= value.count("'"):
        return f'"{escaped}"'
    return "'" + escaped.replace('\\"', '"').replace("'", "\\'") + "'"


def property_name(wire_name: str) -> str:
    """Return the name of a property, in quotes if it is not an identifier."""
    return wire_name if _IDENTIFIER.fullmatch(wire_name) else string(wire_name)


def comment(*blocks: str | Sequence[str], margin: str = "") -> list[str]:
    """Return the lines of a JSDoc comment; none if the blocks are empty. No text can end the comment early."""
    text = wrapped(*blocks, width=LINE_WIDTH - len(margin) - len(" *  */"))
    found = [line.replace("*/", "*\\/") for line in text]
    if not found:
        return []
    one_line = f"{margin}/** {found[0]} */"
    if len(found) == 1 and len(one_line) <= LINE_WIDTH:
        return [one_line]
    return [f"{margin}/**", *(f"{margin} * {line}".rstrip() for line in found), f"{margin} */"]


def union_declaration(left: str, members: Sequence[str], *, margin: str = "") -> Iterator[str]:
    """Yield `left` and the union of some types; `left` is `export type A =` or `readonly a:`."""
    whole = f"{' | '.join(members)};"
    if len(f"{margin}{left} {whole}") <= LINE_WIDTH or len(members) == 1:
        yield from _broken_in_braces(f"{margin}{left} {whole}", margin)
    elif len(f"{margin}  {whole}") <= LINE_WIDTH:
        yield from (margin + left, f"{margin}  {whole}")
    else:
        yield margin + left
        yield from (f"{margin}  | {member}" for member in members[:-1])
        yield f"{margin}  | {members[-1]};"


def _broken_in_braces(line: str, margin: str) -> Iterator[str]:
    """Yield a line; if it is too long and has braces, broken inside them."""
    before, brace, rest = line.partition("{ ")
    inner, end, after = rest.rpartition(" }")
    if len(line) <= LINE_WIDTH or not (brace and end):
        yield line
    else:
        yield from (f"{before}{{", f"{margin}  {inner};", f"{margin}}}{after}")


class TextAlias(msgspec.Struct, frozen=True):
    """The alias for a kind of value that JSON has no type for."""

    name: str
    type: str
    description: str


TEXT_ALIASES: Final[dict[ScalarKind, TextAlias]] = {
    "bytes": TextAlias("Base64", "string", "Bytes in base64."),
    "date": TextAlias("DateText", "string", "A day, as in `2026-07-14`."),
    "datetime": TextAlias(
        "DateTimeText", "string", "A moment in the form of RFC 3339; without an offset if it has no time zone."
    ),
    "decimal": TextAlias("DecimalText", "string | number", "A decimal number. As text it keeps all its digits."),
    "duration": TextAlias(
        "DurationText", "string", "A duration in the form of ISO 8601, in days or less: `P1DT2H30M`."
    ),
    "time": TextAlias("TimeText", "string", "A time of day, as in `12:30:00`."),
    "uuid": TextAlias("UuidText", "string", "A UUID."),
}

_SCALARS: Final[dict[ScalarKind, str]] = {
    "any": "unknown",
    "null": "null",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "string": "string",
    **{kind: alias.name for kind, alias in TEXT_ALIASES.items()},
}


@final
class Annotations:
    """Writes the types of one module. `used` collects the kinds of scalars, so that their aliases can be declared."""

    def __init__(self) -> None:
        self.used: set[ScalarKind] = set()

    def annotation(self, tp: Type) -> str:
        """Return a type as an expression."""
        return " | ".join(self.alternatives(tp))

    def alternatives(self, tp: Type) -> list[str]:
        """Return the members of a union, each as an expression; any other type is its only member."""
        match tp:
            case ScalarType():
                self.used.add(tp.kind)
                return [_SCALARS[tp.kind]]
            case TypeReference():
                return [tp.name]
            case LiteralType():
                return [constant(value) for value in tp.values]
            case ArrayType():
                items = self.alternatives(tp.items)
                is_simple = len(items) == 1 and not items[0].startswith("readonly ")
                return [f"readonly {items[0]}[]" if is_simple else f"readonly ({' | '.join(items)})[]"]
            case TupleType():
                return [f"readonly [{', '.join(map(self.annotation, tp.items))}]"]
            case MapType(keys=()):
                return [f"{{ readonly [name: string]: {self.annotation(tp.values)} }}"]
            case MapType():
                keys = self.annotation(LiteralType(tp.keys))
                return [f"{{ readonly [name in {keys}]?: {self.annotation(tp.values)} }}"]
            case UnionType():
                written = (part for member in tp.members for part in self.alternatives(member))
                return list(dict.fromkeys(written))
            case _:
                assert_never(tp)


_HEADER: Final = "// generated by discreet\n"
_IMPORTS, _SESSION = Path(__file__).with_name("session.ts").read_text(encoding="utf-8").split("\n\n", 1)
"""The constant part of every client: calls and streams over vscode-jsonrpc."""
_GLOBALS: Final = "Array AsyncGenerator Boolean Error Function Map Number Object Promise String Symbol WeakMap"
_RESERVED_TYPES: Final = frozenset(
    {
        *_GLOBALS.split(),
        *re.findall(r"\b[A-Z]\w+", _IMPORTS + _SESSION),
        *(alias.name for alias in TEXT_ALIASES.values()),
    }
)
_OBJECT_MEMBERS: Final = frozenset(
    "constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf".split()
)
"""The members that every object inherits (ECMA-262, 20.1.3)."""

_RESERVED_METHODS: Final = frozenset({"constructor"})


def typescript_client(operations: Iterable[OperationSchema]) -> str:
    """Return the text of the client. The same operations give the same text. Raises `SchemaError`."""
    return _ModuleWriter(build_client(operations, _RESERVED_TYPES)).module()


class _ModuleWriter:
    """Writes one module, and collects the aliases that it has to declare."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._types = Annotations()
        self._code_of = {error.name: error.code for error in client.errors}

    def module(self) -> str:
        body = _joined(self._blocks())  # before the text aliases, which depend on it
        texts = _joined(_text_alias(alias) for kind, alias in TEXT_ALIASES.items() if kind in self._types.used)
        return "\n".join(
            filter(None, (_HEADER, f"{_IMPORTS}\n", texts and f"{texts}\n", body and f"{body}\n", _SESSION))
        )

    def _blocks(self) -> Iterator[Iterable[str]]:
        client = self._client
        for record in client.records:
            yield self._record(record)
        for alias in client.aliases:
            yield self._alias(alias)
        for error in client.errors:
            yield self._error(error)
        for namespace in client.namespaces:
            for operation in namespace.operations:
                if _takes_params(operation):
                    yield self._params(operation)
                if operation.errors:
                    yield self._error_union(operation)
            yield self._namespace(namespace)

    def _record(self, record: Record) -> Iterator[str]:
        fields = (*([] if record.tag is None else [_tag_field(record.tag)]), *record.fields)
        yield from comment(record.description)
        yield from self._interface(record.name, fields)

    def _interface(self, name: str, fields: tuple[Field, ...], extra: str = "") -> Iterator[str]:
        if not fields and not extra:
            yield f"export interface {name} {{}}"
            return
        yield f"export interface {name} {{"
        yield from self._members(fields)
        yield from (f"  readonly [name: string]: {extra};",) if extra else ()
        yield "}"

    def _members(self, fields: Iterable[Field], *, margin: str = "  ") -> Iterator[str]:
        for field in fields:
            yield from comment(field.full_description, margin=margin)
            left = f"readonly {property_name(field.wire_name)}{'' if field.required else '?'}:"
            yield from union_declaration(left, self._types.alternatives(field.type), margin=margin)

    def _alias(self, alias: Alias) -> Iterator[str]:
        yield from comment(alias.description)
        if isinstance(alias.type, TupleType):
            items = tuple(map(self._types.annotation, alias.type.items))
            yield from lines(Group(f"export type {alias.name} = readonly [", items, "];"))
        else:
            yield from union_declaration(f"export type {alias.name} =", self._types.alternatives(alias.type))

    def _error(self, error: ErrorType) -> Iterator[str]:
        yield from comment(error.description or error.message)
        yield f"export interface {error.name} {{"
        yield f"  readonly code: {string(error.code)};"
        yield "  readonly retryable: boolean;"
        if error.fields:
            yield "  readonly details: {"
            yield from self._members(error.fields, margin="    ")
            yield "  };"
        yield "}"

    def _params(self, operation: Operation) -> Iterable[str]:
        return self._interface(operation.params_type, operation.params, self._extra_params(operation))

    def _extra_params(self, operation: Operation) -> str:
        """Return the type of further params; empty if there are none. TypeScript requires it to fit the named ones, too."""
        if operation.extra_params is None:
            return ""
        tp = union_of((operation.extra_params, *(field.type for field in operation.params)))
        if tp == ANY_TYPE:
            return self._types.annotation(ANY_TYPE)
        optional = [] if all(field.required for field in operation.params) else ["undefined"]
        return " | ".join((*self._types.alternatives(tp), *optional))

    def _error_union(self, operation: Operation) -> Iterator[str]:
        name, code_list = operation.error_union, operation.error_list
        yield from union_declaration(f"export type {name} =", operation.errors)
        yield ""
        codes = tuple(string(self._code_of[error]) for error in operation.errors)
        yield from lines(Group(f'const {code_list}: readonly {name}["code"][] = [', codes, "];"))
        yield ""
        guard = Group(f"export function is{name}(", ("error: unknown",), f"): error is OperationFailed<{name}> {{")
        yield from lines(guard)
        yield f"  return isDeclared<{name}>(error, {code_list});"
        yield "}"

    def _namespace(self, namespace: Namespace) -> Iterator[str]:
        yield from comment(f"{namespace.description}, called over a session.")
        yield f"export class {namespace.name} {{"
        yield from ("  readonly #session: Session;", "  readonly #options: ClientOptions;", "")
        yield "  constructor(session: Session, options: ClientOptions = {}) {"
        yield from ("    this.#session = session;", "    this.#options = options;", "  }")
        names = NameScope()
        for operation in namespace.operations:
            yield ""
            yield from self._method(names.unique(member_name(operation.method, _RESERVED_METHODS)), operation)
        yield "}"

    def _method(self, name: str, operation: Operation) -> Iterator[str]:
        errors = " | ".join(operation.errors)
        yield from comment(operation.description, f"Throws `OperationFailed<{errors}>`." if errors else "", margin="  ")
        result = self._types.annotation(operation.result)
        returned = f"AsyncGenerator<{result}, void, undefined>" if operation.is_subscription else f"Promise<{result}>"
        params = [f"params: {operation.params_type}{_default_params(operation)}"] if _takes_params(operation) else []
        yield from lines(Group(f"{name}(", (*params, "token?: CancellationToken"), f"): {returned} {{"), depth=1)
        codes = operation.error_list if errors else "[]"
        given: tuple[Code, ...] = (
            string(operation.wire_name),
            "params" if params else "{}",
            codes,
            "this.#options",
            "token",
        )
        verb = "subscribe" if operation.is_subscription else "call"
        yield from lines(Group(f"return this.#session.{verb}(", given, ");"), depth=2)
        yield "  }"


def _joined(blocks: Iterable[Iterable[str]]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks)


def _text_alias(alias: TextAlias) -> Iterator[str]:
    yield from comment(alias.description)
    yield f"export type {alias.name} = {alias.type};"


def _tag_field(tag: RecordTag) -> Field:
    return Field(tag.wire_name, LiteralType((tag.value,)), required=True)


def _default_params(operation: Operation) -> str:
    """Return the default of the params, where all of them are optional."""
    if any(field.required for field in operation.params):
        return ""
    if any(field.wire_name in _OBJECT_MEMBERS for field in operation.params):
        return " = Object.create(null)"  # a literal `{}` has members of these names, of other types
    return " = {}"


def _takes_params(operation: Operation) -> bool:
    return bool(operation.params) or operation.extra_params is not None
