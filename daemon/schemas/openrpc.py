"""Operations as an OpenRPC 1.3 document (https://spec.open-rpc.org/1.3), as `rpc.discover` gives it.

Derives everything from the operations' own schemas, and adds what OpenRPC asks for: one place for named types, schemas
of JSON Schema draft 07, required params first. The built-in methods are not in it: every daemon has them, and they are
documented. Decides nothing and never sees a payload.
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

OPENRPC: Final = "1.3.2"
"""The version of the specification that the document follows."""

_COMPLETED: Final[JsonSchema] = {
    "type": "object",
    "properties": {"completed": {"const": True}, "events": {"type": "integer", "minimum": 0}},
    "required": ["completed", "events"],
}
"""What a subscription answers behind its last event (section 5 of docs/protocol.md)."""


class Info(msgspec.Struct, frozen=True):
    title: str
    version: str


class Tag(msgspec.Struct, frozen=True):
    name: str


class ContentDescriptor(msgspec.Struct, frozen=True, omit_defaults=True):
    """A param or a result."""

    name: str
    schema: JsonSchema | bool
    required: bool = False
    description: str = ""


class DeclaredError(msgspec.Struct, frozen=True):
    """An Error Object. `data` is the schema of the member `data`, with the error's own code as a constant."""

    code: int
    message: str
    data: JsonSchema


class Method(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Method Object. `event` describes what each `stream/event` of a subscription carries, `further` the params of any
    other name, where the operation takes some. `scopes` is left out where everyone may call.
    """

    name: str
    description: str = ""
    tags: tuple[Tag, ...]
    params: tuple[ContentDescriptor, ...]
    structure: Literal["by-name"] = msgspec.field(name="paramStructure")
    result: ContentDescriptor
    errors: tuple[DeclaredError, ...]
    kind: str = msgspec.field(name="x-kind")
    scopes: AccessSchema | UnsetType = msgspec.field(name="x-scopes", default=UNSET)
    event: JsonSchema | bool | UnsetType = msgspec.field(name="x-event", default=UNSET)
    further: JsonSchema | bool | UnsetType = msgspec.field(name="x-further-params", default=UNSET)


class Components(msgspec.Struct, frozen=True):
    schemas: dict[str, JsonSchema | bool]


class Document(msgspec.Struct, frozen=True):
    openrpc: str
    info: Info
    methods: tuple[Method, ...]
    components: Components


def document(specs: Iterable[OperationSpec], *, version: str) -> Document:
    """The document of these operations, in their order; `version` is the daemon's. Every `$ref` resolves within it."""
    types = _Types()
    methods = tuple(_method(operation_schema(spec), types) for spec in specs)
    return Document(OPENRPC, Info("discreet", version), methods, Components(types.schemas))


def _method(operation: OperationSchema, types: _Types) -> Method:
    streams = operation.kind == "subscription"
    output = types.include(operation.output_schema)
    further = operation.input_schema.get("additionalProperties", True)
    return Method(
        name=operation.name,
        description=operation.description,
        tags=tuple(Tag(name) for name in (operation.namespace, operation.kind) if name),
        params=_params(operation.input_schema, types),
        structure="by-name",
        result=ContentDescriptor("result", _COMPLETED if streams else output, required=True),
        errors=tuple(_error(error, types) for error in operation.error_schemas),
        kind=operation.kind,
        scopes=operation.access,
        event=output if streams else UNSET,
        further=UNSET if further is False else types.include(further, operation.input_schema),
    )


def _params(schema: JsonSchema, types: _Types) -> tuple[ContentDescriptor, ...]:
    """All optional ones come behind all required ones, as the specification asks for."""
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


def _error(error: ErrorSchema, types: _Types) -> DeclaredError:
    data: JsonSchema = {
        "type": "object",
        "properties": {"code": {"const": error.code}, "retryable": {"const": error.retryable}},
        "required": ["code", "retryable"],
    }
    if error.schema is not None:
        data["properties"]["details"] = types.include(error.schema)
        data["required"].append("details")
    return DeclaredError(SERVER_ERROR, error.message, data)


_LOCAL: Final = "#/$defs/"
_SHARED: Final = "#/components/schemas/"
_BY_NAME: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE: Final = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})
"""Keywords that hold schemas: by name, in a list, or one. Under any other stand values, which stay as they are."""
_ROOT_ONLY: Final = frozenset({"$schema", "$defs"})
_TUPLES: Final = {"prefixItems": "items", "items": "additionalItems"}
"""How draft 07 says what 2020-12 says of the places of an array; both are renamed where there is the first."""


