"""JSON Schemas, as operations carry them, as declared types with names. Knows no language and no operation."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final

import msgspec
from msgspec import UNSET

from ..daemon.schemas.json_schema import JsonSchema, json_schema
from . import prose
from .model import (
    Alias,
    Either,
    Field,
    Keyed,
    Many,
    Named,
    Places,
    Record,
    Scalar,
    ScalarKind,
    Tag,
    Type,
    Values,
    size,
)
from .names import Names, type_name

LONGEST_INLINE: Final = 32
"""Characters, by `size`; a longer type gets a name."""

_LOCAL: Final = "#/$defs/"
_ANY: Final = Scalar("any")
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
_DURATION: Final = json_schema(datetime.timedelta)["pattern"]


@final
class Types:
    """The declared types of a module, gathered out of many documents. Equal ones are there once."""

    def __init__(self, names: Names) -> None:
        self.records: list[Record] = []
        self.aliases: list[Alias] = []
        self.names = names
        self._named: dict[tuple[str, bytes], str] = {}

    def result(self, document: JsonSchema, where: str) -> Type:
        """The type of a whole document; `where` names what has no name of its own."""
        body, definitions = _parts(document)
        title = body.get("title")
        if not isinstance(title, str) or not body.keys() & {"properties", "prefixItems", "enum"}:
            return self.type(body, definitions, where)
        name = next((name for name, known in definitions.items() if _alike(body, known)), title)
        while name in definitions and not _alike(body, definitions[name]):
            name += "_"
        return Named(self._declare(name, {name: body} | definitions))

    def fields(self, document: JsonSchema, where: str) -> tuple[Field, ...]:
        """The members of a document that describes an object."""
        body, definitions = _parts(document)
        return tuple(self._members(body, definitions, where))

    def rest(self, document: JsonSchema, where: str) -> Type | None:
        """The type of an object's further members, None where it takes none."""
        body, definitions = _parts(document)
        more = body.get("additionalProperties", False)
        return None if more is False else self.type(more, definitions, type_name(where, "more"))

    def type(self, schema: JsonSchema | bool, definitions: Mapping[str, JsonSchema], where: str) -> Type:
        """The type of a schema; what is too long to be written in place, or in its union, gets a name."""
        found = self._read(schema, definitions, where)
        if isinstance(found, Either):
            found = Either(tuple(self._short(part, where) for part in found.types))
        return self._short(found, where)

    def _short(self, found: Type, where: str) -> Type:
        if size(found) <= LONGEST_INLINE:
            return found
        known = next((alias.name for alias in self.aliases if alias.type == found and not alias.doc), None)
        if known is None:
            known = self.names.take(where)
            self.aliases.append(Alias(known, "", found))
        return Named(known)

    def _read(self, schema: JsonSchema | bool, definitions: Mapping[str, JsonSchema], where: str) -> Type:
        if isinstance(schema, bool):
            return _ANY
        match schema:
            case {"$ref": str(reference)} if reference.removeprefix(_LOCAL) in definitions:
                return Named(self._declare(reference.removeprefix(_LOCAL), definitions))
            case {"anyOf": [*branches]} | {"oneOf": [*branches]}:
                return _either(self._read(branch, definitions, where) for branch in branches)
            case {"enum": [*values]}:
                return _values(values)
            case {"const": value}:
                return _values([value])
            case {"type": "array"}:
                return self._array(schema, definitions, where)
            case {"type": "object"}:
                return self._object(schema, definitions, where)
            case {"type": _}:
                return _scalar(schema)
            case _:
                return _ANY

    def _array(self, schema: JsonSchema, definitions: Mapping[str, JsonSchema], where: str) -> Type:
        places = schema.get("prefixItems", [])
        if not places and schema.get("items") is not False:
            return Many(self.type(schema.get("items", True), definitions, type_name(where, "item")))
        if schema.get("minItems", 0) == len(places):
            read = (self.type(place, definitions, type_name(where, f"{i}")) for i, place in enumerate(places, 1))
            return Places(tuple(read))
        return self._record(schema, definitions, where)

    def _object(self, schema: JsonSchema, definitions: Mapping[str, JsonSchema], where: str) -> Type:
        if "properties" in schema:
            return self._record(schema, definitions, where)
        names = schema.get("propertyNames", True)
        keys = names.get("enum", ()) if isinstance(names, dict) else ()
        values = self.type(schema.get("additionalProperties", True), definitions, type_name(where, "value"))
        return Keyed(values, tuple(map(str, keys)))

    def _record(self, schema: JsonSchema, definitions: Mapping[str, JsonSchema], where: str) -> Named:
        name = self.names.take(where)
        self._declare_as(name, schema, definitions)
        return Named(name)

    def _declare(self, own: str, definitions: Mapping[str, JsonSchema]) -> str:
        """The name of a type here. Two types are one when they and all that they refer to are the same."""
        reached = sorted(_reached(own, definitions))
        content = msgspec.json.encode([(name, definitions[name]) for name in reached], order="deterministic")
        key = definitions[own].get("title", own), content
        if key not in self._named:
            self._named[key] = name = self.names.take(type_name(own))  # before its members, which may refer to it
            self._declare_as(name, definitions[own], definitions)
        return self._named[key]

    def _declare_as(self, name: str, schema: JsonSchema, definitions: Mapping[str, JsonSchema]) -> None:
        doc = schema.get("description", "")
        if "prefixItems" in schema:
            places = enumerate(schema["prefixItems"], 1)
            named = {f"item_{place}": inner for place, inner in places}
            required = list(named)[: schema.get("minItems", 0)]
            body = {"properties": named, "required": required}
            first = _tag(schema["prefixItems"][0]) if required else None
            found = tuple(self._members(body, definitions, name))
            self.records.append(
                Record(
                    name, doc, found[first is not None :], None if first is None else Tag("", first), positional=True
                )
            )
        elif "properties" in schema:
            optional = schema["properties"].keys() - set(schema.get("required", ()))
            tags = ((wire, _tag(schema["properties"][wire])) for wire in sorted(optional))
            tag = next((Tag(wire, value) for wire, value in tags if value is not None), None)
            found = tuple(self._members(schema, definitions, name))
            members = tuple(field for field in found if tag is None or field.wire != tag.wire)
            self.records.append(Record(name, doc, members, tag))
        else:
            self.aliases.append(Alias(name, doc, self._read(schema, definitions, name)))

    def _members(self, schema: JsonSchema, definitions: Mapping[str, JsonSchema], where: str) -> Iterator[Field]:
        required = schema.get("required", ())
        for wire, inner in schema.get("properties", {}).items():
            yield Field(
                wire=wire,
                type=self.type(inner, definitions, type_name(where, wire)),
                required=wire in required,
                doc=prose.about(inner, default=False),
                full_doc=prose.about(inner, default=True),
                default=UNSET if isinstance(inner, bool) else inner.get("default", UNSET),
            )


