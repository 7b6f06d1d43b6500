# Written by tools/protocols from the schema of MCP 2026-07-28. Do not edit.
"""What only revision 2026-07-28 has, or has otherwise than the other era."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, field
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
    "CallToolRequestParams", "CallToolResult", "CancelledNotificationParams", "ClientCapabilities",
    "ClientCapabilitiesRoots", "CompleteRequestParams", "CompleteResult", "CreateMessageRequest",
    "CreateMessageRequestParams", "CreateMessageResult", "DiscoverResult", "ElicitRequest",
    "ElicitRequestFormParams", "ElicitRequestParams", "ElicitRequestURLParams", "ElicitResult",
    "GetPromptRequestParams", "GetPromptResult", "InputRequest", "InputRequests", "InputRequiredResult",
    "InputResponse", "InputResponses", "ListPromptsResult", "ListResourceTemplatesResult", "ListResourcesResult",
    "ListRootsRequest", "ListRootsRequestParams", "ListRootsResult", "ListToolsResult",
    "LoggingMessageNotificationParams", "MissingRequiredClientCapabilityErrorData", "NotificationMetaObject",
    "NotificationParams", "PaginatedRequestParams", "ProgressNotificationParams", "ReadResourceRequestParams",
    "ReadResourceResult", "RequestMetaObject", "RequestParams", "ResourceUpdatedNotificationParams",
    "ResultMetaObject", "SamplingMessage", "SamplingMessageContentBlock", "ServerCapabilities",
    "SubscriptionFilter", "SubscriptionsAcknowledgedNotificationParams", "SubscriptionsListenRequestParams",
    "SubscriptionsListenResult", "SubscriptionsListenResultMetaObject", "Tool", "ToolResultContent",
    "UnsupportedProtocolVersionErrorData",
]  # fmt: skip


class CallToolRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")
    arguments: dict[str, Any] | None = None
    input_responses: InputResponses | None = None
    name: str
    request_state: str | None = None

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "input_responses",
            None
            if self.input_responses is None
            else {key: INPUT_RESPONSE_UNION.read(item) for key, item in self.input_responses.items()},
        )


class CallToolResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    content: list[ContentBlock]
    is_error: bool | None = None
    result_type: str
    structured_content: Any = UNSET


class CancelledNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: NotificationMetaObject | None = field(default=None, name="_meta")
    reason: str | None = None
    request_id: RequestId


class ClientCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation: ClientCapabilitiesElicitation | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    roots: ClientCapabilitiesRoots | None = None
    sampling: ClientCapabilitiesSampling | None = None


class ClientCapabilitiesRoots(FrozenWireStruct, frozen=True, kw_only=True):
    pass


class CompleteRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")
    argument: CompleteRequestParamsArgument
    context: CompleteRequestParamsContext | None = None
    ref: PromptReference | ResourceTemplateReference


class CompleteResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    completion: CompleteResultCompletion
    result_type: str


class CreateMessageRequest(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="method", tag="sampling/createMessage"
):
    method: ClassVar[Literal["sampling/createMessage"]] = "sampling/createMessage"
    params: CreateMessageRequestParams


class CreateMessageRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    include_context: Literal["allServers", "none", "thisServer"] | None = None
    max_tokens: int
    messages: list[SamplingMessage]
    metadata: dict[str, Any] | None = None
    model_preferences: ModelPreferences | None = None
    stop_sequences: list[str] | None = None
    system_prompt: str | None = None
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


class DiscoverResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    cache_scope: Literal["private", "public"]
    capabilities: ServerCapabilities
    instructions: str | None = None
    result_type: str
    supported_versions: list[str]
    ttl_ms: int


class ElicitRequest(FrozenWireStruct, frozen=True, kw_only=True, tag_field="method", tag="elicitation/create"):
    method: ClassVar[Literal["elicitation/create"]] = "elicitation/create"
    params: ElicitRequestParams

    def __post_init__(self) -> None:
        force_setattr(self, "params", ELICIT_REQUEST_PARAMS_UNION.read(self.params))


class ElicitRequestFormParams(FrozenWireStruct, frozen=True, kw_only=True):
    message: str
    mode: Literal["form"] | None = None
    requested_schema: ElicitRequestFormParamsRequestedSchema


class ElicitRequestURLParams(FrozenWireStruct, frozen=True, kw_only=True, tag_field="mode", tag="url"):
    mode: ClassVar[Literal["url"]] = "url"
    message: str
    url: str


class ElicitResult(FrozenWireStruct, frozen=True, kw_only=True):
    action: Literal["accept", "cancel", "decline"]
    content: dict[str, list[str] | str | int | float | bool] | None = None


class GetPromptRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")
    arguments: dict[str, str] | None = None
    input_responses: InputResponses | None = None
    name: str
    request_state: str | None = None

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "input_responses",
            None
            if self.input_responses is None
            else {key: INPUT_RESPONSE_UNION.read(item) for key, item in self.input_responses.items()},
        )


class GetPromptResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    description: str | None = None
    messages: list[PromptMessage]
    result_type: str


class ListRootsRequest(FrozenWireStruct, frozen=True, kw_only=True, tag_field="method", tag="roots/list"):
    method: ClassVar[Literal["roots/list"]] = "roots/list"
    params: ListRootsRequestParams | None = None


class InputRequiredResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    input_requests: InputRequests | None = None
    request_state: str | None = None
    result_type: str


class ListRootsResult(FrozenWireStruct, frozen=True, kw_only=True):
    roots: list[Root]


class ListPromptsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    cache_scope: Literal["private", "public"]
    next_cursor: str | None = None
    prompts: list[Prompt]
    result_type: str
    ttl_ms: int


class ListResourceTemplatesResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    cache_scope: Literal["private", "public"]
    next_cursor: str | None = None
    resource_templates: list[ResourceTemplate]
    result_type: str
    ttl_ms: int


class ListResourcesResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    cache_scope: Literal["private", "public"]
    next_cursor: str | None = None
    resources: list[Resource]
    result_type: str
    ttl_ms: int


class ListRootsRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ListToolsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    cache_scope: Literal["private", "public"]
    next_cursor: str | None = None
    result_type: str
    tools: list[Tool]
    ttl_ms: int


class LoggingMessageNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: NotificationMetaObject | None = field(default=None, name="_meta")
    data: Any
    level: LoggingLevel
    logger: str | None = None


class MissingRequiredClientCapabilityErrorData(FrozenWireStruct, frozen=True, kw_only=True):
    required_capabilities: ClientCapabilities


class NotificationMetaObject(FrozenWireStruct, frozen=True, kw_only=True):
    subscription_id: RequestId | None = field(default=None, name="io.modelcontextprotocol/subscriptionId")


class NotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: NotificationMetaObject | None = field(default=None, name="_meta")


class PaginatedRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")
    cursor: str | None = None


class ProgressNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: NotificationMetaObject | None = field(default=None, name="_meta")
    message: str | None = None
    progress: float
    progress_token: ProgressToken
    total: float | None = None


class ReadResourceRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")
    input_responses: InputResponses | None = None
    request_state: str | None = None
    uri: str

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "input_responses",
            None
            if self.input_responses is None
            else {key: INPUT_RESPONSE_UNION.read(item) for key, item in self.input_responses.items()},
        )


class ReadResourceResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: ResultMetaObject | None = field(default=None, name="_meta")
    cache_scope: Literal["private", "public"]
    contents: list[ReadResourceResultContentsItem]
    result_type: str
    ttl_ms: int

    def __post_init__(self) -> None:
        force_setattr(self, "contents", [READ_RESOURCE_RESULT_CONTENTS_ITEM_UNION.read(item) for item in self.contents])


class RequestMetaObject(FrozenWireStruct, frozen=True, kw_only=True):
    client_capabilities: ClientCapabilities = field(name="io.modelcontextprotocol/clientCapabilities")
    client_info: Implementation | None = field(default=None, name="io.modelcontextprotocol/clientInfo")
    log_level: LoggingLevel | None = field(default=None, name="io.modelcontextprotocol/logLevel")
    protocol_version: str = field(name="io.modelcontextprotocol/protocolVersion")
    progress_token: ProgressToken | None = None


class RequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")


class ResourceUpdatedNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: NotificationMetaObject | None = field(default=None, name="_meta")
    uri: str


class ResultMetaObject(FrozenWireStruct, frozen=True, kw_only=True):
    server_info: Implementation | None = field(default=None, name="io.modelcontextprotocol/serverInfo")


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
    structured_content: Any = UNSET
    tool_use_id: str


class ServerCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    completions: dict[str, Any] | None = None
    experimental: dict[str, dict[str, Any]] | None = None
    extensions: dict[str, dict[str, Any]] | None = None
    logging: dict[str, Any] | None = None
    prompts: ServerCapabilitiesPrompts | None = None
    resources: ServerCapabilitiesResources | None = None
    tools: ServerCapabilitiesTools | None = None


class SubscriptionFilter(FrozenWireStruct, frozen=True, kw_only=True):
    prompts_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    resources_list_changed: bool | None = None
    tools_list_changed: bool | None = None


class SubscriptionsAcknowledgedNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: NotificationMetaObject | None = field(default=None, name="_meta")
    notifications: SubscriptionFilter


class SubscriptionsListenRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: RequestMetaObject = field(name="_meta")
    notifications: SubscriptionFilter


class SubscriptionsListenResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: SubscriptionsListenResultMetaObject = field(name="_meta")
    result_type: str


class SubscriptionsListenResultMetaObject(FrozenWireStruct, frozen=True, kw_only=True):
    server_info: Implementation | None = field(default=None, name="io.modelcontextprotocol/serverInfo")
    subscription_id: RequestId = field(name="io.modelcontextprotocol/subscriptionId")


class Tool(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    annotations: ToolAnnotations | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    input_schema: dict[str, Any]
    name: str
    output_schema: dict[str, Any] | None = None
    title: str | None = None


class UnsupportedProtocolVersionErrorData(FrozenWireStruct, frozen=True, kw_only=True):
    requested: str
    supported: list[str]


ELICIT_REQUEST_PARAMS_UNION = StructUnion(
    (),
    (
        ("message mode url", ElicitRequestURLParams),
        ("message requestedSchema", ElicitRequestFormParams),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ElicitRequestParams: TypeAlias = ElicitRequestFormParams | ElicitRequestURLParams
else:
    ElicitRequestParams = Annotated[Any, ELICIT_REQUEST_PARAMS_UNION]


InputRequest: TypeAlias = CreateMessageRequest | ListRootsRequest | ElicitRequest

InputRequests: TypeAlias = dict[str, InputRequest]

INPUT_RESPONSE_UNION = StructUnion(
    (),
    (
        ("content model role", CreateMessageResult),
        ("roots", ListRootsResult),
        ("action", ElicitResult),
    ),
    lists=False,
)
if TYPE_CHECKING:
    InputResponse: TypeAlias = CreateMessageResult | ListRootsResult | ElicitResult
else:
    InputResponse = Annotated[Any, INPUT_RESPONSE_UNION]


InputResponses: TypeAlias = dict[str, InputResponse]

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
