"""Builds the schemas of tools: one document each, with definitions in place, as hosts hand them to models."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count, repeat
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ...daemon.declarations import CONTENT, DECLARED_ERRORS, OF_SERVERS, ToolErrorFacts, asks_of, foreign_tool
from ...daemon.operations.json_types import without_metadata
from ...daemon.operations.spec import OperationSpec
from ...daemon.operations.type_phrases import json_kinds
from ...errors.decoders import DECODE_ERRORS, ExternalSchema, convert, type_info
from ...errors.redaction import scrub_known
from ...schemas.cycles import circles
from ...schemas.documents import input_schema
from ...schemas.json_schema import JsonSchema, json_schema
from ...schemas.named_types import LOCAL, references_of, with_inner
from ...schemas.phrases import schema_kinds
from .generated import structs
from .options import ToolOptions, meta_of_ui, options_of, ui_of_tool

Shape: TypeAlias = Literal["object", "wrapped", "any", "nothing", "content", "contents", "result", "events", "whole"]
"""How the result of an operation becomes that of a tool: as an object, as the member `result` of one, as whatever it is, not
at all; as content that the handler made, one or several or with all around it; as a list of events; as another server gave it."""

LARGEST_OUTPUT: Final = 64 * 1024
"""Bytes of an imported result's schema that are listed: each tool has all types that it refers to, and a model reads it."""

MAX_TOLD_ERRORS: Final = 16
"""Errors that the description of a tool tells of."""

MAX_INLINED: Final = 1_000
"""Schemas in one with its definitions in place. A larger one keeps its `$defs`."""

_PLAIN_WORDS: Final = frozenset({"type", "title", "description", "properties", "required"})
"""Words of a schema that leaves members of other names alone."""
_ERROR: Final[JsonSchema] = {
    "properties": {"code": {"type": "string"}, "retryable": {"type": "boolean"}, "details": {}},
    "required": ["code"],
}
"""The structure of an error."""

_CONTENT: Final = get_args(structs.ContentBlock)


def described(spec: OperationSpec, name: str, shape: Shape) -> structs.Tool:
    """An operation as hosts see it."""
    options = options_of(spec, ToolOptions)
    return structs.Tool(
        name=name,
        title=options.title,
        icons=options.icons,
        meta={**_declared_errors(spec), **(options.meta or {}), **meta_of_ui(ui_of_tool(spec))} or None,
        description=scrub_known("\n\n".join(filter(None, (spec.description, _told_errors(spec))))) or None,
        input_schema=tool_input(spec),
        output_schema=tool_output(spec, shape),
        annotations=_annotations(spec, options.annotations),
    )


def _told_errors(spec: OperationSpec) -> str:
    """Write the errors of a tool for the model, which does not see `_meta`. A tool of another server has its own words."""
    if foreign_tool(spec.options) is not None:
        return ""
    told = [
        f"{definition.code} ({definition.message.rstrip('.')})"
        if definition.message != definition.code
        else definition.code
        for definition in (each.definition for each in spec.errors[:MAX_TOLD_ERRORS])
        if definition.code not in OF_SERVERS
    ]
    return f"Fails with: {', '.join(told)}." if told else ""


def _declared_errors(spec: OperationSpec) -> dict[str, Any]:  # Any: JSON
    """The errors that an operation declares. What an import's own server says of a failed tool is none of them."""
    facts = [
        ToolErrorFacts(
            each.definition.code,
            each.definition.message,
            each.definition.retryable,
            each.definition.http_status,
            None
            if isinstance(each.definition.details, ExternalSchema)
            else inlined(json_schema(each.definition.details)),
        )
        for each in spec.errors
        if each.definition.code not in OF_SERVERS
    ]
    return {DECLARED_ERRORS: msgspec.to_builtins(facts)} if facts else {}


def _annotations(spec: OperationSpec, given: structs.ToolAnnotations | None) -> structs.ToolAnnotations:
    foreign = foreign_tool(spec.options)
    if foreign is not None:
        derived: structs.ToolAnnotations = convert(foreign.annotations, structs.ToolAnnotations)
    elif spec.idempotent and spec.kind == "mutation":
        derived = structs.ToolAnnotations(read_only_hint=False, idempotent_hint=True)
    else:
        derived = structs.ToolAnnotations(read_only_hint=spec.kind != "mutation")
    said = {} if given is None else msgspec.structs.asdict(given)
    return msgspec.structs.replace(derived, **{name: value for name, value in said.items() if value is not None})


def tool_input(spec: OperationSpec) -> JsonSchema:
    """The schema of a tool's arguments, without those that the user is asked for."""
    schema, asked = input_schema(spec.input), asked_params(spec)
    if asked:
        schema = {**schema, "properties": {n: s for n, s in schema.get("properties", {}).items() if n not in asked}}
        if not (required := [name for name in schema.pop("required", ()) if name not in asked]):
            return {"type": "object"} | inlined(schema)
        schema["required"] = required
    return {"type": "object"} | inlined(schema)


def asked_params(spec: OperationSpec) -> frozenset[str]:
    """The params that the user is asked for."""
    return frozenset(asks_of(spec.input.type))


def json_params(spec: OperationSpec) -> frozenset[str]:
    """The params that can't be strings: hosts may send them as JSON in a string."""
    if isinstance(spec.input.type, ExternalSchema):
        schema = spec.input.type.load()
        members = schema.get("properties", {}).items()
        return frozenset(name for name, part in members if "string" not in schema_kinds(part, schema))
    node = without_metadata(type_info(spec.input.type))
    if not isinstance(node, types.StructType):
        return frozenset()
    return frozenset(field.encode_name for field in node.fields if "string" not in json_kinds(field.type))


