"""Operations as an OpenRPC 1.3 document (https://spec.open-rpc.org/1.3), the result of `rpc.discover`.

Derives everything from the operations' own schemas and adapts it to OpenRPC: named types in one place, JSON Schema draft
07, required params first. The built-in methods are not in it: every daemon has them, and they are documented. Never
sees a payload.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from ..daemon.operations.spec import OperationSpec
from ..errors.codes import SERVER_ERROR
from .documents import AccessSchema, ErrorSchema, OperationSchema, operation_schema
from .json_schema import JsonSchema
from .named_types import NamedTypes

OPENRPC_VERSION: Final = "1.3.2"
"""The version of the specification that the document follows."""

_COMPLETED: Final[JsonSchema] = {
    "type": "object",
    "properties": {"completed": {"const": True}, "events": {"type": "integer", "minimum": 0}},
    "required": ["completed", "events"],
}
"""The result of a subscription, sent after its last event (section 5 of docs/protocol.md)."""


class InfoObject(msgspec.Struct, frozen=True):
    title: str
    version: str


class TagObject(msgspec.Struct, frozen=True):
    name: str


class ContentDescriptor(msgspec.Struct, frozen=True, omit_defaults=True):
    """A param or a result."""

    name: str
    schema: JsonSchema | bool
    required: bool = False
    description: str = ""


class OpenRpcError(msgspec.Struct, frozen=True):
    """`data` is the schema of the error's member `data`, with the error's own code as a constant."""

    code: int
    message: str
    data: JsonSchema


class MethodObject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`event` describes each `stream/event` of a subscription, and `further` the params of undeclared names, where the
    operation takes some. `scopes` is left out where every caller is allowed.
    """

    name: str
    description: str = ""
    tags: tuple[TagObject, ...]
    params: tuple[ContentDescriptor, ...]
    structure: Literal["by-name"] = msgspec.field(name="paramStructure")
    result: ContentDescriptor
    errors: tuple[OpenRpcError, ...]
    kind: str = msgspec.field(name="x-kind")
    scopes: AccessSchema | UnsetType = msgspec.field(name="x-scopes", default=UNSET)
    event: JsonSchema | bool | UnsetType = msgspec.field(name="x-event", default=UNSET)
    further: JsonSchema | bool | UnsetType = msgspec.field(name="x-further-params", default=UNSET)


class ComponentsObject(msgspec.Struct, frozen=True):
    schemas: dict[str, JsonSchema | bool]


class OpenRpcDocument(msgspec.Struct, frozen=True):
    openrpc: str
    info: InfoObject
    methods: tuple[MethodObject, ...]
    components: ComponentsObject


def openrpc_document(specs: Iterable[OperationSpec], *, version: str) -> OpenRpcDocument:
    """The document of these operations, in this order. `version` is the daemon's. Every `$ref` resolves within it."""
    types = NamedTypes(_to_draft_07)
    methods = tuple(_method(operation_schema(spec), types) for spec in specs)
    return OpenRpcDocument(OPENRPC_VERSION, InfoObject("discreet", version), methods, ComponentsObject(types.schemas))


def _method(operation: OperationSchema, types: NamedTypes) -> MethodObject:
    streams = operation.kind == "subscription"
    output = types.include(operation.output_schema)
    further = operation.input_schema.get("additionalProperties", True)
    return MethodObject(
        name=operation.name,
        description=operation.description,
        tags=tuple(TagObject(name) for name in (operation.namespace, operation.kind) if name),
        params=_params(operation.input_schema, types),
        structure="by-name",
        result=ContentDescriptor("result", _COMPLETED if streams else output, required=True),
        errors=tuple(_error(error, types) for error in operation.error_schemas),
        kind=operation.kind,
        scopes=operation.access,
        event=output if streams else UNSET,
        further=UNSET if further is False else types.include(further, operation.input_schema),
    )


def _params(schema: JsonSchema, types: NamedTypes) -> tuple[ContentDescriptor, ...]:
    """Required params come before optional ones, as the specification demands."""
    required = schema.get("required", ())
    names = sorted(schema.get("properties", ()), key=lambda name: name not in required)
    return tuple(
        ContentDescriptor(
            name,
            types.include(schema["properties"][name], schema),
            required=name in required,
            description=schema["properties"][name].get("description", ""),
        )
        for name in names
    )


def _error(error: ErrorSchema, types: NamedTypes) -> OpenRpcError:
    data: JsonSchema = {
        "type": "object",
        "properties": {"code": {"const": error.code}, "retryable": {"const": error.retryable}},
        "required": ["code", "retryable"],
    }
    if error.schema is not None:
        data["properties"]["details"] = types.include(error.schema)
        data["required"].append("details")
    return OpenRpcError(SERVER_ERROR, error.message, data)


_TUPLES: Final = {"prefixItems": "items", "items": "additionalItems"}
"""Keywords for array items, from 2020-12 to draft 07. Both are renamed where a schema has `prefixItems`."""


def _to_draft_07(schema: JsonSchema) -> JsonSchema:
    renamed = _TUPLES if "prefixItems" in schema else {}
    written = {renamed.get(keyword, keyword): value for keyword, value in schema.items()}
    if "$ref" in written and len(written) > 1:  # draft 07 ignores the keywords beside a reference
        return {"allOf": [{"$ref": written.pop("$ref")}], **written}
    return written
