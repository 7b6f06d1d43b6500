"""Interprets the keywords of one JSON Schema: references, types, and whether a scalar is accepted.

Knows the keywords that `json_schema` writes. Keywords that it can't combine are kept, so that callers see them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from .json_schema import JsonSchema

_ALL_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
ANNOTATIONS: Final = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "discriminator",
    }
)
NUMERIC: Final = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"})


def dereference(schema: Any, document: JsonSchema) -> JsonSchema:  # Any: a schema may be a boolean
    """The schema with its reference replaced by what it refers to. A reference out of the document stays."""
    if isinstance(schema, bool):
        return {} if schema else {"enum": []}
    if "$ref" not in schema:
        return _without_const(schema)
    name = schema["$ref"].removeprefix("#/$defs/")
    target = document.get("$defs", {}).get(name)
    rest = {keyword: value for keyword, value in schema.items() if keyword not in ANNOTATIONS | {"$ref"}}
    if target is None:
        return {"$ref": schema["$ref"], **rest}  # `$ref` then counts as an unknown keyword
    return intersect(dereference(target, document), rest)


def _without_const(schema: JsonSchema) -> JsonSchema:
    """`const` written as the `enum` of one value that it means."""
    plain = {keyword: value for keyword, value in schema.items() if keyword != "const"}
    return intersect(plain, {"enum": [schema["const"]]}) if "const" in schema else plain


def intersect(one: JsonSchema, other: Any) -> JsonSchema:  # Any: a schema may be a boolean
    """A schema that accepts what both accept. Where both have a keyword and differ, `allOf` holds the second one."""
    if isinstance(other, bool):
        return one if other else {"enum": []}
    merged = dict(one)
    for keyword, value in other.items():
        if keyword == "required":
            merged[keyword] = list(dict.fromkeys([*one.get(keyword, ()), *value]))
        elif keyword in one and one[keyword] != value and keyword not in ANNOTATIONS:
            merged["allOf"] = [*merged.get("allOf", ()), {keyword: value}]
        else:
            merged[keyword] = value
    return merged


def json_types(schema: JsonSchema) -> frozenset[str]:
    """The JSON types that the schema accepts; `number` includes `integer`."""
    stated = schema.get("type", _ALL_TYPES)
    kinds = frozenset({stated} if isinstance(stated, str) else stated)
    return kinds | {"integer"} if "number" in kinds else kinds


def accepts(schema: JsonSchema, value: Any) -> bool:  # Any: a value of an enum
    """Whether the schema accepts a scalar value; False where that can't be decided."""
    match value:
        case bool() | None:
            fits = ("null" if value is None else "boolean") in json_types(schema)
        case int() | float():
            exact = {name: schema[name] for name in NUMERIC if name in schema}
            fits = ("integer" if isinstance(value, int) else "number") in json_types(schema) and _in_bounds(
                exact, value
            )
        case str():
            fits = "string" in json_types(schema) and _fits_text(schema, value)
        case _:
            fits = False
    return fits and ("enum" not in schema or any(value == one and type(value) is type(one) for one in schema["enum"]))


def _in_bounds(limits: JsonSchema, value: float) -> bool:
    checks: dict[str, Callable[[Any], bool]] = {
        "minimum": lambda limit: value >= limit,
        "exclusiveMinimum": lambda limit: value > limit,
        "maximum": lambda limit: value <= limit,
        "exclusiveMaximum": lambda limit: value < limit,
        "multipleOf": lambda step: value % step == 0,
    }
    return all(checks[name](limit) for name, limit in limits.items())


def _fits_text(schema: JsonSchema, value: str) -> bool:
    if "format" in schema or not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    try:
        return re.search(schema.get("pattern", ""), value) is not None
    except re.error:  # a syntax that only ECMA 262 has
        return False


def to_json(value: Any) -> str:  # Any: whatever stands in a schema
    """A part of a schema as messages show it."""
    return msgspec.json.encode(value).decode()