def shape_of(spec: OperationSpec) -> Shape:
    """Return the form of the operation's result."""
    if spec.kind == "subscription":
        return "events"
    foreign = foreign_tool(spec.options)
    if foreign is not None and foreign.whole:
        return "whole"
    returns = spec.returns
    if returns in (Any, object, Raw):
        return "any"
    if returns in (None, type(None)):
        return "nothing"
    if returns is structs.CallToolResult:
        return "result"
    if _is_content(returns):
        return "content"
    if get_origin(returns) is list and _is_content(*get_args(returns)):
        return "contents"
    if isinstance(returns, ExternalSchema):
        schema = returns.load()
        return "object" if schema_kinds(schema, schema) == {"object"} else "wrapped"
    return "object" if json_kinds(type_info(returns)) == {"object"} else "wrapped"


def _is_content(annotation: Any) -> bool:
    members = get_args(annotation) or (annotation,)
    return all(member in _CONTENT for member in members)


def tool_output(spec: OperationSpec, shape: Shape) -> JsonSchema | None:
    """The schema of `structuredContent`; None where a tool promises none, and for a large one of an imported operation."""
    if shape not in ("object", "wrapped", "events"):
        return None
    schema = inlined(_without_content(json_schema(spec.returns)))
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    if shape == "wrapped":
        schema = {"properties": {"result": schema}, "required": ["result"]}
    elif shape == "events":
        omitted = {"type": "integer", "minimum": 1}
        schema = {
            "properties": {"result": {"type": "array", "items": schema}, "omitted": omitted},
            "required": ["result"],
        }
    written = {"type": "object"} | _or_error(schema) | definitions
    is_given = isinstance(spec.returns, ExternalSchema)
    return None if is_given and len(msgspec.json.encode(written)) > LARGEST_OUTPUT else written


def _without_content(schema: JsonSchema) -> JsonSchema:
    """A schema without the member that has content of another server's tool: here that is content of the tool."""
    properties = schema.get("properties", {})
    if CONTENT not in properties.get("_meta", {}).get("properties", {}):
        return schema
    return {**schema, "properties": {name: part for name, part in properties.items() if name != "_meta"}}


def _or_error(schema: JsonSchema) -> JsonSchema:
    """A schema of objects that the structure of an error fits too: hosts check it as they check a result."""
    members = schema.get("properties", {}).keys()
    if schema.keys() <= _PLAIN_WORDS and members.isdisjoint(_ERROR["properties"]):
        required = [{"required": schema["required"]}] if "required" in schema else []
        rest = {word: part for word, part in schema.items() if word != "required"}
        return {**rest, "anyOf": [*required, {"required": ["code"]}]} if required else rest
    return {"anyOf": [schema, _ERROR]}


def inlined(schema: JsonSchema) -> JsonSchema:
    """A schema without `$schema`, and with its definitions in place where they don't refer to themselves."""
    definitions: dict[str, JsonSchema] = schema.get("$defs", {})
    body = {name: part for name, part in schema.items() if name not in ("$schema", "$defs")}
    uses = {name: [each.removeprefix(LOCAL) for each in references_of(part)] for name, part in definitions.items()}
    recursive = circles(uses).keys()
    try:
        body = _in_place(body, definitions, recursive, count() if definitions else repeat(0))
    except _TooLarge:
        return body | {"$defs": definitions}
    kept = {name: _in_place(definitions[name], definitions, recursive, repeat(0)) for name in sorted(recursive)}
    return {**body, **({"$defs": kept} if kept else {})}


class _TooLarge(Exception):
    """A schema has more than `MAX_INLINED` schemas in it."""


def _in_place(part: Any, definitions: dict[str, JsonSchema], recursive: Collection[str], schemas: Iterator[int]) -> Any:
    """A part with definitions for references, and without the discriminators that name them. Raises `_TooLarge` where `schemas`,
    which counts those in it, comes too far."""
    if next(schemas) > MAX_INLINED:
        raise _TooLarge
    if not isinstance(part, dict):
        return part
    kept = {
        word: value
        for word, value in part.items()
        if not (word == "discriminator" and isinstance(value, dict) and isinstance(value.get("propertyName"), str))
    }
    kept = with_inner(kept, lambda inner: _in_place(inner, definitions, recursive, schemas))
    name = str(kept.get("$ref", "")).removeprefix(LOCAL)
    if name in recursive or name not in definitions:
        return kept
    del kept["$ref"]
    return {**_in_place(definitions[name], definitions, recursive, schemas), **kept}


def without_strings(value: Any, part: Any, root: JsonSchema) -> Any:  # Any: JSON
    """A value, with what the JSON text of a string says in the place of each string where its schema takes none."""
    if not isinstance(part, dict):
        return value
    if isinstance(value, str) and (kinds := schema_kinds(part, root)) and "string" not in kinds:
        try:
            return without_strings(msgspec.json.decode(value), part, root)
        except DECODE_ERRORS:
            return value
    if not isinstance(value, dict | list):
        return value
    reference = part.get("$ref", "")
    if reference.startswith(LOCAL):
        return without_strings(value, root.get("$defs", {}).get(reference.removeprefix(LOCAL)), root)
    kind = "object" if isinstance(value, dict) else "array"
    branches = [each for each in (*part.get("anyOf", ()), *part.get("oneOf", ())) if kind in schema_kinds(each, root)]
    if len(branches) == 1:
        return without_strings(value, branches[0], root)
    if isinstance(value, dict):
        properties, others = part.get("properties", {}), part.get("additionalProperties")
        return {name: without_strings(item, properties.get(name, others), root) for name, item in value.items()}
    first, others = part.get("prefixItems", ()), part.get("items")
    return [
        without_strings(item, first[index] if index < len(first) else others, root) for index, item in enumerate(value)
    ]
