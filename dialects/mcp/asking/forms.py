"""The forms that a user fills in: schemas of a param's type. Asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....daemon.operations.service import DeclarationError
from ....daemon.schemas.json_schema import JsonSchema, json_schema

_PRIMITIVES: Final = frozenset({"string", "number", "integer", "boolean"})


def form_of(operation: str, name: str, hint: Any) -> tuple[JsonSchema, bool]:  # Any: an annotation
    """The schema of the form that fills a param, and whether the param is all of it: that of a struct.

    Raises `DeclarationError` for a param that no form can fill.
    """
    schema = {word: part for word, part in json_schema(hint).items() if word not in ("$schema", "title")}
    whole = schema.get("type") == "object" and "properties" in schema
    parts: dict[str, JsonSchema] = schema["properties"] if whole else {name: schema}
    required: list[str] = schema.get("required", []) if whole else [name]
    definitions: dict[str, JsonSchema] = schema.get("$defs", {})
    properties = {key: _primitive(part, definitions) for key, part in parts.items()}
    if not all(part.get("type") in _PRIMITIVES for part in properties.values()):
        raise DeclarationError(
            f"operation {operation}: the user can't be asked for param {name}, since forms have strings, numbers,"
            " booleans and choices of strings only; use one of these, or a struct of them"
        )
    return {"type": "object", "properties": properties, "required": required}, whole


def _primitive(part: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    if "$ref" in part:
        part = {**definitions[part["$ref"].rpartition("/")[2]], **part}
        del part["$ref"]
    if part.get("enum") and all(isinstance(choice, str) for choice in part["enum"]):
        part = {"type": "string", **part}
    return {key: value for key, value in part.items() if not key.startswith("x-")}
