"""How tools are listed: their schemas are one document each, with definitions in place, as hosts hand them to models."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, repeat
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Raw
from msgspec import inspect as types

from ...daemon.declarations import CONTENT, DECLARED_ERRORS, OF_SERVERS, ToolErrorFacts, asks_of, foreign_tool
from ...daemon.operations.spec import OperationSpec
from ...daemon.operations.type_shapes import json_kinds, without_metadata
from ...errors.decoders import DECODE_ERRORS, ExternalSchema, convert, type_info
from ...errors.redaction import scrub_known
from ...schemas.documents import input_schema
from ...schemas.json_schema import JsonSchema, json_schema
from ...schemas.phrases import schema_kinds
from .generated import structs
from .options import ToolOptions, options_of

Shape: TypeAlias = Literal["object", "wrapped", "any", "nothing", "content", "contents", "result", "events", "whole"]
"""How the result of an operation becomes that of a tool: as an object, as the member `result` of one, as whatever it is, not
at all; as content that the handler made, one or several or with all around it; as a list of events; as another server gave it."""

LARGEST_OUTPUT: Final = 64 * 1024
"""Bytes of an imported result's schema that are listed: each tool has all types that it refers to, and a model reads it."""

MAX_INLINED: Final = 2_000
"""Nodes of a schema with its definitions in place. A larger one keeps its `$defs`."""

_PLAIN_WORDS: Final = frozenset({"type", "title", "description", "properties", "required"})
"""Words of a schema that leaves members of other names alone."""
_ERROR: Final[JsonSchema] = {
    "properties": {"code": {"type": "string"}, "retryable": {"type": "boolean"}, "details": {}},
    "required": ["code"],
}
"""The structure of an error."""

_CONTENT: Final = get_args(structs.ContentBlock)
_REFERENCE: Final = "#/$defs/"


def described(spec: OperationSpec, name: str, shape: Shape) -> structs.Tool:
    """An operation as hosts see it."""
    options = options_of(spec, ToolOptions)
    return structs.Tool(
        name=name,
        title=options.title,
        icons=options.icons,
        meta={**_declared_errors(spec), **(options.meta or {})} or None,
        description=scrub_known(spec.description) or None,
        input_schema=tool_input(spec),
        output_schema=tool_output(spec, shape),
        annotations=_annotations(spec, options.annotations),
    )


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
    derived = _derived_annotations(spec)
    if given is None:
        return derived
    said = {name: value for name, value in msgspec.structs.asdict(given).items() if value is not None}
    return msgspec.structs.replace(derived, **said)


def _derived_annotations(spec: OperationSpec) -> structs.ToolAnnotations:
    foreign = foreign_tool(spec.options)
    if foreign is not None:
        hints: structs.ToolAnnotations = convert(foreign.annotations, structs.ToolAnnotations)
        return hints
    if spec.idempotent and spec.kind == "mutation":
        return structs.ToolAnnotations(read_only_hint=False, idempotent_hint=True)
    return structs.ToolAnnotations(read_only_hint=spec.kind != "mutation")


def tool_input(spec: OperationSpec) -> JsonSchema:
    """The schema of a tool's arguments."""
    schema = _without_asked(input_schema(spec.input), asked_params(spec))
    return {"type": "object"} | inlined(schema)


def _without_asked(schema: JsonSchema, asked: frozenset[str]) -> JsonSchema:
    if not asked:
        return schema
    schema = {**schema, "properties": {n: s for n, s in schema.get("properties", {}).items() if n not in asked}}
    schema["required"] = [name for name in schema.get("required", ()) if name not in asked]
    return schema if schema["required"] else {name: part for name, part in schema.items() if name != "required"}


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
    """What becomes of the operation's result."""
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
    uses = {name: _references(part) for name, part in definitions.items()}
    recursive = {name for name in uses if name in _reachable(name, uses)}
    try:
        body = _in_place(body, definitions, recursive, count() if definitions else repeat(0))
    except _TooLarge:
        return body | {"$defs": definitions}
    kept = {name: _in_place(definitions[name], definitions, recursive, repeat(0)) for name in sorted(recursive)}
    return {**body, **({"$defs": kept} if kept else {})}


class _TooLarge(Exception):
    """A schema has more nodes than `MAX_INLINED`."""


def _references(part: Any) -> set[str]:  # Any: JSON, here and below
    match part:
        case dict():
            own = {part["$ref"].removeprefix(_REFERENCE)} if isinstance(part.get("$ref"), str) else set[str]()
            return own.union(*map(_references, part.values()))
        case list():
            return set[str]().union(*map(_references, part))
        case _:
            return set()


def _reachable(name: str, uses: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [name]
    while ahead:
        for used in uses.get(ahead.pop(), ()):
            if used not in found:
                found.add(used)
                ahead.append(used)
    return found


def _is_discriminator(key: str, item: Any) -> bool:
    """Whether this keyword names definitions, which will be in place."""
    return key == "discriminator" and isinstance(item, dict) and isinstance(item.get("propertyName"), str)


def _in_place(part: Any, definitions: dict[str, JsonSchema], recursive: set[str], nodes: Iterator[int]) -> Any:
    """A part with definitions for references. Raises `_TooLarge` where `nodes`, which counts its own, comes too far."""
    if next(nodes) > MAX_INLINED:
        raise _TooLarge
    match part:
        case dict():
            name = part["$ref"].removeprefix(_REFERENCE) if isinstance(part.get("$ref"), str) else None
            beside = {
                key: _in_place(item, definitions, recursive, nodes)
                for key, item in part.items()
                if (name is None or key != "$ref") and not _is_discriminator(key, item)
            }
            if name is None:
                return beside
            if name in recursive or name not in definitions:
                return {"$ref": part["$ref"]} | beside
            return {**_in_place(definitions[name], definitions, recursive, nodes), **beside}
        case list():
            return [_in_place(item, definitions, recursive, nodes) for item in part]
        case _:
            return part


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
    if reference.startswith(_REFERENCE):
        return without_strings(value, root.get("$defs", {}).get(reference.removeprefix(_REFERENCE)), root)
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
