"""Builds the model of a client from the schemas of operations. Knows no language.

A keyword of the wrong type is refused when a schema is parsed, so that nothing after that has to check. Others than those that a
client is generated from are ignored.
"""

from __future__ import annotations

import datetime
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET, UnsetType

from ..errors.decoders import convert
from ..errors.exceptions import OperationError
from ..schemas.documents import AccessSchema, ErrorSchema, OperationSchema
from ..schemas.json_schema import JsonSchema, json_schema
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
    map_references,
    references,
    union_of,
    written_size,
)
from .text import NameScope, constant_name, error_name, type_name

_CLIENT: Final = "client"


def build_client(operations: Iterable[OperationSchema], reserved: Iterable[str]) -> Client:
    """Return the client of these operations. No type in it has a name out of `reserved`.

    The same operations give the same client, in whatever order they come. An additional operation changes no name of
    another one, unless it brings another type of the same name. Raises `SchemaError`.
    """
    ordered = sorted(operations, key=lambda operation: operation.name)
    names = NameScope(reserved)
    converter = SchemaConverter(names)
    errors = _Errors(converter)
    constants = NameScope()
    built: dict[str, tuple[str, Operation]] = {}
    for operation in ordered:
        if operation.name in built:
            raise SchemaError(f"{operation.name}: there are two operations of this name")
        built[operation.name] = operation.namespace, _build_operation(operation, converter, errors, constants)
    namespaces = [
        Namespace(
            wire_name=wire_name,
            name=names.unique(type_name(wire_name, _CLIENT)),
            description=f"The operations of `{wire_name}`" if wire_name else "The operations without a namespace",
            operations=tuple(operation for namespace, operation in built.values() if namespace == wire_name),
        )
        for wire_name in sorted({namespace for namespace, _ in built.values()})
    ]
    return Client(
        records=tuple(sorted(converter.records, key=lambda record: record.name)),
        aliases=_in_order(converter.aliases),
        errors=tuple(sorted(errors.declared.values(), key=lambda error: error.name)),
        namespaces=tuple(namespaces),
    )


def _in_order(aliases: Iterable[Alias]) -> tuple[Alias, ...]:
    """The aliases, each after those that it refers to, since some languages read them in order. An order that is right is kept.

    An alias that refers to itself through other aliases alone can't be written so: there, the reference becomes `ANY_TYPE`.
    """
    known = {alias.name: alias for alias in aliases}
    done: dict[str, Alias] = {}
    path: set[str] = set()

    def visit(alias: Alias) -> None:
        if alias.name in done:
            return
        path.add(alias.name)
        tp = map_references(alias.type, lambda reference: ANY_TYPE if reference.name in path else reference)
        for name in references(tp):
            if name in known:
                visit(known[name])
        path.remove(alias.name)
        done[alias.name] = Alias(alias.name, alias.description, tp)

    for alias in known.values():
        visit(alias)
    return tuple(done.values())


def _build_operation(
    operation: OperationSchema, converter: SchemaConverter, errors: _Errors, constants: NameScope
) -> Operation:
    try:
        return _convert(operation, converter, errors, constants)
    except SchemaError as exc:
        raise SchemaError(f"{operation.name}: {exc}") from exc
    except RecursionError as exc:
        raise SchemaError(f"{operation.name}: a schema is nested too deeply") from exc


def _convert(
    operation: OperationSchema, converter: SchemaConverter, errors: _Errors, constants: NameScope
) -> Operation:
    is_subscription = operation.kind == "subscription"
    own = type_name(operation.name)
    input_schema, output_schema = parse_schema(operation.input_schema), parse_schema(operation.output_schema)
    return Operation(
        wire_name=operation.name,
        method=operation.name.rpartition("/")[2],
        is_subscription=is_subscription,
        description="\n\n".join(filter(None, (operation.description, _scopes(operation.access or AccessSchema())))),
        params=converter.fields(input_schema, own),
        extra_params=converter.extra_fields(input_schema, own),
        result=converter.document(output_schema, type_name(own, "event" if is_subscription else "result")),
        errors=tuple(map(errors.declare, operation.error_schemas)),
        error_union=converter.names.unique(type_name(own, "error")),
        error_list=constants.unique(constant_name(operation.name, "errors")),
        params_type=converter.names.unique(type_name(own, "params")),
    )


