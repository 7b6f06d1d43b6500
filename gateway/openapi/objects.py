"""The objects of OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1) that a document here has. Holds data, derives nothing.

Encoded, a field with its default is left out. Schemas are JSON Schema 2020-12.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ...schemas.documents import OfferSchema
from ...schemas.json_schema import JsonSchema
from ...schemas.named_types import Schema

OPENAPI_VERSION: Final = "3.1.1"
"""The version of the specification that the document follows."""

SecurityRequirement: TypeAlias = dict[str, tuple[str, ...]]
"""Schemes that are required together, by name, each with the scopes that it must grant."""


class Info(Struct, frozen=True, omit_defaults=True):
    title: str
    version: str
    description: str = ""


class Server(Struct, frozen=True):
    url: str


class Tag(Struct, frozen=True, omit_defaults=True):
    name: str
    description: str = ""


class Example(Struct, frozen=True):
    value: Any  # JSON


class MediaType(Struct, frozen=True, omit_defaults=True):
    """`event` describes the `data` of each event of a stream, for which OpenAPI 3.1 has no word."""

    schema: Schema | UnsetType = UNSET
    example: Any = UNSET  # JSON
    examples: dict[str, Example] = {}
    event: Schema | UnsetType = field(name="x-event", default=UNSET)


class Parameter(Struct, frozen=True, omit_defaults=True):
    """Exactly one of `schema` and `content` is set."""

    name: str
    location: Literal["query", "header"] = field(name="in")
    description: str = ""
    required: bool = False
    schema: Schema | UnsetType = UNSET
    content: dict[str, MediaType] = {}


class Header(Struct, frozen=True, omit_defaults=True):
    schema: JsonSchema
    description: str = ""


class RequestBody(Struct, frozen=True, omit_defaults=True):
    content: dict[str, MediaType]
    required: bool = False


class Response(Struct, frozen=True, omit_defaults=True):
    """A response, or with `ref` a reference to one of those that operations share."""

    description: str = ""
    headers: dict[str, Header] = {}
    content: dict[str, MediaType] = {}
    ref: str = field(name="$ref", default="")


class Scopes(Struct, frozen=True, omit_defaults=True):
    """The scopes that a caller needs: all of `all` and, unless it is empty, one of `any`."""

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()


class Operation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`kind` is that of the operation, `scopes` those that a caller needs; left out where every caller is allowed."""

    operation_id: str = field(name="operationId")
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    request_body: RequestBody | UnsetType = field(name="requestBody", default=UNSET)
    responses: dict[str, Response]
    security: tuple[SecurityRequirement, ...] | UnsetType = UNSET
    kind: str = field(name="x-kind", default="")
    scopes: Scopes | UnsetType = field(name="x-scopes", default=UNSET)
    timeout: float | None | UnsetType = field(name="x-timeout", default=UNSET)
    offer: OfferSchema | UnsetType = field(name="x-offer", default=UNSET)


class PathItem(Struct, frozen=True, omit_defaults=True):
    get: Operation | UnsetType = UNSET
    post: Operation | UnsetType = UNSET


class Components(Struct, frozen=True, omit_defaults=True, rename="camel"):
    schemas: dict[str, Schema] = {}
    responses: dict[str, Response] = {}
    security_schemes: dict[str, Any] = {}  # Any: `security.SecurityScheme`, or what an agent's card declares


class Document(Struct, frozen=True, omit_defaults=True):
    openapi: str
    info: Info
    servers: tuple[Server, ...]
    paths: dict[str, PathItem] = msgspec.field()
    components: Components = Components()
    security: tuple[SecurityRequirement, ...] = ()
    tags: tuple[Tag, ...] = ()
