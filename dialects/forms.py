"""Makes the forms that a user fills in, for MCP and ACP: schemas of a type. Says which addresses a user may be asked to open.

Sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from ..schemas.json_schema import JsonSchema, json_schema

_PRIMITIVES: Final = frozenset({"string", "number", "integer", "boolean"})

_OWN_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def form_of(hint: Any, name: str = "", *, lists: bool = False) -> tuple[JsonSchema, bool]:  # Any: an annotation
    """The schema of the form that fills a value of this type, and whether the value is all of it: that of a struct. Any other
    value is the field `name`. With `lists` a field may be a list of choices.

    Raises `ValueError` for a type that no form can fill.
    """
    schema = {word: part for word, part in json_schema(hint).items() if word not in ("$schema", "title")}
    definitions: dict[str, JsonSchema] = schema.pop("$defs", {})
    if "$ref" in schema:
        schema = _resolved(schema, definitions)
    whole = schema.get("type") == "object" and "properties" in schema
    parts: dict[str, JsonSchema] = schema["properties"] if whole else {name: schema}
    required: list[str] = schema.get("required", []) if whole else [name]
    properties = {key: _field(part, definitions) for key, part in parts.items()}
    if not all(
        part.get("type") in _PRIMITIVES or (lists and _is_list_of_choices(part)) for part in properties.values()
    ):
        raise ValueError("forms have strings, numbers, booleans and choices of strings only")
    return {"type": "object", "properties": properties, "required": required}, whole


def _field(part: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    part = _resolved(part, definitions)
    if part.get("enum") and all(isinstance(choice, str) for choice in part["enum"]):
        part = {"type": "string", **part}
    if isinstance(part.get("items"), dict):
        part = {**part, "items": _field(part["items"], definitions)}
    return {key: value for key, value in part.items() if not key.startswith("x-")}


def _resolved(part: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    """The schema without a reference at its top. A value that may be null is a field that may be left empty."""
    if "$ref" in part:
        part = {**definitions[part["$ref"].rpartition("/")[2]], **part}
        del part["$ref"]
    others = [each for each in part.get("anyOf", ()) if each != {"type": "null"}]
    if len(others) == 1 and len(part["anyOf"]) == 2:
        rest = {key: value for key, value in part.items() if key != "anyOf" and (key, value) != ("default", None)}
        return {**_resolved(others[0], definitions), **rest}
    return part


def _is_list_of_choices(part: JsonSchema) -> bool:
    return part.get("type") == "array" and isinstance(part.get("items"), dict) and "enum" in part["items"]


def is_address(url: str) -> bool:
    """Whether a client may be asked to open it (basic security of URL mode: no plain HTTP but on the same machine)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _OWN_HOSTS))
