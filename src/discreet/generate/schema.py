"""JSON Schema 2020-12 documents, parsed: the keywords that a client is generated from. Others are ignored.

A keyword of the wrong type is refused here, so that nothing after this has to check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from ..daemon.schemas.json_schema import JsonSchema
from ..errors.decoders import convert


class SchemaError(Exception):
    """No client can be generated from these operations. The message is one line that names the operation and the reason."""


class Schema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One schema. A keyword that is left out has the default that the specification gives it, or UNSET."""

    ref: str | UnsetType = msgspec.field(default=UNSET, name="$ref")
    definitions: dict[str, SubSchema] = msgspec.field(default_factory=dict, name="$defs")
    title: str = ""
    description: str = ""
    default: Any = UNSET  # JSON, as are the next two
    const: Any = UNSET
    enum: list[Any] | UnsetType = UNSET
    any_of: list[SubSchema] = []
    one_of: list[SubSchema] = []
    type: str | list[str] | UnsetType = UNSET
    properties: dict[str, SubSchema] | UnsetType = UNSET
    required: list[str] = []
    additional_properties: SubSchema | UnsetType = UNSET
    property_names: SubSchema = True
    prefix_items: list[SubSchema] = []
    items: SubSchema = True
    format: str = ""
    pattern: str = ""
    content_encoding: str = ""
    minimum: float | int | UnsetType = UNSET
    exclusive_minimum: float | int | UnsetType = UNSET
    maximum: float | int | UnsetType = UNSET
    exclusive_maximum: float | int | UnsetType = UNSET
    multiple_of: float | int | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    min_properties: int | UnsetType = UNSET
    max_properties: int | UnsetType = UNSET

    def subschemas(self) -> Iterator[SubSchema]:
        """Yield the schemas directly inside this one, without its definitions."""
        yield from (*self.any_of, *self.one_of, *self.prefix_items, self.property_names, self.items)
        if self.properties is not UNSET:
            yield from self.properties.values()
        if self.additional_properties is not UNSET:
            yield self.additional_properties


SubSchema: TypeAlias = Schema | bool
"""A schema inside another one: `true` takes anything, `false` nothing."""


def parse_schema(document: JsonSchema) -> Schema:
    """Parse a document. Raises `SchemaError` with the place and the expected type of the first wrong keyword."""
    try:
        schema: Schema = convert(document, Schema)
        return schema
    except msgspec.ValidationError as exc:
        raise SchemaError(str(exc)) from exc


def local_definition(ref: str | UnsetType) -> str | None:
    """Return the name of the definition that a reference points to; None for any other reference."""
    prefix = "#/$defs/"
    return ref.removeprefix(prefix) if ref is not UNSET and ref.startswith(prefix) else None


def referenced_definitions(schema: Iterable[SubSchema]) -> Iterator[str]:
    """Yield the names of the definitions that these schemas refer to, directly or in schemas inside them."""
    waiting = list(schema)
    while waiting:
        found = waiting.pop()
        if isinstance(found, Schema):
            name = local_definition(found.ref)
            if name is not None:
                yield name
            waiting += found.subschemas()
