"""Describes schemas in words, and by the JSON types of their values. Reads schemas of any author; sees no values but those in
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..daemon.operations.type_phrases import json_text
from ..errors.failures import JsonScalar
from .json_schema import JsonSchema
from .keywords import to_json

_SCALARS: Final = (str, int, float, bool, type(None))
_BOUNDS: Final = {
    "minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<", "multipleOf": "a multiple of",
}  # fmt: skip
_SPANS: Final = (
    ("minLength", "maxLength", "of", "character"),
    ("minItems", "maxItems", "with", "item"),
    ("minProperties", "maxProperties", "of", "member"),
)
_MOST_ACCEPTED: Final = 64
"""Values of a closed list that are named."""
_MOST_TOLD: Final = 32
"""Alternatives that are told. Inside of them half as many are."""
_MOST_ASKED: Final = 512
"""Alternatives that are asked for their types. Inside of them an eighth of that is."""
_DEEPEST: Final = 6
"""How many references and alternatives inside each other are followed."""

ALL_KINDS: Final = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})


def describe_schema(schema: Any, document: JsonSchema, depth: int = 0) -> str:
    """A schema in a few words: `integer >= 1`, `string of 1 to 10 characters`, `string or null`, `one of` for a closed list."""
    if not isinstance(schema, Mapping):
        return "any value" if schema in (True, {}) else "nothing"
    if isinstance(schema.get("$ref"), str) and depth <= _DEEPEST:
        return describe_schema(_referred(schema["$ref"], document), document, depth + 1)
    if closed_list(schema) is not None:
        return "one of"
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list) and depth <= _DEEPEST and "type" not in schema:
            told = schema[keyword][: _MOST_TOLD >> depth]  # so that alternatives of alternatives stay few
            return " or ".join(dict.fromkeys(describe_schema(each, document, depth + 1) for each in told))
    stated = schema.get("type")
    kinds = [stated] if isinstance(stated, str) else [kind for kind in stated or () if isinstance(kind, str)]
    if not kinds:
        merged = next((each for each in schema.get("allOf", ()) if isinstance(each, Mapping)), None)
        return "any value" if merged is None or depth > _DEEPEST else describe_schema(merged, document, depth + 1)
    phrase = " or ".join(kinds)
    if kinds == ["array"] and isinstance(schema.get("items"), Mapping) and depth <= _DEEPEST:
        phrase = f"array of {describe_schema(schema['items'], document, depth + 1)}"
    bounds = [f"{sign} {to_json(schema[word])}" for word, sign in _BOUNDS.items() if _is_number(schema.get(word))]
    spans = [span for row in _SPANS if (span := _span(schema, *row))]
    pattern = ["matching a pattern"] if "pattern" in schema else []
    return " ".join([phrase, " and ".join(bounds), *spans, *pattern]).replace("  ", " ").strip()


def describe_members(document: JsonSchema) -> list[str]:
    """The members of an object for people, in their order: `level: string`, or `limit?: integer` if optional."""
    required = document.get("required", ())
    return [
        f"{name}{'' if name in required else '?'}: {_for_people(schema, document)}"
        for name, schema in document.get("properties", {}).items()
    ]


def describe_value(document: JsonSchema) -> str:
    """The values of a schema for people."""
    return _for_people(document, document)


def _for_people(schema: Any, document: JsonSchema) -> str:
    accepted = closed_list(schema)
    return describe_schema(schema, document) if accepted is None else f"one of {', '.join(map(json_text, accepted))}"


def schema_kinds(schema: Any, document: JsonSchema, depth: int = 0) -> frozenset[str]:
    """The JSON types that a schema accepts, as far as `type`, `enum`, `const` and what they are combined with say it; `number`
    includes `integer`."""
    if schema is False:
        return frozenset()
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return ALL_KINDS
    found = ALL_KINDS
    if isinstance(schema.get("$ref"), str):
        found &= schema_kinds(_referred(schema["$ref"], document), document, depth + 1)
    stated = schema.get("type")
    if isinstance(stated, str | list | tuple):
        words = [stated] if isinstance(stated, str) else stated
        found &= frozenset(map(str, words)) | (frozenset({"integer"}) if "number" in words else frozenset())
    if isinstance(values := [schema["const"]] if "const" in schema else schema.get("enum"), list | tuple):
        found &= frozenset(map(exact_kind, values))
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list | tuple) and len(branches) <= _MOST_ASKED >> 3 * depth:
            found &= frozenset[str]().union(*(schema_kinds(each, document, depth + 1) for each in branches))
    for each in schema.get("allOf", ())[: _MOST_ASKED >> 3 * depth]:
        found &= schema_kinds(each, document, depth + 1)
    return found


def closed_list(schema: Any) -> tuple[JsonScalar, ...] | None:
    """The closed list of scalar values that a schema accepts; None where there is none, or a long one."""
    if not isinstance(schema, Mapping):
        return None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list | tuple) or not 0 < len(values) <= _MOST_ACCEPTED:
        return None
    return tuple(values) if all(isinstance(each, _SCALARS) for each in values) else None


def exact_kind(value: Any) -> str:
    """The JSON type of a value, `integer` for whole numbers."""
    return "integer" if isinstance(value, int) and not isinstance(value, bool) else json_kind(value)


def json_kind(value: Any) -> str:
    """The JSON type of a value, as errors name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if isinstance(value, list | tuple) else "object"


def part_at(schema: Any, path: Sequence[str | int]) -> Any:
    """Return the part at a path in a schema; an empty schema if there is none."""
    for part in path:
        try:
            schema = schema[part] if isinstance(schema, Mapping) else schema[int(part)]
        except (KeyError, IndexError, TypeError, ValueError):
            return {}
    return schema if isinstance(schema, Mapping | bool) else {}


def _referred(reference: str, document: JsonSchema) -> Any:
    if not reference.startswith("#/"):
        return document if reference == "#" else {}
    parts = (part.replace("~1", "/").replace("~0", "~") for part in reference[2:].split("/"))
    return part_at(document, list(parts))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _span(schema: Mapping[str, Any], least: str, most: str, preposition: str, unit: str) -> str:
    low, high = schema.get(least, 0), schema.get(most)
    if not _is_number(low) or (high is not None and not _is_number(high)) or (not low and high is None):
        return ""
    if high is None:
        return f"{preposition} at least {low} {unit}{'' if low == 1 else 's'}"
    if low in (0, high):
        return f"{preposition} {'at most ' if low != high else ''}{high} {unit}{'' if high == 1 else 's'}"
    return f"{preposition} {low} to {high} {unit}s"