def _scopes(access: AccessSchema) -> str:
    needed = [", ".join(access.all_of), f"one of {', '.join(access.any_of)}" if access.any_of else ""]
    phrase = " and ".join(filter(None, needed))
    return f"Needs the scopes {phrase}." if phrase else ""


class _Errors:
    """The declared errors of all operations. Equal ones are declared once."""

    def __init__(self, converter: SchemaConverter) -> None:
        self.declared: dict[bytes, ErrorType] = {}
        self._converter = converter

    def declare(self, error: ErrorSchema) -> str:
        """Return the name of an error. Raises `SchemaError` for an error that no operation can declare."""
        key = msgspec.json.encode(error, order="deterministic")
        if key not in self.declared:
            name = self._converter.names.unique(error_name(error.code))
            _check_declarable(name, error)
            details = Schema() if error.schema is None else parse_schema(error.schema)
            if has_unsupported_member(details):
                raise SchemaError(f"error {name}: a detail has a control character, a quote or a backslash in its name")
            self.declared[key] = ErrorType(
                name=name,
                code=error.code,
                message=error.message,
                description=error.description,
                http_status=error.http_status,
                retryable=error.retryable,
                fields=self._converter.fields(details, name),
            )
        return self.declared[key].name


def _check_declarable(name: str, error: ErrorSchema) -> None:
    try:
        types.new_class(name, (OperationError,), {"code": error.code, "http_status": error.http_status})
    except TypeError as exc:
        raise SchemaError(f"error {exc}") from exc


class SchemaError(Exception):
    """No client can be generated from these operations. The message is one line that names the operation and the reason."""


