"""The named types of several schemas, gathered in one place of a document. Knows where a schema holds schemas, and no values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, final

import msgspec

from .json_schema import JsonSchema
from .keywords import NUMERIC

Schema: TypeAlias = JsonSchema | bool

LOCAL: Final = "#/$defs/"
"""How a schema of `json_schema` refers to a named type."""
SHARED: Final = "#/components/schemas/"
"""How a document of OpenAPI or OpenRPC does."""

_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
"""Keywords that hold schemas: by name, in a list, or a single one. All others hold values, which are copied."""
_ROOT_ONLY: Final = frozenset({"$schema", "$defs"})
_LENGTHS: Final = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
"""What a component may be called (OpenAPI 3.1, section 4.8.7)."""


@final
class NamedTypes:
    """The named types of a whole document. Equal types are shared; different ones of the same name get a number.

    `adapt(schema)` changes the keywords of one schema, whose inner schemas have been adapted already, to those of the document.
    `prefix` is what the document puts before a name where it refers to one.
    """

    def __init__(
        self, adapt: Callable[[JsonSchema], JsonSchema] = lambda schema: schema, *, prefix: str = SHARED
    ) -> None:
        self.schemas: dict[str, Schema] = {}
        self._names: dict[tuple[str, bytes], str] = {}
        self._adapt = adapt
        self._prefix = prefix

    def include(self, schema: Schema, root: JsonSchema | None = None) -> Schema:
        """The schema in this document, to which the types are added that it refers to. `root` is the document that it is from."""
        if isinstance(schema, bool):
            return schema
        definitions = (schema if root is None else root).get("$defs", {})
        names = {
            LOCAL + name: self._prefix + self._define(name, definitions) for name in _reachable(schema, definitions)
        }
        return rewritten(schema, names, self._adapt)

    def include_named(self, schema: JsonSchema, name: str = "") -> Schema:
        """The same, but a schema with a name, which is its title otherwise, becomes a type of the document, too."""
        definitions = schema.get("$defs", {})
        body = {keyword: value for keyword, value in schema.items() if keyword not in _ROOT_ONLY}
        name = name or body.get("title", "")
        if not _NAME.fullmatch(name) or definitions.get(name, body) != body:
            return self.include(schema)
        return {"$ref": self._prefix + self._define(name, {**definitions, name: body})}

    def add(self, name: str, schema: JsonSchema) -> JsonSchema:
        """A reference to a schema of this document itself, under this name or one with a number."""
        return {"$ref": self._prefix + self._define(name, {name: schema})}

    def _define(self, own: str, definitions: Mapping[str, JsonSchema]) -> str:
        """The name of a type here. Two types are equal if they and all types that they refer to are the same."""
        reached = sorted(_reachable(definitions[own], definitions) | {own})
        key = own, msgspec.json.encode([(name, definitions[name]) for name in reached])
        if key not in self._names:
            name, count = own, 1
            while name in self.schemas:
                count += 1
                name = f"{own}_{count}"
            self._names[key] = name
            self.schemas[name] = True  # reserves the name before a type that may refer to it is written
            self.schemas[name] = self.include(definitions[own], {"$defs": definitions})
        return self._names[key]


def rewritten(
    schema: Schema,
    references: Mapping[str, str],
    adapt: Callable[[JsonSchema], JsonSchema] = lambda schema: schema,
) -> Schema:
    """A copy of the schema without `$schema` and `$defs`, each of whose `references` has been replaced."""
    if isinstance(schema, bool):
        return schema
    body = {keyword: value for keyword, value in schema.items() if keyword not in _ROOT_ONLY}
    written = with_inner(body, lambda inner: rewritten(inner, references, adapt))
    if "$ref" in written:
        written["$ref"] = references.get(written["$ref"], written["$ref"])
    return adapt(written)


def with_inner(schema: JsonSchema, change: Callable[[Any], Schema]) -> JsonSchema:
    """A copy of the schema, each of whose inner schemas has been changed; `$defs` stay as they are."""
    written: JsonSchema = {}
    for keyword, value in schema.items():
        if keyword in _BY_NAME:
            value = {name: change(inner) for name, inner in value.items()}
        elif keyword in _LISTS:
            value = [change(inner) for inner in value]
        elif keyword in _SINGLE:
            value = change(value)
        written[keyword] = value
    return written


def references_of(schema: Schema) -> Iterator[str]:
    """All `$ref` in a schema, as they are written."""
    if isinstance(schema, bool):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield reference
    for keyword, value in schema.items():
        for inner in _schemas_in(keyword, value):
            yield from references_of(inner)


def require_schema(value: Any) -> None:  # Any: JSON
    """Raises `ValueError` for what is no schema by the form of its keywords (JSON Schema 2020-12): what is read from a file may
    be anything."""
    if isinstance(value, bool):
        return
    if not isinstance(value, dict):
        raise ValueError("a schema is an object or a boolean")
    for keyword, stated in value.items():
        if keyword in _FORMS and not _FORMS[keyword](stated):
            raise ValueError(f"{keyword} has another form")
        for inner in stated.values() if keyword == "$defs" else _schemas_in(keyword, stated):
            require_schema(inner)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_FORMS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys((*_BY_NAME, "$defs"), lambda value: isinstance(value, dict)),
    **dict.fromkeys((*_LISTS, "enum"), lambda value: isinstance(value, list)),
    **dict.fromkeys((*(NUMERIC - {"multipleOf"}), *_LENGTHS), _is_number),
    **dict.fromkeys(("$ref", "pattern", "format"), lambda value: isinstance(value, str)),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "required": _is_texts,
    "type": lambda value: isinstance(value, str) or _is_texts(value),
}


def _reachable(schema: Schema, definitions: Mapping[str, JsonSchema]) -> set[str]:
    """The names of all types that a schema refers to, directly or indirectly."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        for reference in references_of(pending.pop()):
            name = reference.removeprefix(LOCAL)
            if reference.startswith(LOCAL) and name in definitions and name not in found:
                found.add(name)
                pending.append(definitions[name])
    return found


def _schemas_in(keyword: str, value: Any) -> Iterable[Schema]:  # Any: what a keyword holds
    if keyword in _BY_NAME:
        return tuple(value.values())
    if keyword in _LISTS:
        return tuple(value)
    return (value,) if keyword in _SINGLE else ()
