"""Single keywords: which values each may have, and what those of OpenAPI 3.0 are in JSON Schema 2020-12. Knows no references."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

JsonSchema: TypeAlias = dict[str, Any]

Applicator: TypeAlias = Literal["inner", "all", "any", "inner-map", "any-map", "all-list", "any-list", "inner-list"]
"""What a keyword holds: a schema, a map of them or a list. `inner` schemas are for a part of the value. The others are for
the value itself: it must match all of them, or not necessarily (`any`)."""

APPLICATORS: Final[dict[str, Applicator]] = {
    "properties": "inner-map",
    "patternProperties": "inner-map",
    "additionalProperties": "inner",
    "propertyNames": "inner",
    "unevaluatedProperties": "inner",
    "items": "inner",
    "prefixItems": "inner-list",
    "contains": "inner",
    "unevaluatedItems": "inner",
    "contentSchema": "inner",
    "allOf": "all-list",
    "anyOf": "any-list",
    "oneOf": "any-list",
    "not": "any",
    "if": "any",
    "then": "any",
    "else": "any",
    "dependentSchemas": "any-map",
}

DROPPED: Final = frozenset(
    {
        "$id",
        "$anchor",
        "$dynamicAnchor",
        "$defs",
        "definitions",
        "$schema",
        "$vocabulary",
        "nullable",
        "example",
        "$recursiveAnchor",
        "$recursiveRef",
    }
)
"""Keywords that are no part of what is read: references are resolved, and those of 3.0 have become others."""

_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(_are_names(each) for each in value.values())


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


_Check: TypeAlias = tuple[Callable[[Any], bool], str]

_TEXT: Final[_Check] = (_is_text, "a string")
_NUMBER: Final[_Check] = (_is_number, "a number")
_COUNT: Final[_Check] = (_is_count, "a whole number, 0 or more")
_FLAG: Final[_Check] = (_is_flag, "true or false")
_LIST: Final[_Check] = (_is_list, "an array")

CHECKS: Final[dict[str, _Check]] = {
    **dict.fromkeys(
        ("title", "description", "$comment", "pattern", "format", "contentEncoding", "contentMediaType"), _TEXT
    ),
    **dict.fromkeys(("minimum", "maximum"), _NUMBER),
    "exclusiveMinimum": (lambda value: _is_flag(value) or _is_number(value), "a number"),
    "exclusiveMaximum": (lambda value: _is_flag(value) or _is_number(value), "a number"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys(
        (
            *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
            *("minContains", "maxContains"),
        ),
        _COUNT,
    ),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated", "nullable"), _FLAG),
    **dict.fromkeys(("enum", "examples"), _LIST),
    "dependentRequired": (_is_text_map, "an object of arrays of names"),
    "discriminator": (lambda value: isinstance(value, dict), "an object"),
}
"""What the value of a keyword must be, and how that is said."""


@lru_cache(maxsize=4096)
def is_pattern(text: str) -> bool:
    """Whether a text is a regular expression for the library that checks values, if that is installed: one that it can't read
    would make the whole schema useless."""
    try:
        import jsonschema_rs  # late: an extra
    except ImportError:
        return True
    try:
        jsonschema_rs.Draft202012Validator({"pattern": text})
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True


def read_types(value: Any) -> Any:
    """The value of `type`. None where it is none: a list may hold null, which YAML makes of the word."""
    if isinstance(value, str):
        return value if value in _TYPES else None
    if not isinstance(value, list):
        return None
    names = ["null" if each is None else each for each in value]
    if not names or not all(isinstance(each, str) and each in _TYPES for each in names):
        return None
    return value if names == value and len(set(names)) == len(names) else list(dict.fromkeys(names))


def with_bounds(schema: JsonSchema) -> JsonSchema:
    """`exclusiveMinimum: true` of 3.0 as the bound itself."""
    for strict, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        flag = schema.get(strict)
        if isinstance(flag, bool):
            bound = schema.get(plain)
            schema = {word: value for word, value in schema.items() if word != strict and (word != plain or not flag)}
            if flag and bound is not None:
                schema[strict] = bound
    return schema


def with_encoding(schema: JsonSchema) -> JsonSchema:
    """Bytes are base64 in JSON: `format: byte` and `format: binary` of 3.0, and what 3.1 calls an octet stream."""
    if "contentEncoding" in schema:
        return schema
    is_binary = (
        schema.get("format") in ("byte", "binary") or schema.get("contentMediaType") == "application/octet-stream"
    )
    if is_binary and schema.get("type", "string") in ("string", ["string", "null"]):
        return {**schema, "contentEncoding": "base64"}
    return schema


def with_prefix_items(schema: JsonSchema) -> JsonSchema:
    """`items: [...]` of older JSON Schema, which has several generators to this day."""
    if not isinstance(schema.get("items"), list):
        return schema
    rest = {word: value for word, value in schema.items() if word not in ("items", "additionalItems")}
    further = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
    return {**rest, **({"prefixItems": schema["items"]} if schema["items"] else {}), **further}


def with_example(schema: JsonSchema, raw: JsonSchema) -> JsonSchema:
    if "example" in raw and "examples" not in schema:
        return {**schema, "examples": [raw["example"]]}
    return schema


def with_null(schema: JsonSchema) -> JsonSchema:
    """The schema of the same values and null: `nullable` of 3.0. What is said about the value stays outside of alternatives."""
    types = schema.get("type")
    if isinstance(types, str):
        if types == "null":
            return schema
        changed = {**schema, "type": [types, "null"]}
    elif isinstance(types, list):
        changed = schema if "null" in types else {**schema, "type": [*types, "null"]}
    else:
        changed = schema
    if types is not None and "enum" in changed and None not in changed["enum"]:
        changed = {**changed, "enum": [*changed["enum"], None]}
    if types is not None and "const" in changed and changed["const"] is not None:
        changed = {word: value for word, value in changed.items() if word != "const"} | {
            "enum": [changed["const"], None]
        }
    constraints = {
        word: value for word, value in changed.items() if word in _COMBINING or (types is None and word in _CLOSED)
    }
    if not constraints:
        return changed
    told = {word: value for word, value in changed.items() if word in _SPOKEN}
    rest = {word: value for word, value in changed.items() if word not in _SPOKEN}
    return {**told, "anyOf": [rest, {"type": "null"}]}


_COMBINING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_CLOSED: Final = frozenset({"enum", "const"})
_SPOKEN: Final = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "externalDocs",
        "xml",
        "$comment",
    }
)
