# Written by tools/protocols from the schema of MCP 2025-11-25. Do not edit.
"""What only revision 2025-11-25 has, or has otherwise than the other era."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, StructUnion
from .shared import (
    AudioContent,
    BlobResourceContents,
    ClientCapabilitiesElicitation,
    ClientCapabilitiesSampling,
    CompleteRequestParamsArgument,
    CompleteRequestParamsContext,
    CompleteResultCompletion,
    ContentBlock,
    ElicitRequestFormParamsRequestedSchema,
    Icon,
    ImageContent,
    Implementation,
    LoggingLevel,
    ModelPreferences,
    ProgressToken,
    Prompt,
    PromptMessage,
    PromptReference,
    RequestId,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    Role,
    Root,
    ServerCapabilitiesPrompts,
    ServerCapabilitiesResources,
    ServerCapabilitiesTools,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
    ToolChoice,
    ToolUseContent,
)

__all__ = [
    "CallToolRequestParams", "CallToolResult", "CancelTaskRequestParams", "CancelTaskResult",
    "CancelledNotificationParams", "ClientCapabilities", "ClientCapabilitiesRoots", "ClientCapabilitiesTasks",
    "ClientCapabilitiesTasksRequests", "ClientCapabilitiesTasksRequestsElicitation",
    "ClientCapabilitiesTasksRequestsSampling", "CompleteRequestParams", "CompleteResult",
    "CreateMessageRequestParams", "CreateMessageResult", "ElicitRequestFormParams", "ElicitRequestParams",
    "ElicitRequestURLParams", "ElicitResult", "ElicitationCompleteNotificationParams", "GetPromptRequestParams",
    "GetPromptResult", "GetTaskPayloadRequestParams", "GetTaskRequestParams", "GetTaskResult",
    "InitializeRequestParams", "InitializeResult", "ListPromptsResult", "ListResourceTemplatesResult",
    "ListResourcesResult", "ListRootsResult", "ListTasksResult", "ListToolsResult",
    "LoggingMessageNotificationParams", "NotificationParams", "PaginatedRequestParams",
    "ProgressNotificationParams", "ReadResourceRequestParams", "ReadResourceResult", "RequestParams",
    "ResourceUpdatedNotificationParams", "SamplingMessage", "SamplingMessageContentBlock", "ServerCapabilities",
    "ServerCapabilitiesTasks", "ServerCapabilitiesTasksRequests", "ServerCapabilitiesTasksRequestsTools",
    "SetLevelRequestParams", "SubscribeRequestParams", "Task", "TaskMetadata", "TaskStatus",
    "TaskStatusNotificationParams", "Tool", "ToolExecution", "ToolResultContent", "URLElicitationRequiredErrorData",
    "UnsubscribeRequestParams",
]  # fmt: skip


class CallToolRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    arguments: dict[str, Any] | None = None
    name: str
    task: TaskMetadata | None = None


class CallToolResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    content: list[ContentBlock]
    is_error: bool | None = None
    structured_content: dict[str, Any] | None = None


class CancelTaskRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    task_id: str


class CancelTaskResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    created_at: str
    last_updated_at: str
    poll_interval: int | None = None
    status: TaskStatus
    status_message: str | None = None
    task_id: str
    ttl: int | None


class CancelledNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    reason: str | None = None
    request_id: RequestId | None = None


class ClientCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation: ClientCapabilitiesElicitation | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    roots: ClientCapabilitiesRoots | None = None
    sampling: ClientCapabilitiesSampling | None = None
    tasks: ClientCapabilitiesTasks | None = None


class ClientCapabilitiesRoots(FrozenWireStruct, frozen=True, kw_only=True):
    list_changed: bool | None = None


class ClientCapabilitiesTasks(FrozenWireStruct, frozen=True, kw_only=True):
    cancel: dict[str, Any] | None = None
    list: dict[str, Any] | None = None
    requests: ClientCapabilitiesTasksRequests | None = None


class ClientCapabilitiesTasksRequests(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation: ClientCapabilitiesTasksRequestsElicitation | None = None
    sampling: ClientCapabilitiesTasksRequestsSampling | None = None


class ClientCapabilitiesTasksRequestsElicitation(FrozenWireStruct, frozen=True, kw_only=True):
    create: dict[str, Any] | None = None


class ClientCapabilitiesTasksRequestsSampling(FrozenWireStruct, frozen=True, kw_only=True):
    create_message: dict[str, Any] | None = None


class CompleteRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    argument: CompleteRequestParamsArgument
    context: CompleteRequestParamsContext | None = None
    ref: PromptReference | ResourceTemplateReference


class CompleteResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    completion: CompleteResultCompletion


class CreateMessageRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    include_context: Literal["allServers", "none", "thisServer"] | None = None
    max_tokens: int
    messages: list[SamplingMessage]
    metadata: dict[str, Any] | None = None
    model_preferences: ModelPreferences | None = None
    stop_sequences: list[str] | None = None
    system_prompt: str | None = None
    task: TaskMetadata | None = None
    temperature: float | None = None
    tool_choice: ToolChoice | None = None
    tools: list[Tool] | None = None


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


class ElicitRequestFormParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    message: str
    mode: Literal["form"] | None = None
    requested_schema: ElicitRequestFormParamsRequestedSchema
    task: TaskMetadata | None = None


class ElicitRequestURLParams(FrozenWireStruct, frozen=True, kw_only=True, tag_field="mode", tag="url"):
    mode: ClassVar[Literal["url"]] = "url"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    elicitation_id: str
    message: str
    task: TaskMetadata | None = None
    url: str


class ElicitResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    action: Literal["accept", "cancel", "decline"]
    content: dict[str, list[str] | str | int | float | bool] | None = None


class ElicitationCompleteNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation_id: str


class GetPromptRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    arguments: dict[str, str] | None = None
    name: str


class GetPromptResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    description: str | None = None
    messages: list[PromptMessage]


class GetTaskPayloadRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    task_id: str


class GetTaskRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    task_id: str


class GetTaskResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    created_at: str
    last_updated_at: str
    poll_interval: int | None = None
    status: TaskStatus
    status_message: str | None = None
    task_id: str
    ttl: int | None


class InitializeRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    capabilities: ClientCapabilities
    client_info: Implementation
    protocol_version: str


class InitializeResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    capabilities: ServerCapabilities
    instructions: str | None = None
    protocol_version: str
    server_info: Implementation


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


class ListRootsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    roots: list[Root]


class ListTasksResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    next_cursor: str | None = None
    tasks: list[Task]


class ListToolsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    next_cursor: str | None = None
    tools: list[Tool]


class LoggingMessageNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    data: Any
    level: LoggingLevel
    logger: str | None = None


class NotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PaginatedRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    cursor: str | None = None


class ProgressNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    message: str | None = None
    progress: float
    progress_token: ProgressToken
    total: float | None = None


class ReadResourceRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


class ReadResourceResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    contents: list[ReadResourceResultContentsItem]

    def __post_init__(self) -> None:
        force_setattr(self, "contents", [READ_RESOURCE_RESULT_CONTENTS_ITEM_UNION.read(item) for item in self.contents])


class RequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResourceUpdatedNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
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


class ServerCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    completions: dict[str, Any] | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    logging: dict[str, Any] | None = None
    prompts: ServerCapabilitiesPrompts | None = None
    resources: ServerCapabilitiesResources | None = None
    tasks: ServerCapabilitiesTasks | None = None
    tools: ServerCapabilitiesTools | None = None


class ServerCapabilitiesTasks(FrozenWireStruct, frozen=True, kw_only=True):
    cancel: dict[str, Any] | None = None
    list: dict[str, Any] | None = None
    requests: ServerCapabilitiesTasksRequests | None = None


class ServerCapabilitiesTasksRequests(FrozenWireStruct, frozen=True, kw_only=True):
    tools: ServerCapabilitiesTasksRequestsTools | None = None


class ServerCapabilitiesTasksRequestsTools(FrozenWireStruct, frozen=True, kw_only=True):
    call: dict[str, Any] | None = None


class SetLevelRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    level: LoggingLevel


class SubscribeRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


class Task(FrozenWireStruct, frozen=True, kw_only=True):
    created_at: str
    last_updated_at: str
    poll_interval: int | None = None
    status: TaskStatus
    status_message: str | None = None
    task_id: str
    ttl: int | None


class TaskMetadata(FrozenWireStruct, frozen=True, kw_only=True):
    ttl: int | None = None


class TaskStatusNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    created_at: str
    last_updated_at: str
    poll_interval: int | None = None
    status: TaskStatus
    status_message: str | None = None
    task_id: str
    ttl: int | None


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


class ToolExecution(FrozenWireStruct, frozen=True, kw_only=True):
    task_support: Literal["forbidden", "optional", "required"] | None = None


class URLElicitationRequiredErrorData(FrozenWireStruct, frozen=True, kw_only=True):
    elicitations: list[ElicitRequestURLParams]


class UnsubscribeRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


ELICIT_REQUEST_PARAMS_UNION = StructUnion(
    (),
    (
        ("elicitationId message mode url", ElicitRequestURLParams),
        ("message requestedSchema", ElicitRequestFormParams),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ElicitRequestParams: TypeAlias = ElicitRequestURLParams | ElicitRequestFormParams
else:
    ElicitRequestParams = Annotated[Any, ELICIT_REQUEST_PARAMS_UNION]


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


SamplingMessageContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent

TaskStatus: TypeAlias = Literal["cancelled", "completed", "failed", "input_required", "working"]