class Schema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One schema. A keyword that is left out has the default that the specification gives it, or UNSET."""

    ref: str | UnsetType = msgspec.field(default=UNSET, name="$ref")
    definitions: dict[str, SubSchema] = msgspec.field(default_factory=dict, name="$defs")
    title: str = ""
    description: str = ""
    default: Any = UNSET  # JSON, as are the next two
    const: Any = UNSET
    enum: list[Any] | UnsetType = UNSET
    any_of: list[SubSchema] = []
    one_of: list[SubSchema] = []
    type: str | list[str] | UnsetType = UNSET
    properties: dict[str, SubSchema] | UnsetType = UNSET
    required: list[str] = []
    additional_properties: SubSchema | UnsetType = UNSET
    property_names: SubSchema = True
    prefix_items: list[SubSchema] = []
    items: SubSchema = True
    format: str = ""
    pattern: str = ""
    content_encoding: str = ""
    minimum: float | int | UnsetType = UNSET
    exclusive_minimum: float | int | UnsetType = UNSET
    maximum: float | int | UnsetType = UNSET
    exclusive_maximum: float | int | UnsetType = UNSET
    multiple_of: float | int | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    min_properties: int | UnsetType = UNSET
    max_properties: int | UnsetType = UNSET

    def subschemas(self) -> Iterator[SubSchema]:
        """Yield the schemas directly inside this one, without its definitions."""
        yield from (*self.any_of, *self.one_of, *self.prefix_items, self.property_names, self.items)
        if self.properties is not UNSET:
            yield from self.properties.values()
        if self.additional_properties is not UNSET:
            yield self.additional_properties


SubSchema: TypeAlias = Schema | bool
"""A schema inside another one: `true` takes anything, `false` nothing."""


def parse_schema(document: JsonSchema) -> Schema:
    """Parse a document. Raises `SchemaError` with the place and the expected type of the first wrong keyword."""
    try:
        schema: Schema = convert(document, Schema)
        return schema
    except msgspec.ValidationError as exc:
        raise SchemaError(str(exc)) from exc


MAX_INLINE_CHARS: Final = 32
"""By `written_size`. A longer type gets a name of its own."""

Definitions: TypeAlias = Mapping[str, SubSchema]

_SCALARS: Final[dict[str, ScalarKind]] = {
    "null": "null",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "string": "string",
}
_FORMATS: Final[dict[str, ScalarKind]] = {
    "date": "date",
    "date-time": "datetime",
    "date-time-local": "datetime",
    "decimal": "decimal",
    "time": "time",
    "time-local": "time",
    "uuid": "uuid",
}
_DURATION_PATTERN: Final = json_schema(datetime.timedelta)["pattern"]
_UNSUPPORTED_MEMBER: Final = re.compile(r'["\\\x00-\x1f]')
"""Characters that msgspec refuses in the name of a member. An object with such a member becomes a `MapType`."""

_TAG_INTEGERS: Final = range(-(2**63), 2**63)
"""The integers that msgspec accepts as tags and in literals."""


@final
class SchemaConverter:
    """Converts the schemas of many operations, each with its own definitions. Equal types are declared once.

    `where` is the name for a type that has none of its own; it is made from the operation and the place in it.
    """

    def __init__(self, names: NameScope) -> None:
        self.records: list[Record] = []
        self.aliases: list[Alias] = []
        self.names = names
        self._declared: dict[tuple[str, bytes], str] = {}

    def document(self, document: Schema, where: str) -> Type:
        """Return the type of a whole document."""
        body, definitions = _without_definitions(document), document.definitions
        if not body.title or not (body.properties is not UNSET or body.prefix_items or body.enum is not UNSET):
            return self.type(body, definitions, where)
        same = (name for name, known in definitions.items() if isinstance(known, Schema) and _is_same(body, known))
        name = next(same, body.title)
        while name in definitions and not _is_same(body, definitions[name]):
            name += "_"
        return TypeReference(self._declare(name, {name: body} | definitions))

    def fields(self, document: Schema, where: str) -> tuple[Field, ...]:
        """Return the members of a document that describes an object."""
        return tuple(self._fields(document, document.definitions, where))

    def extra_fields(self, document: Schema, where: str) -> Type | None:
        """Return the type of the members that the document does not name; None if it takes no others."""
        if document.additional_properties is UNSET or document.additional_properties is False:
            return None
        return self.type(document.additional_properties, document.definitions, type_name(where, "more"))

    def type(self, schema: SubSchema, definitions: Definitions, where: str) -> Type:
        """Return the type of a schema. A type that is too long to be written in place becomes an alias."""
        found = self._inline_type(schema, definitions, where)
        if isinstance(found, UnionType):
            found = union_of(self._short(member, where) for member in found.members)
        return self._short(found, where)

    def _short(self, found: Type, where: str) -> Type:
        if written_size(found) <= MAX_INLINE_CHARS:
            return found
        known = next((alias.name for alias in self.aliases if alias.type == found and not alias.description), None)
        if known is None:
            known = self.names.unique(where)
            self.aliases.append(Alias(known, "", found))
        return TypeReference(known)

    def _inline_type(self, schema: SubSchema, definitions: Definitions, where: str) -> Type:
        if isinstance(schema, bool):
            return ANY_TYPE
        referenced = _local_definition(schema.ref)
        if referenced is not None and referenced in definitions:
            known = definitions[referenced]
            return TypeReference(self._declare(referenced, definitions)) if isinstance(known, Schema) else ANY_TYPE
        if branches := schema.any_of or schema.one_of:
            return union_of([self._inline_type(branch, definitions, where) for branch in branches])
        if schema.enum is not UNSET:
            return _literals(schema.enum)
        if schema.const is not UNSET:
            return _literals([schema.const])
        match schema.type:
            case "array":
                return self._array(schema, definitions, where)
            case "object":
                return self._object(schema, definitions, where)
            case msgspec.UnsetType():
                return ANY_TYPE
            case str() as kind:
                return _scalar(schema, [kind])
            case kinds:
                return _scalar(schema, kinds)

    def _array(self, schema: Schema, definitions: Definitions, where: str) -> Type:
        items = schema.prefix_items
        if not items and schema.items is not False:
            return ArrayType(self.type(schema.items, definitions, type_name(where, "item")))
        if schema.min_items is UNSET or schema.min_items < len(items):
            return ArrayType(ANY_TYPE)  # some may be left out
        types = [self.type(item, definitions, type_name(where, f"{place}")) for place, item in enumerate(items, 1)]
        return TupleType(tuple(types))

    def _object(self, schema: Schema, definitions: Definitions, where: str) -> Type:
        if schema.properties is not UNSET:
            if has_unsupported_member(schema):
                return MapType(ANY_TYPE)
            name = self.names.unique(where)
            self._add(name, schema, definitions)
            return TypeReference(name)
        names = schema.property_names
        keys = names.enum if isinstance(names, Schema) and names.enum is not UNSET else []
        values = True if schema.additional_properties is UNSET else schema.additional_properties
        value_type = self.type(values, definitions, type_name(where, "value"))
        all_text = all(isinstance(key, str) for key in keys)
        return MapType(value_type, tuple(dict.fromkeys(keys)) if all_text else ())

    def _declare(self, own: str, definitions: Definitions) -> str:
        """Return the name of a definition's type. Two types are one if they and all that they refer to are equal."""
        schema = definitions[own]
        assert isinstance(schema, Schema)  # the callers have looked
        reached = sorted(_reachable(own, definitions))
        content = msgspec.json.encode([(name, definitions[name]) for name in reached], order="deterministic")
        key = schema.title or own, content
        if key not in self._declared:
            self._declared[key] = name = self.names.unique(type_name(own))  # before its members, which may refer to it
            self._add(name, schema, definitions)
        return self._declared[key]

    def _add(self, name: str, schema: Schema, definitions: Definitions) -> None:
        if schema.properties is UNSET:
            self.aliases.append(Alias(name, schema.description, self._inline_type(schema, definitions, name)))
        elif has_unsupported_member(schema):
            self.aliases.append(Alias(name, schema.description, MapType(ANY_TYPE)))
        else:
            self.records.append(self._record(name, schema, definitions))

    def _record(self, name: str, schema: Schema, definitions: Definitions) -> Record:
        properties = {} if schema.properties is UNSET else schema.properties
        tags = (
            (wire_name, _tag_value(properties[wire_name], required=wire_name in schema.required))
            for wire_name in sorted(properties)
        )
        tag = next((RecordTag(wire_name, value) for wire_name, value in tags if value is not None), None)
        fields = tuple(self._fields(schema, definitions, name))
        members = tuple(field for field in fields if tag is None or field.wire_name != tag.wire_name)
        return Record(name, schema.description, members, tag)

    def _fields(self, schema: Schema, definitions: Definitions, where: str) -> Iterator[Field]:
        properties = {} if schema.properties is UNSET else schema.properties
        for wire_name, inner in properties.items():
            yield Field(
                wire_name=wire_name,
                type=self.type(inner, definitions, type_name(where, wire_name)),
                required=wire_name in schema.required,
                description=describe(inner, with_default=False),
                full_description=describe(inner, with_default=True),
                default=UNSET if isinstance(inner, bool) else inner.default,
            )


