"""Examples of values that a schema accepts: those that its author gives, else the plainest that fit.

Knows the keywords that `json_schema` writes. Where it can't be sure that a value fits, there is no example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import UNSET

from ...schemas.json_schema import JsonSchema
from ...schemas.keywords import NUMERIC, accepts, dereference, json_types
from ...schemas.named_types import Schema

MAX_DEPTH: Final = 16
"""Of values within values. A type that needs more, such as one that always holds itself, has no example."""

MAX_ITEMS: Final = 16
MAX_TEXT: Final = 256
"""Longer lists and texts are no examples any more."""

_FORMATS: Final = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "date-time-local": "2026-01-31T12:00:00",
    "decimal": "12.5",
    "time": "12:00:00Z",
    "time-local": "12:00:00",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}
_TEXTS: Final = ("text", "A", "a", "1", "PT1H", "YQ==")
"""Values that may fit a pattern."""
_STANDARD: Final = frozenset({"$schema", "$defs", "title", "description", "default", "examples", "type"})
_UNDERSTOOD: Final = {
    "object": {"properties", "required", "additionalProperties", "propertyNames", "maxProperties"},
    "string": {"minLength", "maxLength", "pattern", "format", "contentEncoding"},
    "integer": NUMERIC,
    "number": NUMERIC,
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "boolean": frozenset[str](),
    "null": frozenset[str](),
}
"""Which keywords of each JSON type are obeyed. The first type that a schema accepts is that of its example."""


class NoExample(Exception):
    """No value is known to fit."""


def example_of(schema: Schema, root: JsonSchema) -> Any:  # JSON
    """A value that the schema accepts; UNSET where none is known. `root` is the document that it is from."""
    try:
        return _example(schema, root, 0)
    except NoExample:
        return UNSET


def _example(schema: Schema, root: JsonSchema, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise NoExample
    if isinstance(schema, dict):
        if schema.get("examples"):
            return schema["examples"][0]
        if schema.get("default") is not None:
            return schema["default"]
    plain = dereference(schema, root)
    if "enum" in plain:
        _require_understood(plain, {"enum"})
        return _first(plain["enum"])
    if "anyOf" in plain:
        _require_understood(plain, {"anyOf"})
        return _of_any(plain["anyOf"], root, depth)
    kinds = json_types(plain)
    kind = _first(each for each in _UNDERSTOOD if each in kinds)
    _require_understood(plain, _UNDERSTOOD[kind])
    match kind:
        case "object":
            return _object(plain, root, depth)
        case "array":
            return _array(plain, root, depth)
        case "string" if plain.get("format") in _FORMATS:
            return _FORMATS[plain["format"]]
        case "string":
            return _first(text for text in _texts(plain) if accepts({**plain, "type": "string"}, text))
        case "integer" | "number":
            return _first(number for number in _numbers(plain) if accepts(plain, number))
        case _:
            return True if kind == "boolean" else None


def _require_understood(schema: JsonSchema, words: Iterable[str]) -> None:
    if not schema.keys() <= _STANDARD.union(words):
        raise NoExample


def _of_any(branches: list[Schema], root: JsonSchema, depth: int) -> Any:
    for branch in sorted(branches, key=lambda each: each == {"type": "null"}):
        try:
            return _example(branch, root, depth + 1)
        except NoExample:
            continue
    raise NoExample


def _object(schema: JsonSchema, root: JsonSchema, depth: int) -> dict[str, Any]:
    """The members that must be there, and those of which the author says how they look."""
    required = schema.get("required", ())
    return {
        name: _example(member, root, depth + 1)
        for name, member in schema.get("properties", {}).items()
        if name in required or (isinstance(member, dict) and member.get("examples"))
    }


def _array(schema: JsonSchema, root: JsonSchema, depth: int) -> list[Any]:
    items = [_example(item, root, depth + 1) for item in schema.get("prefixItems", ())]
    least = schema.get("minItems", 0)
    if least > MAX_ITEMS:
        raise NoExample
    missing = (least or min(1, schema.get("maxItems", 1))) - len(items)
    if missing > 0 and schema.get("items", True) is not False:
        try:
            items += [_example(schema.get("items", True), root, depth + 1)] * missing
        except NoExample:
            if least:
                raise
    return items


def _texts(schema: JsonSchema) -> Iterator[str]:
    yield from _TEXTS
    if schema.get("minLength", 0) <= MAX_TEXT:
        yield "text".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def _numbers(schema: JsonSchema) -> Iterator[float]:
    yield from (1, 0)
    step = schema.get("multipleOf", 1)
    for word, direction in (("minimum", 1), ("exclusiveMinimum", 1), ("maximum", -1), ("exclusiveMaximum", -1)):
        if word in schema:
            limit = schema[word]
            yield from (limit, limit + direction * step, limit // step * step, (limit // step + 1) * step)
    yield step


def _first(values: Iterable[Any]) -> Any:
    for value in values:
        return value
    raise NoExample
