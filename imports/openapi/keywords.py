"""Single keywords: which values each may have, and what those of OpenAPI 3.0 are in JSON Schema 2020-12. Knows no references."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from ..model import JsonSchema

Place: TypeAlias = Literal["inner", "all", "any"]
"""The place of a schema in another: it is for a part of the value, or for the value itself, which must match it, or not
necessarily."""

Shape: TypeAlias = Literal["one", "map", "list"]

APPLICATORS: Final[dict[str, tuple[Place, Shape]]] = {
    "properties": ("inner", "map"),
    "patternProperties": ("inner", "map"),
    "additionalProperties": ("inner", "one"),
    "propertyNames": ("inner", "one"),
    "unevaluatedProperties": ("inner", "one"),
    "items": ("inner", "one"),
    "prefixItems": ("inner", "list"),
    "contains": ("inner", "one"),
    "unevaluatedItems": ("inner", "one"),
    "contentSchema": ("inner", "one"),
    "allOf": ("all", "list"),
    "anyOf": ("any", "list"),
    "oneOf": ("any", "list"),
    "not": ("any", "one"),
    "if": ("any", "one"),
    "then": ("any", "one"),
    "else": ("any", "one"),
    "dependentSchemas": ("any", "map"),
}
"""The keywords that hold a schema, a map of them or a list."""

DROPPED: Final = frozenset(
    "$id $anchor $dynamicAnchor $defs definitions $schema $vocabulary nullable example $recursiveAnchor $recursiveRef".split()
)
"""Keywords that are no part of what is read: references are resolved, and those of 3.0 have become others."""

_TYPES: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


_Check: TypeAlias = tuple[Callable[[Any], bool], str]

_TEXT: Final[_Check] = (lambda value: isinstance(value, str), "a string")
_NUMBER: Final[_Check] = (_is_number, "a number")
_BOUND: Final[_Check] = (lambda value: isinstance(value, bool) or _is_number(value), "a number")
_COUNT: Final[_Check] = (
    lambda value: _is_number(value) and value >= 0 and value == int(value),
    "a whole number, 0 or more",
)
_FLAG: Final[_Check] = (lambda value: isinstance(value, bool), "true or false")
_LIST: Final[_Check] = (lambda value: isinstance(value, list), "an array")

CHECKS: Final[dict[str, _Check]] = {
    **dict.fromkeys("title description $comment pattern format contentEncoding contentMediaType".split(), _TEXT),
    **dict.fromkeys("minimum maximum".split(), _NUMBER),
    **dict.fromkeys("exclusiveMinimum exclusiveMaximum".split(), _BOUND),
    **dict.fromkeys("minLength maxLength minItems maxItems minProperties maxProperties".split(), _COUNT),
    **dict.fromkeys("minContains maxContains".split(), _COUNT),
    **dict.fromkeys("uniqueItems readOnly writeOnly deprecated nullable".split(), _FLAG),
    **dict.fromkeys("enum examples".split(), _LIST),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "dependentRequired": (
        lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
        "an object of arrays of names",
    ),
    "discriminator": (lambda value: isinstance(value, dict), "an object"),
}
"""The check of a keyword's value, and its phrase."""


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
    """Return the value of `type`. None where it is none: a list may hold null, which YAML makes of the word."""
    if isinstance(value, str):
        return value if value in _TYPES else None
    if not isinstance(value, list):
        return None
    names = ["null" if each is None else each for each in value]
    if not names or not all(isinstance(each, str) and each in _TYPES for each in names):
        return None
    return value if names == value and len(set(names)) == len(names) else list(dict.fromkeys(names))


def as_written_today(schema: JsonSchema, raw: JsonSchema) -> JsonSchema:
    """Return a schema in the words of 2020-12. `raw` is what it was read from."""
    for strict, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        flag = schema.get(strict)
        if isinstance(flag, bool):
            bound = schema.get(plain)
            schema = {word: value for word, value in schema.items() if word != strict and (word != plain or not flag)}
            if flag and bound is not None:
                schema[strict] = bound
    if "example" in raw and "examples" not in schema:
        schema = {**schema, "examples": [raw["example"]]}
    return _with_encoding(schema)


def _with_encoding(schema: JsonSchema) -> JsonSchema:
    """Bytes are base64 in JSON: `format: byte` and `format: binary` of 3.0, and what 3.1 calls an octet stream."""
    if "contentEncoding" in schema:
        return schema
    is_binary = (
        schema.get("format") in ("byte", "binary") or schema.get("contentMediaType") == "application/octet-stream"
    )
    if is_binary and schema.get("type", "string") in ("string", ["string", "null"]):
        return {**schema, "contentEncoding": "base64"}
    return schema


def from_older_drafts(schema: JsonSchema) -> JsonSchema:
    """Return a schema whose `items: [...]` of older JSON Schema, which has several generators to this day, is `prefixItems`, and
    whose `dependencies` of draft 7 are `dependentRequired` and `dependentSchemas`."""
    if isinstance(schema.get("items"), list):
        rest = {word: value for word, value in schema.items() if word not in ("items", "additionalItems")}
        further = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
        schema = {**rest, **({"prefixItems": schema["items"]} if schema["items"] else {}), **further}
    if isinstance(given := schema.get("dependencies"), dict):
        rest = {word: value for word, value in schema.items() if word != "dependencies"}
        required = {name: each for name, each in given.items() if isinstance(each, list)}
        schemas = {name: each for name, each in given.items() if name not in required}
        schema = rest | ({"dependentRequired": required} if required else {})
        schema |= {"dependentSchemas": schemas} if schemas else {}
    return schema


_COMBINING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})
_CLOSED: Final = frozenset({"enum", "const"})
SPOKEN: Final = frozenset(
    "title description default examples deprecated readOnly writeOnly externalDocs xml $comment".split()
)


def with_null(schema: JsonSchema) -> JsonSchema:
    """Return the schema of the same values and null: `nullable` of 3.0. What is said about the value stays outside of
    alternatives."""
    types = schema.get("type")
    if types == "null":
        return schema
    if types is not None:
        listed = [types] if isinstance(types, str) else types
        schema = schema if "null" in listed else {**schema, "type": [*listed, "null"]}
        if "enum" in schema and None not in schema["enum"]:
            schema = {**schema, "enum": [*schema["enum"], None]}
        if schema.get("const") is not None:
            rest = {word: value for word, value in schema.items() if word != "const"}
            schema = rest | {"enum": [schema["const"], None]}
    if (_COMBINING if types is not None else _COMBINING | _CLOSED).isdisjoint(schema):
        return schema
    told = {word: value for word, value in schema.items() if word in SPOKEN}
    rest = {word: value for word, value in schema.items() if word not in SPOKEN}
    return {**told, "anyOf": [rest, {"type": "null"}]}