def _without_definitions(schema: Schema) -> Schema:
    return msgspec.structs.replace(schema, definitions={})


def has_unsupported_member(schema: Schema) -> bool:
    """Whether a member has a name that msgspec refuses, so that the object can't become a record."""
    return schema.properties is not UNSET and any(map(_UNSUPPORTED_MEMBER.search, schema.properties))


def _is_same(one: Schema, other: SubSchema) -> bool:
    """Whether the two are one type. Their descriptions may differ: one may describe the place where the type is used."""
    if isinstance(other, bool):
        return False
    return msgspec.structs.replace(one, description="") == msgspec.structs.replace(other, description="")


def _tag_value(schema: SubSchema, *, required: bool) -> str | int | None:
    """Return the only value of a member that msgspec's tagged types carry: an enum of one with no default; a constant in types
    whose union has them required."""
    if isinstance(schema, bool) or schema.default is not UNSET:
        return None
    only = ([] if schema.const is UNSET else [schema.const]) if required else schema.enum
    match only:
        case [str() as value]:
            return value
        case [int() as value] if not isinstance(value, bool) and value in _TAG_INTEGERS:
            return value
        case _:
            return None


def _literals(values: list[Any]) -> Type:
    """Return the type of a closed list of values; if they can't be written as literals, the type that they share."""
    if None in values:
        rest = [value for value in values if value is not None]
        return union_of((_literals(rest), ScalarType("null"))) if rest else ScalarType("null")
    kinds = {type(value) for value in values}
    if kinds and kinds <= {str, int}:
        if any(isinstance(value, int) and value not in _TAG_INTEGERS for value in values):
            return union_of(ScalarType("string" if kind is str else "integer") for kind in sorted(kinds, key=str))
        return LiteralType(tuple(dict.fromkeys(values)))
    if kinds == {bool}:
        return ScalarType("boolean")
    return ScalarType("number") if kinds and kinds <= {int, float} else ANY_TYPE


