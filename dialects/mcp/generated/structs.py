# Written by tools/protocols from the schema of MCP 2025-11-25. Do not edit.
"""The messages of servers, and the members of prompts, resources and tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, StructUnion

__all__ = [
    "Annotations", "AudioContent", "BlobResourceContents", "CallToolResult", "CompleteRequestParamsArgument",
    "CompleteResult", "CompleteResultCompletion", "ContentBlock", "CreateMessageResult", "EmbeddedResource",
    "GetPromptResult", "Icon", "ImageContent", "ListPromptsResult", "ListResourceTemplatesResult",
    "ListResourcesResult", "ListToolsResult", "Prompt", "PromptArgument", "PromptMessage", "PromptReference",
    "ReadResourceResult", "Resource", "ResourceLink", "ResourceTemplate", "ResourceTemplateReference", "Role",
    "Root", "SamplingMessage", "SamplingMessageContentBlock", "TextContent", "TextResourceContents", "Tool",
    "ToolAnnotations", "ToolExecution", "ToolResultContent", "ToolUseContent",
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


class CallToolResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    content: list[ContentBlock]
    is_error: bool | None = None
    structured_content: dict[str, Any] | None = None


class CompleteRequestParamsArgument(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    value: str


class CompleteResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    completion: CompleteResultCompletion


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


class CreateMessageResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    content: (
        TextContent
        | ImageContent
        | AudioContent
        | ToolUseContent
        | ToolResultContent
        | list[SamplingMessageContentBlock]
    )
    model: str
    role: Role
    stop_reason: str | None = None


class TextResourceContents(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    mime_type: str | None = None
    text: str
    uri: str


class GetPromptResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    description: str | None = None
    messages: list[PromptMessage]


class Icon(FrozenWireStruct, frozen=True, kw_only=True):
    mime_type: str | None = None
    sizes: list[str] | None = None
    src: str
    theme: Literal["dark", "light"] | None = None


class ListPromptsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    next_cursor: str | None = None
    prompts: list[Prompt]


class ListResourceTemplatesResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    next_cursor: str | None = None
    resource_templates: list[ResourceTemplate]


class ListResourcesResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    next_cursor: str | None = None
    resources: list[Resource]


class ListToolsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    next_cursor: str | None = None
    tools: list[Tool]


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


class ReadResourceResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    contents: list[ReadResourceResultContentsItem]

    def __post_init__(self) -> None:
        force_setattr(self, "contents", [READ_RESOURCE_RESULT_CONTENTS_ITEM_UNION.read(item) for item in self.contents])


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


class SamplingMessage(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    content: (
        TextContent
        | ImageContent
        | AudioContent
        | ToolUseContent
        | ToolResultContent
        | list[SamplingMessageContentBlock]
    )
    role: Role


class ToolResultContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    type: ClassVar[Literal["tool_result"]] = "tool_result"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    content: list[ContentBlock]
    is_error: bool | None = None
    structured_content: dict[str, Any] | None = None
    tool_use_id: str


class ToolUseContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    type: ClassVar[Literal["tool_use"]] = "tool_use"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    id: str
    input: dict[str, Any]
    name: str


class Tool(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: ToolAnnotations | None = None
    description: str | None = None
    execution: ToolExecution | None = None
    icons: list[Icon] | None = None
    input_schema: dict[str, Any]
    name: str
    output_schema: dict[str, Any] | None = None
    title: str | None = None


class ToolAnnotations(FrozenWireStruct, frozen=True, kw_only=True):
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None
    read_only_hint: bool | None = None
    title: str | None = None


class ToolExecution(FrozenWireStruct, frozen=True, kw_only=True):
    task_support: Literal["forbidden", "optional", "required"] | None = None


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


READ_RESOURCE_RESULT_CONTENTS_ITEM_UNION = StructUnion(
    (),
    (
        ("text uri", TextResourceContents),
        ("blob uri", BlobResourceContents),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ReadResourceResultContentsItem: TypeAlias = TextResourceContents | BlobResourceContents
else:
    ReadResourceResultContentsItem = Annotated[Any, READ_RESOURCE_RESULT_CONTENTS_ITEM_UNION]


Role: TypeAlias = Literal["assistant", "user"]

SamplingMessageContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
