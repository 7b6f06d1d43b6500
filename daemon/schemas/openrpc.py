"""Operations as an OpenRPC 1.3 document (https://spec.open-rpc.org/1.3), the result of `rpc.discover`.

Derives everything from the operations' own schemas and adapts it to OpenRPC: named types in one place, JSON Schema draft
07, required params first. The built-in methods are not in it: every daemon has them, and they are documented. Never
sees a payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, final

import msgspec
from msgspec import UNSET, UnsetType

from ...errors.codes import SERVER_ERROR
from ..operations.spec import OperationSpec
from .documents import AccessSchema, ErrorSchema, OperationSchema, operation_schema
from .json_schema import JsonSchema

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
    types = _NamedTypes()
    methods = tuple(_method(operation_schema(spec), types) for spec in specs)
    return OpenRpcDocument(OPENRPC_VERSION, InfoObject("discreet", version), methods, ComponentsObject(types.schemas))


def _method(operation: OperationSchema, types: _NamedTypes) -> MethodObject:
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


def _params(schema: JsonSchema, types: _NamedTypes) -> tuple[ContentDescriptor, ...]:
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


def _error(error: ErrorSchema, types: _NamedTypes) -> OpenRpcError:
    data: JsonSchema = {
        "type": "object",
        "properties": {"code": {"const": error.code}, "retryable": {"const": error.retryable}},
        "required": ["code", "retryable"],
    }
    if error.schema is not None:
        data["properties"]["details"] = types.include(error.schema)
        data["required"].append("details")
    return OpenRpcError(SERVER_ERROR, error.message, data)


_LOCAL: Final = "#/$defs/"
_SHARED: Final = "#/components/schemas/"
_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
"""Keywords that hold schemas: by name, in a list, or a single one. All others hold values, which are copied."""
_ROOT_ONLY: Final = frozenset({"$schema", "$defs"})
_TUPLES: Final = {"prefixItems": "items", "items": "additionalItems"}
"""Keywords for array items, from 2020-12 to draft 07. Both are renamed where a schema has `prefixItems`."""


@final
class _NamedTypes:
    """The named types of the whole document. Equal types are shared; different ones of the same name get a number."""

    def __init__(self) -> None:
        self.schemas: dict[str, JsonSchema | bool] = {}
        self._names: dict[tuple[str, bytes], str] = {}

    def include(self, schema: JsonSchema | bool, root: JsonSchema | None = None) -> JsonSchema | bool:
        """Adapts a schema to this document and adds the types that it refers to. `root` is the document that it is from."""
        if isinstance(schema, bool):
            return schema
        definitions = (schema if root is None else root).get("$defs", {})
        names = {name: self._define(name, definitions) for name in _reachable(schema, definitions)}
        return _to_draft_07(schema, names)

    def _define(self, own: str, definitions: Mapping[str, JsonSchema]) -> str:
        """The name of a type here. Two types are equal if they and all types that they refer to are the same."""
        reached = sorted(_reachable(definitions[own], definitions) | {own})
        key = own, msgspec.json.encode([(name, definitions[name]) for name in reached])
        if key not in self._names:
            count = sum(own == name for name, _ in self._names)
            self._names[key] = name = f"{own}_{count + 1}" if count else own
            self.schemas[name] = True  # reserves the name before a type that may refer to it is written
            self.schemas[name] = self.include(definitions[own], {"$defs": definitions})
        return self._names[key]


def _reachable(schema: JsonSchema | bool, definitions: Mapping[str, JsonSchema]) -> set[str]:
    """The names of all types that a schema refers to, directly or indirectly."""
    found: set[str] = set()
    pending = [schema]
    while pending:
        for name in _references(pending.pop()):
            if name in definitions and name not in found:
                found.add(name)
                pending.append(definitions[name])
    return found


def _references(schema: JsonSchema | bool) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_LOCAL):
        yield reference.removeprefix(_LOCAL)
    for keyword, value in schema.items():
        for inner in _schemas_in(keyword, value):
            yield from _references(inner)


def _schemas_in(keyword: str, value: Any) -> Iterable[JsonSchema | bool]:  # Any: what a keyword holds
    if keyword in _BY_NAME:
        return tuple(value.values())
    if keyword in _LISTS:
        return tuple(value)
    return (value,) if keyword in _SINGLE else ()


def _to_draft_07(schema: JsonSchema | bool, names: Mapping[str, str]) -> JsonSchema | bool:
    """The schema in draft 07, with references to the types by their `names` here."""
    if isinstance(schema, bool):
        return schema
    renamed = _TUPLES if "prefixItems" in schema else {}
    written: JsonSchema = {}
    for keyword, value in schema.items():
        if keyword in _BY_NAME:
            value = {name: _to_draft_07(inner, names) for name, inner in value.items()}
        elif keyword in _LISTS:
            value = [_to_draft_07(inner, names) for inner in value]
        elif keyword in _SINGLE:
            value = _to_draft_07(value, names)
        elif keyword == "$ref":
            own = value.removeprefix(_LOCAL)
            value = _SHARED + names[own] if own in names else value
        if keyword not in _ROOT_ONLY:
            written[renamed.get(keyword, keyword)] = value
    if "$ref" in written and len(written) > 1:  # draft 07 ignores the keywords beside a reference
        return {"allOf": [{"$ref": written.pop("$ref")}], **written}
    return written