def _scalar(schema: Schema, kinds: Iterable[str]) -> Type:
    if "string" in kinds:
        if schema.content_encoding == "base64":
            return ScalarType("bytes")
        if schema.pattern == _DURATION_PATTERN:
            return ScalarType("duration")
        if schema.format in _FORMATS:
            return ScalarType(_FORMATS[schema.format])
    return union_of(ScalarType(_SCALARS[kind]) if kind in _SCALARS else ANY_TYPE for kind in kinds)


def _reachable(own: str, definitions: Definitions) -> set[str]:
    """Return the name of a definition, and of every definition that it refers to directly or through others."""
    found, waiting = {own}, [own]
    while waiting:
        for name in _referenced_definitions([definitions[waiting.pop()]]):
            if name in definitions and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _local_definition(ref: str | UnsetType) -> str | None:
    """Return the name of the definition that a reference points to; None for any other reference."""
    prefix = "#/$defs/"
    return ref.removeprefix(prefix) if ref is not UNSET and ref.startswith(prefix) else None


def _referenced_definitions(schema: Iterable[SubSchema]) -> Iterator[str]:
    """Yield the names of the definitions that these schemas refer to, directly or in schemas inside them."""
    waiting = list(schema)
    while waiting:
        found = waiting.pop()
        if isinstance(found, Schema):
            name = _local_definition(found.ref)
            if name is not None:
                yield name
            waiting += found.subschemas()


# -- what is told of a value -----------------------------------------------------------------------------------

_MAX_DEFAULT_CHARS: Final = 60
"""A longer default is left out of a description."""

_LIMITS: Final = {
    "minimum": ">= {}",
    "exclusive_minimum": "> {}",
    "maximum": "<= {}",
    "exclusive_maximum": "< {}",
    "multiple_of": "a multiple of {}",
    "min_length": "at least {} characters",
    "max_length": "at most {} characters",
    "min_items": "at least {} items",
    "max_items": "at most {} items",
    "min_properties": "at least {} members",
    "max_properties": "at most {} members",
}


def describe(schema: SubSchema, *, with_default: bool) -> str:
    """Return one line about a value: its description, its limits, and its default if wanted. Empty if there is nothing."""
    if isinstance(schema, bool):
        return ""
    facts = "; ".join((*_limits(schema), *(_default(schema) if with_default else ())))
    description = " ".join(_description(schema).split())
    if not facts:
        return description
    return f"{description.rstrip('.')} ({facts})." if description else f"{facts[:1].upper()}{facts[1:]}."


def _description(schema: Schema) -> str:
    branches = (_description(branch) for branch in schema.any_of if isinstance(branch, Schema))
    return schema.description or next(filter(None, branches), "")


def _default(schema: Schema) -> Iterator[str]:
    if schema.default is not UNSET and schema.default is not None:
        text = msgspec.json.encode(schema.default).decode()
        if len(text) <= _MAX_DEFAULT_CHARS:
            yield f"default {text}"


def _limits(schema: Schema) -> Iterator[str]:
    for keyword, phrase in _LIMITS.items():
        limit = getattr(schema, keyword)
        if limit is not UNSET and not schema.prefix_items:
            yield phrase.format(limit)
    for branch in schema.any_of:
        if isinstance(branch, Schema):
            yield from _limits(branch)
