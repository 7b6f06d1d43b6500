# Written by tools/protocols from the schema of MCP 2026-07-28. Do not edit.
"""What both eras have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, StructUnion

__all__ = [
    "Annotations", "AudioContent", "BlobResourceContents", "BooleanSchema", "ClientCapabilitiesElicitation",
    "ClientCapabilitiesSampling", "CompleteRequestParamsArgument", "CompleteRequestParamsContext",
    "CompleteResultCompletion", "ContentBlock", "ElicitRequestFormParamsRequestedSchema", "EmbeddedResource",
    "Icon", "ImageContent", "Implementation", "LegacyTitledEnumSchema", "LoggingLevel", "ModelHint",
    "ModelPreferences", "NumberSchema", "PrimitiveSchemaDefinition", "ProgressToken", "Prompt", "PromptArgument",
    "PromptMessage", "PromptReference", "RequestId", "Resource", "ResourceLink", "ResourceTemplate",
    "ResourceTemplateReference", "Role", "Root", "ServerCapabilitiesPrompts", "ServerCapabilitiesResources",
    "ServerCapabilitiesTools", "StringSchema", "TextContent", "TextResourceContents", "TitledMultiSelectEnumSchema",
    "TitledMultiSelectEnumSchemaItems", "TitledMultiSelectEnumSchemaItemsAnyOfItem", "TitledSingleSelectEnumSchema",
    "TitledSingleSelectEnumSchemaOneOfItem", "ToolAnnotations", "ToolChoice", "ToolUseContent",
    "UntitledMultiSelectEnumSchema", "UntitledMultiSelectEnumSchemaItems", "UntitledSingleSelectEnumSchema",
]  # fmt: skip


class Annotations(FrozenWireStruct, frozen=True, kw_only=True):
    audience: list[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None


class AudioContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    type: ClassVar[Literal["audio"]] = "audio"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    data: str
    mime_type: str


class BlobResourceContents(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    blob: str
    mime_type: str | None = None
    uri: str


class BooleanSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="boolean"):
    type: ClassVar[Literal["boolean"]] = "boolean"
    default: bool | None = None
    description: str | None = None
    title: str | None = None


class ClientCapabilitiesElicitation(FrozenWireStruct, frozen=True, kw_only=True):
    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class ClientCapabilitiesSampling(FrozenWireStruct, frozen=True, kw_only=True):
    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class CompleteRequestParamsArgument(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    value: str


class CompleteRequestParamsContext(FrozenWireStruct, frozen=True, kw_only=True):
    arguments: dict[str, str] | None = None


class CompleteResultCompletion(FrozenWireStruct, frozen=True, kw_only=True):
    has_more: bool | None = None
    total: int | None = None
    values: list[str]


class EmbeddedResource(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    type: ClassVar[Literal["resource"]] = "resource"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    resource: EmbeddedResourceResource

    def __post_init__(self) -> None:
        force_setattr(self, "resource", EMBEDDED_RESOURCE_RESOURCE_UNION.read(self.resource))


class ImageContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="image"):
    type: ClassVar[Literal["image"]] = "image"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    data: str
    mime_type: str


class ResourceLink(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    type: ClassVar[Literal["resource_link"]] = "resource_link"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    mime_type: str | None = None
    name: str
    size: int | None = None
    title: str | None = None
    uri: str


class TextContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    type: ClassVar[Literal["text"]] = "text"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    text: str


class ElicitRequestFormParamsRequestedSchema(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="object"
):
    type: ClassVar[Literal["object"]] = "object"
    schema: str | None = field(default=None, name="$schema")
    properties: dict[str, PrimitiveSchemaDefinition]
    required: list[str] | None = None

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "properties",
            {key: PRIMITIVE_SCHEMA_DEFINITION_UNION.read(item) for key, item in self.properties.items()},
        )


class TextResourceContents(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    mime_type: str | None = None
    text: str
    uri: str


class Icon(FrozenWireStruct, frozen=True, kw_only=True):
    mime_type: str | None = None
    sizes: list[str] | None = None
    src: str
    theme: Literal["dark", "light"] | None = None


class Implementation(FrozenWireStruct, frozen=True, kw_only=True):
    description: str | None = None
    icons: list[Icon] | None = None
    name: str
    title: str | None = None
    version: str
    website_url: str | None = None


class LegacyTitledEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    enum: list[str]
    enum_names: list[str] | None = None
    title: str | None = None


class ModelHint(FrozenWireStruct, frozen=True, kw_only=True):
    name: str | None = None


class ModelPreferences(FrozenWireStruct, frozen=True, kw_only=True):
    cost_priority: float | None = None
    hints: list[ModelHint] | None = None
    intelligence_priority: float | None = None
    speed_priority: float | None = None


class NumberSchema(FrozenWireStruct, frozen=True, kw_only=True):
    default: float | None = None
    description: str | None = None
    maximum: float | None = None
    minimum: float | None = None
    title: str | None = None
    type: Literal["integer", "number"]


class StringSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    format: Literal["date", "date-time", "email", "uri"] | None = None
    max_length: int | None = None
    min_length: int | None = None
    title: str | None = None


class TitledMultiSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="array"):
    type: ClassVar[Literal["array"]] = "array"
    default: list[str] | None = None
    description: str | None = None
    items: TitledMultiSelectEnumSchemaItems
    max_items: int | None = None
    min_items: int | None = None
    title: str | None = None


class TitledSingleSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    one_of: list[TitledSingleSelectEnumSchemaOneOfItem]
    title: str | None = None


class UntitledMultiSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="array"):
    type: ClassVar[Literal["array"]] = "array"
    default: list[str] | None = None
    description: str | None = None
    items: UntitledMultiSelectEnumSchemaItems
    max_items: int | None = None
    min_items: int | None = None
    title: str | None = None


class UntitledSingleSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    enum: list[str]
    title: str | None = None


class Prompt(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    arguments: list[PromptArgument] | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    name: str
    title: str | None = None


class PromptArgument(FrozenWireStruct, frozen=True, kw_only=True):
    description: str | None = None
    name: str
    required: bool | None = None
    title: str | None = None


class PromptMessage(FrozenWireStruct, frozen=True, kw_only=True):
    content: ContentBlock
    role: Role


class PromptReference(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="ref/prompt"):
    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"
    name: str
    title: str | None = None


class Resource(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    mime_type: str | None = None
    name: str
    size: int | None = None
    title: str | None = None
    uri: str


class ResourceTemplate(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: Annotations | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    mime_type: str | None = None
    name: str
    title: str | None = None
    uri_template: str


class ResourceTemplateReference(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="ref/resource"):
    type: ClassVar[Literal["ref/resource"]] = "ref/resource"
    uri: str


class Root(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    name: str | None = None
    uri: str


class ServerCapabilitiesPrompts(FrozenWireStruct, frozen=True, kw_only=True):
    list_changed: bool | None = None


class ServerCapabilitiesResources(FrozenWireStruct, frozen=True, kw_only=True):
    list_changed: bool | None = None
    subscribe: bool | None = None


class ServerCapabilitiesTools(FrozenWireStruct, frozen=True, kw_only=True):
    list_changed: bool | None = None


class TitledMultiSelectEnumSchemaItems(FrozenWireStruct, frozen=True, kw_only=True):
    any_of: list[TitledMultiSelectEnumSchemaItemsAnyOfItem]


class TitledMultiSelectEnumSchemaItemsAnyOfItem(FrozenWireStruct, frozen=True, kw_only=True):
    const: str
    title: str


class TitledSingleSelectEnumSchemaOneOfItem(FrozenWireStruct, frozen=True, kw_only=True):
    const: str
    title: str


class ToolAnnotations(FrozenWireStruct, frozen=True, kw_only=True):
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None
    read_only_hint: bool | None = None
    title: str | None = None


class ToolChoice(FrozenWireStruct, frozen=True, kw_only=True):
    mode: Literal["auto", "none", "required"] | None = None


class ToolUseContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    type: ClassVar[Literal["tool_use"]] = "tool_use"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    id: str
    input: dict[str, Any]
    name: str


class UntitledMultiSelectEnumSchemaItems(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

EMBEDDED_RESOURCE_RESOURCE_UNION = StructUnion(
    (),
    (
        ("text uri", TextResourceContents),
        ("blob uri", BlobResourceContents),
    ),
    lists=False,
)
if TYPE_CHECKING:
    EmbeddedResourceResource: TypeAlias = TextResourceContents | BlobResourceContents
else:
    EmbeddedResourceResource = Annotated[Any, EMBEDDED_RESOURCE_RESOURCE_UNION]


LoggingLevel: TypeAlias = Literal["alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]

PRIMITIVE_SCHEMA_DEFINITION_UNION = StructUnion(
    (),
    (
        ("enum type", UntitledSingleSelectEnumSchema),
        ("oneOf type", TitledSingleSelectEnumSchema),
        ("items type", UntitledMultiSelectEnumSchema),
        ("items type", TitledMultiSelectEnumSchema),
        ("enum type", LegacyTitledEnumSchema),
        ("type", StringSchema),
        ("type", NumberSchema),
        ("type", BooleanSchema),
    ),
    lists=False,
)
if TYPE_CHECKING:
    PrimitiveSchemaDefinition: TypeAlias = (
        StringSchema
        | NumberSchema
        | BooleanSchema
        | UntitledSingleSelectEnumSchema
        | TitledSingleSelectEnumSchema
        | UntitledMultiSelectEnumSchema
        | TitledMultiSelectEnumSchema
        | LegacyTitledEnumSchema
    )
else:
    PrimitiveSchemaDefinition = Annotated[Any, PRIMITIVE_SCHEMA_DEFINITION_UNION]


ProgressToken: TypeAlias = str | int

RequestId: TypeAlias = str | int

Role: TypeAlias = Literal["assistant", "user"]
