"""Chooses the form in which each param of a query stands in a URL, by its schema. Reads no values.

A param that may be text is taken as it is written there. Numbers and booleans are JSON, lists of either are repeated, and
everything else is one JSON text. A value is never null: a param without one is left out.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from ...schemas.json_schema import JsonSchema
from ...schemas.keywords import dereference
from ...schemas.named_types import Schema
from ...schemas.phrases import exact_kind, schema_kinds

Form: TypeAlias = Literal["text", "scalar", "json"]

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_TEXT: Final = frozenset({"string"})
_NOT_TEXT: Final = _SCALARS - {"string", "null"}
_ARRAY: Final = frozenset({"array"})


class QueryParam(msgspec.Struct, frozen=True):
    """One param. `form` is that of its value, or of each where it may be `repeated`; `schema` is that of the values that can be
    written so, with the references of the input that it belongs to.
    """

    name: str
    form: Form
    repeated: bool
    required: bool
    schema: Schema


def query_params(model: JsonSchema) -> tuple[QueryParam, ...] | None:
    """The params of an input; None where they have no names of their own, so that no URL can hold them."""
    if model.get("type") != "object" or model.get("additionalProperties", False) is not False:
        return None
    required = model.get("required", ())
    return tuple(
        _param(name, schema, model, required=name in required) for name, schema in model.get("properties", {}).items()
    )


def _param(name: str, schema: Schema, root: JsonSchema, *, required: bool) -> QueryParam:
    kinds = schema_kinds(schema, root)
    if kinds <= _SCALARS and (form := _form(kinds)) is not None:
        return QueryParam(name, form[0], False, required, _narrowed(schema, root, form[1]))
    if kinds - {"null"} == _ARRAY and (repeated := _repeated(schema, root)) is not None:
        return QueryParam(name, repeated[0], True, required, repeated[1])
    return QueryParam(name, "json", False, required, schema)


def _form(kinds: frozenset[str]) -> tuple[Form, frozenset[str]] | None:
    """The form of a scalar, and the JSON types that values of that form have."""
    if "string" in kinds:
        return "text", _TEXT
    return ("scalar", _NOT_TEXT) if kinds & _NOT_TEXT else None


def _repeated(schema: Schema, root: JsonSchema) -> tuple[Form, Schema] | None:
    """The form of the items of a list, and its schema where it is not empty; None where items are no scalars."""
    lists = dereference(_narrowed(schema, root, _ARRAY), root)
    items = lists.get("items", True)
    kinds = schema_kinds(items, root)
    form = _form(kinds) if kinds <= _SCALARS and not {"anyOf", "enum", "prefixItems"} & lists.keys() else None
    if form is None or lists.get("maxItems") == 0:
        return None
    least = max(1, lists.get("minItems", 0))
    written = lists | {"items": _narrowed(items, root, form[1]), "minItems": least}
    if written.get("default") == []:  # which is what it is when it is left out
        del written["default"]
    return form[0], written


def _narrowed(schema: Schema, root: JsonSchema, kinds: frozenset[str]) -> Schema:
    if isinstance(schema, bool) or schema_kinds(schema, root) <= kinds:
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword not in ("default", "examples")}
    if "default" in schema and exact_kind(schema["default"]) in kinds:
        rest["default"] = schema["default"]
    if examples := [example for example in schema.get("examples", ()) if exact_kind(example) in kinds]:
        rest["examples"] = examples
    if "$ref" in rest:
        del rest["$ref"]
        rest = dereference({"$ref": schema["$ref"]}, root) | rest
    if "enum" in rest:
        return rest | {"enum": [value for value in rest["enum"] if exact_kind(value) in kinds]}
    if "anyOf" in rest:
        branches = [_narrowed(each, root, kinds) for each in rest.pop("anyOf") if schema_kinds(each, root) & kinds]
        if len(branches) > 1:
            return {"anyOf": branches, **rest}
        return branches[0] | rest if isinstance(branches[0], dict) else rest
    return rest | {"type": _types(rest, kinds)}


def _types(schema: JsonSchema, kinds: frozenset[str]) -> str | list[str]:
    stated = schema.get("type", sorted(kinds))
    kept = [kind for kind in ([stated] if isinstance(stated, str) else stated) if kind in kinds]
    return kept[0] if len(kept) == 1 else kept