@final
class _Types:
    """The named types of the whole document. Equal ones are there once; others of the same name get a number."""

    def __init__(self) -> None:
        self.schemas: dict[str, JsonSchema | bool] = {}
        self._names: dict[tuple[str, bytes], str] = {}

    def include(self, schema: JsonSchema | bool, root: JsonSchema | None = None) -> JsonSchema | bool:
        """A schema for this document, the types that it refers to included; `root` is the document that it is from."""
        if isinstance(schema, bool):
            return schema
        definitions = (schema if root is None else root).get("$defs", {})
        names = {name: self._define(name, definitions) for name in _reached(schema, definitions)}
        return _rewritten(schema, names)

    def _define(self, own: str, definitions: Mapping[str, JsonSchema]) -> str:
        """The name of a type here. Two types are one when they and all that they refer to are the same."""
        reached = sorted(_reached(definitions[own], definitions) | {own})
        key = own, msgspec.json.encode([(name, definitions[name]) for name in reached])
        if key not in self._names:
            count = sum(own == name for name, _ in self._names)
            self._names[key] = name = f"{own}_{count + 1}" if count else own
            self.schemas[name] = True  # the name is taken before what may refer to it is written
            self.schemas[name] = self.include(definitions[own], {"$defs": definitions})
        return self._names[key]


def _reached(schema: JsonSchema | bool, definitions: Mapping[str, JsonSchema]) -> set[str]:
    """The names of all types that a schema refers to, itself or through others."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        for name in _referred(waiting.pop()):
            if name in definitions and name not in found:
                found.add(name)
                waiting.append(definitions[name])
    return found


def _referred(schema: JsonSchema | bool) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(_LOCAL):
        yield reference.removeprefix(_LOCAL)
    for keyword, value in schema.items():
        for inner in _schemas_in(keyword, value):
            yield from _referred(inner)


def _schemas_in(keyword: str, value: Any) -> Iterable[JsonSchema | bool]:  # Any: what a keyword holds
    if keyword in _BY_NAME:
        return tuple(value.values())
    if keyword in _LISTS:
        return tuple(value)
    return (value,) if keyword in _SINGLE else ()


def _rewritten(schema: JsonSchema | bool, names: Mapping[str, str]) -> JsonSchema | bool:
    """The same in draft 07, with references to the types under their `names` here."""
    if isinstance(schema, bool):
        return schema
    placed = _TUPLES if "prefixItems" in schema else {}
    written: JsonSchema = {}
    for keyword, value in schema.items():
        if keyword in _BY_NAME:
            value = {name: _rewritten(inner, names) for name, inner in value.items()}
        elif keyword in _LISTS:
            value = [_rewritten(inner, names) for inner in value]
        elif keyword in _SINGLE:
            value = _rewritten(value, names)
        elif keyword == "$ref":
            own = value.removeprefix(_LOCAL)
            value = _SHARED + names[own] if own in names else value
        if keyword not in _ROOT_ONLY:
            written[placed.get(keyword, keyword)] = value
    if "$ref" in written and len(written) > 1:  # draft 07 ignores what stands beside a reference
        return {"allOf": [{"$ref": written.pop("$ref")}], **written}
    return written
