"""Keywords in the form in which tools of OpenAPI read them, and back again.

Many take no boolean for a schema, and no format that JSON Schema does not define: what such a format means is told as a pattern.
"""

from __future__ import annotations

from typing import Any, Final

from ...schemas.json_schema import DURATION, JsonSchema
from ...schemas.named_types import Schema, with_inner

_YEAR: Final = r"(?:[1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])"
_MONTH_DAY: Final = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))"
)
_OF_FOUR: Final = r"(?:0[48]|[2468][048]|[13579][26])"
_DATE: Final = rf"(?:{_YEAR}-{_MONTH_DAY}|(?:\d{{2}}{_OF_FOUR}|{_OF_FOUR}00)-02-29)"
_TIME: Final = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"

PATTERNS: Final = {
    "date-time-local": rf"^{_DATE}T{_TIME}$",
    "decimal": r"^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?|Infinity|NaN)$",
    "time-local": rf"^{_TIME}$",
}
"""Texts of the formats that are our own, in the forms that results have, and that params may have among others."""

_SHORT_DURATION: Final = DURATION.replace(r"\d+", r"\d{1,9}")
"""The durations that the decoder takes are not much longer: no more than 999,999,999 days."""


def to_openapi(schema: JsonSchema) -> JsonSchema:
    """Alternatives that are told apart by a tag become a `oneOf`, a tuple without further items gets `maxItems` in place of
    `"items": false`, `"items": true` becomes `{}`, a format of our own gets its pattern, and several types become alternatives
    of one."""
    if isinstance(chosen := schema.get("discriminator"), dict) and not _is_discriminator(chosen):
        schema = _without(schema, "discriminator")
    if "anyOf" in schema and _maps_all(schema.get("discriminator"), schema["anyOf"]):
        schema = {"oneOf" if word == "anyOf" else word: value for word, value in schema.items()}
    if isinstance(types := schema.get("type"), list):
        rest = _without(schema, "type", *_OF_TEXT)
        text: JsonSchema = {word: schema[word] for word in _OF_TEXT if word in schema}
        branches: list[JsonSchema] = [{"type": each} | (text if each == "string" else {}) for each in types]
        return {"anyOf": [to_openapi(branch) for branch in branches], **rest}
    if schema.get("format") in PATTERNS and "pattern" not in schema:
        schema = {**schema, "pattern": PATTERNS[schema["format"]]}
    elif schema.get("pattern") == DURATION:
        schema = {**schema, "pattern": _SHORT_DURATION}
    match schema.get("items"):
        case True:
            return {**schema, "items": {}}
        case False:
            return {**_without(schema, "items"), "maxItems": len(schema.get("prefixItems", ()))}
        case _:
            return schema


def with_optional_members(schema: Schema) -> Schema:
    """A named type in which `default` is `x-default`: openapi-typescript takes members with the former for such that are always
    there, also in what is sent."""
    if isinstance(schema, bool):
        return schema
    written = with_inner(schema, with_optional_members)
    return {_DEFAULT if word == "default" else word: value for word, value in written.items()}


_DEFAULT: Final = "x-default"


def from_openapi(schema: JsonSchema) -> JsonSchema:
    """The schema from which `to_openapi` made this one, or one with the same values."""
    if _DEFAULT in schema:
        schema = {"default" if word == _DEFAULT else word: value for word, value in schema.items()}
    if "oneOf" in schema and _maps_all(schema.get("discriminator"), schema["oneOf"]):
        schema = {"anyOf" if word == "oneOf" else word: value for word, value in schema.items()}
    if "pattern" in schema and PATTERNS.get(schema.get("format", "")) == schema["pattern"]:
        schema = _without(schema, "pattern")
    elif schema.get("pattern") == _SHORT_DURATION:
        schema = {**schema, "pattern": DURATION}
    most = schema.get("maxItems")
    if "items" not in schema and most is not None and most == len(schema.get("prefixItems", ())):
        return {**_without(schema, "maxItems"), "items": False}
    return {**schema, "items": True} if schema.get("items") == {} else schema


_OF_TEXT: Final = ("format", "pattern")


def _without(schema: JsonSchema, *keywords: str) -> JsonSchema:
    return {word: value for word, value in schema.items() if word not in keywords}


def _is_discriminator(value: dict[str, Any]) -> bool:
    """Whether this is one by the meta-schema of OpenAPI: documents of others have it in other forms."""
    return (
        isinstance(value.get("propertyName"), str)
        and value.keys() <= {"propertyName", "mapping"}
        and isinstance(value.get("mapping", {}), dict)
    )


def _maps_all(chosen: Any, branches: list[Any]) -> bool:
    """Whether a discriminator leads to these alternatives, all of which are references."""
    mapping = chosen.get("mapping") if isinstance(chosen, dict) else None
    places = [each.get("$ref") for each in branches if isinstance(each, dict)]
    return isinstance(mapping, dict) and len(places) == len(branches) and set(mapping.values()) == set(places)