def _parts(document: JsonSchema) -> tuple[JsonSchema, dict[str, JsonSchema]]:
    body = {keyword: value for keyword, value in document.items() if keyword not in ("$schema", "$defs")}
    return body, document.get("$defs", {})


def _alike(one: JsonSchema, other: JsonSchema) -> bool:
    """The same type: the description of one may be that of the place where it stands."""
    return one | {"description": ""} == other | {"description": ""}


def _tag(schema: JsonSchema | bool) -> str | int | None:
    """The value that msgspec's tagged types carry: the only one, which nobody has to give."""
    if isinstance(schema, bool) or "default" in schema:
        return None
    match schema:
        case {"enum": [str() | int() as value]} if not isinstance(value, bool):
            return value
        case _:
            return None


def _either(branches: Iterable[Type]) -> Type:
    """A union without unions in it and without repetition; anything beside something is anything."""
    parts: dict[Type, None] = {}
    for branch in branches:
        parts |= dict.fromkeys(branch.types if isinstance(branch, Either) else (branch,))
    if _ANY in parts or not parts:
        return _ANY
    return next(iter(parts)) if len(parts) == 1 else Either(tuple(parts))


def _values(values: list[Any]) -> Type:
    """A closed list where its values can be written as types; else what they have in common."""
    if None in values:
        rest = [value for value in values if value is not None]
        return _either((_values(rest), Scalar("null"))) if rest else Scalar("null")
    kinds = {type(value) for value in values}
    if kinds and kinds <= {str, int}:
        return Values(tuple(values))
    if kinds == {bool}:
        return Scalar("boolean")
    return Scalar("number") if kinds and kinds <= {int, float} else _ANY


def _scalar(schema: JsonSchema) -> Type:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "string" not in kinds:
        return _either(Scalar(_SCALARS[kind]) if kind in _SCALARS else _ANY for kind in kinds)
    if schema.get("contentEncoding") == "base64":
        return Scalar("bytes")
    if schema.get("pattern") == _DURATION:
        return Scalar("duration")
    known = _FORMATS.get(schema.get("format", ""))
    if known is not None:
        return Scalar(known)
    return _either(Scalar(_SCALARS[kind]) if kind in _SCALARS else _ANY for kind in kinds)


def _reached(own: str, definitions: Mapping[str, JsonSchema]) -> set[str]:
    """A definition's name and those of all that it refers to, itself or through others."""
    found, waiting = {own}, [own]
    while waiting:
        for name in _references(definitions[waiting.pop()]):
            if name in definitions and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _references(value: Any) -> Iterator[str]:  # Any: JSON
    match value:
        case {"$ref": str(reference)}:
            yield reference.removeprefix(_LOCAL)
        case dict():
            for inner in value.values():
                yield from _references(inner)
        case list():
            for inner in value:
                yield from _references(inner)
        case _:
            pass
