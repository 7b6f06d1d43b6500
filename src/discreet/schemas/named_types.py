"""The named types of several schemas, gathered in one place of a document. Knows where a schema holds schemas, and no values."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, TypeAlias, final

import msgspec

from .cycles import circles
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
_DIGEST_BYTES: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
"""The names that a component may have (OpenAPI 3.1, section 4.8.7)."""


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
        self._last: _Definitions | None = None
        self._pending: deque[tuple[str, str, Mapping[str, JsonSchema]]] = deque()
        self._prefix = prefix

    def include(self, schema: Schema, root: JsonSchema | None = None) -> Schema:
        """The schema in this document, to which the types are added that it refers to. `root` is the document that it is from."""
        if isinstance(schema, bool):
            return schema
        included = self._rewritten(schema, (schema if root is None else root).get("$defs", {}))
        self._write_pending()
        return included

    def include_named(self, schema: JsonSchema, name: str = "") -> Schema:
        """Include a schema as `include` does, and make a type of the document of it, by this name or its title."""
        definitions = schema.get("$defs", {})
        body = {keyword: value for keyword, value in schema.items() if keyword not in _ROOT_ONLY}
        name = name or body.get("title", "")
        if not _NAME.fullmatch(name) or definitions.get(name, body) != body:
            return self.include(schema)
        return self._reference(name, {**definitions, name: body})

    def add(self, name: str, schema: JsonSchema) -> JsonSchema:
        """A reference to a schema of this document itself, under this name or one with a number."""
        return self._reference(name, {name: schema})

    def _reference(self, name: str, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
        defined = self._define(name, definitions)
        self._write_pending()
        return {"$ref": self._prefix + defined}

    def _define(self, own: str, definitions: Mapping[str, JsonSchema]) -> str:
        """The name of a type here. Two types are equal if they and all types that they refer to are the same."""
        if self._last is None or self._last.of is not definitions:
            self._last = _Definitions(definitions)
        key = own, self._last.digest(own)
        if key not in self._names:
            name, count = own, 1
            while name in self.schemas:
                count += 1
                name = f"{own}_{count}"
            self._names[key] = name
            self.schemas[name] = True  # reserves the name before the type is written
            self._pending.append((name, own, definitions))
        return self._names[key]

    def _write_pending(self) -> None:
        """Write the types that were defined, which may define others. Takes no stack: types may refer to each other in a row."""
        while self._pending:
            name, own, definitions = self._pending.popleft()
            self.schemas[name] = self._rewritten(definitions[own], definitions)

    def _rewritten(self, schema: Schema, definitions: Mapping[str, JsonSchema]) -> Schema:
        if isinstance(schema, bool):
            return schema
        names = {
            LOCAL + name: self._prefix + self._define(name, definitions) for name in _names_in(schema, definitions)
        }
        return rewritten(schema, names, self._adapt)


@final
class _Definitions:
    """The types of one schema, and a digest of each with all that it refers to. Those on one circle refer to the same types."""

    def __init__(self, definitions: Mapping[str, JsonSchema]) -> None:
        self.of: Final = definitions
        self._edges: Final = {name: tuple(_names_in(schema, definitions)) for name, schema in definitions.items()}
        self._circles: Final = circles(self._edges)
        self._bodies: dict[str, bytes] = {}
        self._digests: dict[str | int, bytes] = {}

    def digest(self, name: str) -> bytes:
        place: str | int = self._circles.get(name, name)
        if place not in self._digests:
            digest = blake2b(digest_size=_DIGEST_BYTES)
            for other in sorted(self._reachable(name)):
                digest.update(self._body(other))
            self._digests[place] = digest.digest()
        return self._digests[place]

    def _reachable(self, name: str) -> set[str]:
        """The names of a type and of all types that it refers to, directly or indirectly."""
        found, pending = {name}, [name]
        while pending:
            for other in self._edges[pending.pop()]:
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return found

    def _body(self, name: str) -> bytes:
        if name not in self._bodies:
            text = msgspec.json.encode((name, self.of[name]))
            self._bodies[name] = blake2b(text, digest_size=_DIGEST_BYTES).digest()
        return self._bodies[name]


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
    chosen = written.get("discriminator")
    if isinstance(chosen, dict) and isinstance(chosen.get("mapping"), dict):
        mapping = {tag: references.get(place, place) for tag, place in chosen["mapping"].items()}
        written["discriminator"] = {**chosen, "mapping": mapping}
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


def _names_in(schema: Schema, definitions: Mapping[str, JsonSchema]) -> dict[str, None]:
    """The names of the types that a schema refers to itself, in its order."""
    names = (each.removeprefix(LOCAL) for each in references_of(schema) if each.startswith(LOCAL))
    return dict.fromkeys(name for name in names if name in definitions)


def _schemas_in(keyword: str, value: Any) -> Iterable[Schema]:  # Any: what a keyword holds
    if keyword in _BY_NAME:
        return tuple(value.values())
    if keyword in _LISTS:
        return tuple(value)
    return (value,) if keyword in _SINGLE else ()
