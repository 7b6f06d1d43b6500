# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""The params and results of methods of agents and of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import UNSET, UnsetType, field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, OpenStr, StructUnion

__all__ = [
    "AgentMessageChunk", "AgentThoughtChunk", "Annotations", "AudioContent", "AuthMethodId", "AuthenticateRequest",
    "AuthenticateResponse", "AvailableCommand", "AvailableCommandInput", "AvailableCommandsUpdate",
    "BlobResourceContents", "BooleanPropertySchema", "CancelNotification", "CloseSessionRequest",
    "CloseSessionResponse", "CompleteElicitationNotification", "ConfigOptionUpdate", "Content", "ContentBlock",
    "ContentChunk", "Cost", "CreateElicitationRequest", "CreateElicitationResponse", "CreateTerminalRequest",
    "CreateTerminalResponse", "CurrentModeUpdate", "DeleteSessionRequest", "DeleteSessionResponse", "Diff",
    "ElicitationContentValue", "ElicitationId", "ElicitationPropertySchema", "ElicitationSchema",
    "ElicitationSchemaType", "EmbeddedResource", "EmbeddedResourceResource", "EnumOption", "EnvVariable",
    "HttpHeader", "ImageContent", "IntegerPropertySchema", "KillTerminalRequest", "KillTerminalResponse",
    "ListSessionsRequest", "ListSessionsResponse", "LoadSessionRequest", "LoadSessionResponse", "LogoutRequest",
    "LogoutResponse", "McpServer", "McpServerHttp", "McpServerSse", "McpServerStdio", "MessageId",
    "MultiSelectItems", "MultiSelectPropertySchema", "NewSessionRequest", "NewSessionResponse",
    "NumberPropertySchema", "PermissionOption", "PermissionOptionId", "PermissionOptionKind", "Plan", "PlanEntry",
    "PlanEntryPriority", "PlanEntryStatus", "PromptRequest", "PromptResponse", "ReadTextFileRequest",
    "ReadTextFileResponse", "ReleaseTerminalRequest", "ReleaseTerminalResponse", "RequestId",
    "RequestPermissionOutcome", "RequestPermissionOutcomeCancelled", "RequestPermissionRequest",
    "RequestPermissionResponse", "ResourceLink", "ResumeSessionRequest", "ResumeSessionResponse", "Role",
    "SelectedPermissionOutcome", "SessionConfigGroupId", "SessionConfigId", "SessionConfigOption",
    "SessionConfigOptionCategory", "SessionConfigSelectGroup", "SessionConfigSelectOption",
    "SessionConfigSelectOptions", "SessionConfigValueId", "SessionId", "SessionInfo", "SessionInfoUpdate",
    "SessionMode", "SessionModeId", "SessionModeState", "SessionNotification", "SessionUpdate",
    "SessionUpdateToolCallUpdate", "SetSessionConfigOptionRequest", "SetSessionConfigOptionResponse",
    "SetSessionModeRequest", "SetSessionModeResponse", "StopReason", "StringFormat", "StringMultiSelectItems",
    "StringPropertySchema", "Terminal", "TerminalExitStatus", "TerminalId", "TerminalOutputRequest",
    "TerminalOutputResponse", "TextContent", "TextResourceContents", "TitledMultiSelectItems", "ToolCall",
    "ToolCallContent", "ToolCallId", "ToolCallLocation", "ToolCallStatus", "ToolCallUpdate", "ToolKind",
    "UnstructuredCommandInput", "UsageUpdate", "UserMessageChunk", "WaitForTerminalExitRequest",
    "WaitForTerminalExitResponse", "WriteTextFileRequest", "WriteTextFileResponse",
]  # fmt: skip


class ElicitationSchemaType(OpenStr):
    OBJECT = "object"


class PermissionOptionKind(OpenStr):
    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"


class PlanEntryPriority(OpenStr):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class PlanEntryStatus(OpenStr):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class Role(OpenStr):
    ASSISTANT = "assistant"
    USER = "user"


class SessionConfigOptionCategory(OpenStr):
    MODE = "mode"
    MODEL = "model"
    MODEL_CONFIG = "model_config"
    THOUGHT_LEVEL = "thought_level"


class StopReason(OpenStr):
    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


class StringFormat(OpenStr):
    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATE_TIME = "date-time"


class ToolCallStatus(OpenStr):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


class ToolKind(OpenStr):
    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


class ContentChunk(FrozenWireStruct, frozen=True, kw_only=True):
    content: ContentBlock
    message_id: MessageId | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AgentMessageChunk(ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_message_chunk"):
    session_update: ClassVar[Literal["agent_message_chunk"]] = "agent_message_chunk"


class AgentThoughtChunk(ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    session_update: ClassVar[Literal["agent_thought_chunk"]] = "agent_thought_chunk"


class Annotations(FrozenWireStruct, frozen=True, kw_only=True):
    audience: list[Role] | None = None
    last_modified: str | None = None
    priority: float | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AudioContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    type: ClassVar[Literal["audio"]] = "audio"
    annotations: Annotations | None = None
    data: str
    mime_type: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthenticateRequest(FrozenWireStruct, frozen=True, kw_only=True):
    method_id: AuthMethodId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthenticateResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AvailableCommand(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    description: str
    input: AvailableCommandInput | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class UnstructuredCommandInput(FrozenWireStruct, frozen=True, kw_only=True):
    hint: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AvailableCommandsUpdate(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="available_commands_update"
):
    session_update: ClassVar[Literal["available_commands_update"]] = "available_commands_update"
    available_commands: list[AvailableCommand]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class BlobResourceContents(FrozenWireStruct, frozen=True, kw_only=True):
    blob: str
    mime_type: str | None = None
    uri: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class BooleanPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="boolean"):
    type: ClassVar[Literal["boolean"]] = "boolean"
    title: str | None = None
    description: str | None = None
    default: bool | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CancelNotification(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CloseSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CloseSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CompleteElicitationNotification(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation_id: ElicitationId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ConfigOptionUpdate(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="config_option_update"
):
    session_update: ClassVar[Literal["config_option_update"]] = "config_option_update"
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Content(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="content"):
    type: ClassVar[Literal["content"]] = "content"
    content: ContentBlock
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EmbeddedResource(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    type: ClassVar[Literal["resource"]] = "resource"
    annotations: Annotations | None = None
    resource: EmbeddedResourceResource
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(self, "resource", EMBEDDED_RESOURCE_RESOURCE_UNION.read(self.resource))


class ImageContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="image"):
    type: ClassVar[Literal["image"]] = "image"
    annotations: Annotations | None = None
    data: str
    mime_type: str
    uri: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResourceLink(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    type: ClassVar[Literal["resource_link"]] = "resource_link"
    annotations: Annotations | None = None
    description: str | None = None
    mime_type: str | None = None
    name: str
    size: int | None = None
    title: str | None = None
    uri: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TextContent(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    type: ClassVar[Literal["text"]] = "text"
    annotations: Annotations | None = None
    text: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Cost(FrozenWireStruct, frozen=True, kw_only=True):
    amount: float
    currency: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CreateElicitationRequest(FrozenWireStruct, frozen=True, kw_only=True):
    message: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    mode: str
    requested_schema: ElicitationSchema | None = None
    session_id: SessionId | None = None
    tool_call_id: ToolCallId | None = None
    request_id: RequestId | None = None
    elicitation_id: ElicitationId | None = None
    url: str | None = None


class CreateElicitationResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    action: str
    content: dict[str, ElicitationContentValue] | None = None


class CreateTerminalRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    command: str
    args: list[str] | None = None
    env: list[EnvVariable] | None = None
    cwd: str | None = None
    output_byte_limit: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CreateTerminalResponse(FrozenWireStruct, frozen=True, kw_only=True):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CurrentModeUpdate(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="current_mode_update"
):
    session_update: ClassVar[Literal["current_mode_update"]] = "current_mode_update"
    current_mode_id: SessionModeId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class DeleteSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class DeleteSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Diff(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    type: ClassVar[Literal["diff"]] = "diff"
    path: str
    old_text: str | None = None
    new_text: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class IntegerPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="integer"):
    type: ClassVar[Literal["integer"]] = "integer"
    title: str | None = None
    description: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    default: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class MultiSelectPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="array"):
    type: ClassVar[Literal["array"]] = "array"
    title: str | None = None
    description: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    items: MultiSelectItems
    default: list[str] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(self, "items", MULTI_SELECT_ITEMS_UNION.read(self.items))


class NumberPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="number"):
    type: ClassVar[Literal["number"]] = "number"
    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class StringPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    title: str | None = None
    description: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: str | None = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ElicitationSchema(FrozenWireStruct, frozen=True, kw_only=True):
    type: ElicitationSchemaType | None = None
    title: str | None = None
    properties: dict[str, ElicitationPropertySchema] | None = None
    required: list[str] | None = None
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TextResourceContents(FrozenWireStruct, frozen=True, kw_only=True):
    mime_type: str | None = None
    text: str
    uri: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EnumOption(FrozenWireStruct, frozen=True, kw_only=True):
    const: str
    title: str
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EnvVariable(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class HttpHeader(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class KillTerminalRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class KillTerminalResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ListSessionsRequest(FrozenWireStruct, frozen=True, kw_only=True):
    cwd: str | None = None
    cursor: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ListSessionsResponse(FrozenWireStruct, frozen=True, kw_only=True):
    sessions: list[SessionInfo]
    next_cursor: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class LoadSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    mcp_servers: list[McpServer]
    cwd: str
    additional_directories: list[str] | None = None
    session_id: SessionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(self, "mcp_servers", [MCP_SERVER_UNION.read(item) for item in self.mcp_servers])


class LoadSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class LogoutRequest(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class LogoutResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class McpServerHttp(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="http"):
    type: ClassVar[Literal["http"]] = "http"
    name: str
    url: str
    headers: list[HttpHeader]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class McpServerSse(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="sse"):
    type: ClassVar[Literal["sse"]] = "sse"
    name: str
    url: str
    headers: list[HttpHeader]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class McpServerStdio(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    command: str
    args: list[str]
    env: list[EnvVariable]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class StringMultiSelectItems(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TitledMultiSelectItems(FrozenWireStruct, frozen=True, kw_only=True):
    any_of: list[EnumOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class NewSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[McpServer]
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(self, "mcp_servers", [MCP_SERVER_UNION.read(item) for item in self.mcp_servers])


class NewSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PermissionOption(FrozenWireStruct, frozen=True, kw_only=True):
    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Plan(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan"):
    session_update: ClassVar[Literal["plan"]] = "plan"
    entries: list[PlanEntry]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PlanEntry(FrozenWireStruct, frozen=True, kw_only=True):
    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptResponse(FrozenWireStruct, frozen=True, kw_only=True):
    stop_reason: StopReason
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReadTextFileRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    path: str
    line: int | None = None
    limit: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReadTextFileResponse(FrozenWireStruct, frozen=True, kw_only=True):
    content: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReleaseTerminalRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReleaseTerminalResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionOutcomeCancelled(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="outcome", tag="cancelled"
):
    outcome: ClassVar[Literal["cancelled"]] = "cancelled"


class SelectedPermissionOutcome(FrozenWireStruct, frozen=True, kw_only=True, tag_field="outcome", tag="selected"):
    outcome: ClassVar[Literal["selected"]] = "selected"
    option_id: PermissionOptionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    tool_call: ToolCallUpdate
    options: list[PermissionOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    outcome: RequestPermissionOutcome
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResumeSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[McpServer] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "mcp_servers",
            None if self.mcp_servers is None else [MCP_SERVER_UNION.read(item) for item in self.mcp_servers],
        )


class ResumeSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    modes: SessionModeState | None = None
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionConfigOption(FrozenWireStruct, frozen=True, kw_only=True):
    id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    type: Literal["select", "boolean"]
    current_value: SessionConfigValueId | bool
    options: SessionConfigSelectOptions | None = None

    def __post_init__(self) -> None:
        force_setattr(
            self, "options", None if self.options is None else SESSION_CONFIG_SELECT_OPTIONS_UNION.read(self.options)
        )


class SessionConfigSelectGroup(FrozenWireStruct, frozen=True, kw_only=True):
    group: SessionConfigGroupId
    name: str
    options: list[SessionConfigSelectOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionConfigSelectOption(FrozenWireStruct, frozen=True, kw_only=True):
    value: SessionConfigValueId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionInfo(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] | None = None
    title: str | None = None
    updated_at: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionInfoUpdate(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="session_info_update"
):
    session_update: ClassVar[Literal["session_info_update"]] = "session_info_update"
    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionMode(FrozenWireStruct, frozen=True, kw_only=True):
    id: SessionModeId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionModeState(FrozenWireStruct, frozen=True, kw_only=True):
    current_mode_id: SessionModeId
    available_modes: list[SessionMode]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionNotification(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    update: SessionUpdate
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ToolCallUpdate(FrozenWireStruct, frozen=True, kw_only=True):
    tool_call_id: ToolCallId
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    title: str | None = None
    content: list[ToolCallContent] | None = None
    locations: list[ToolCallLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionUpdateToolCallUpdate(
    ToolCallUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"
):
    session_update: ClassVar[Literal["tool_call_update"]] = "tool_call_update"


class ToolCall(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    session_update: ClassVar[Literal["tool_call"]] = "tool_call"
    tool_call_id: ToolCallId
    title: str
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    content: list[ToolCallContent] | None = None
    locations: list[ToolCallLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class UsageUpdate(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="usage_update"):
    session_update: ClassVar[Literal["usage_update"]] = "usage_update"
    used: int
    size: int
    cost: Cost | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class UserMessageChunk(ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message_chunk"):
    session_update: ClassVar[Literal["user_message_chunk"]] = "user_message_chunk"


class SetSessionConfigOptionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    value: bool | SessionConfigValueId
    type: Literal["boolean"] | None = None


class SetSessionConfigOptionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SetSessionModeRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    mode_id: SessionModeId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SetSessionModeResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Terminal(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="terminal"):
    type: ClassVar[Literal["terminal"]] = "terminal"
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalExitStatus(FrozenWireStruct, frozen=True, kw_only=True):
    exit_code: int | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalOutputRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalOutputResponse(FrozenWireStruct, frozen=True, kw_only=True):
    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ToolCallLocation(FrozenWireStruct, frozen=True, kw_only=True):
    path: str
    line: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WaitForTerminalExitRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WaitForTerminalExitResponse(FrozenWireStruct, frozen=True, kw_only=True):
    exit_code: int | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WriteTextFileRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    path: str
    content: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WriteTextFileResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


AuthMethodId: TypeAlias = str

AvailableCommandInput: TypeAlias = UnstructuredCommandInput

ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

ElicitationContentValue: TypeAlias = str | int | float | bool | list[str]

ElicitationId: TypeAlias = str

ElicitationPropertySchema: TypeAlias = (
    StringPropertySchema
    | NumberPropertySchema
    | IntegerPropertySchema
    | BooleanPropertySchema
    | MultiSelectPropertySchema
)

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


MCP_SERVER_UNION = StructUnion(
    (),
    (
        ("headers name type url", McpServerHttp),
        ("headers name type url", McpServerSse),
        ("args command env name", McpServerStdio),
    ),
    lists=False,
)
if TYPE_CHECKING:
    McpServer: TypeAlias = McpServerHttp | McpServerSse | McpServerStdio
else:
    McpServer = Annotated[Any, MCP_SERVER_UNION]


MessageId: TypeAlias = str

MULTI_SELECT_ITEMS_UNION = StructUnion(
    (),
    (
        ("enum type", StringMultiSelectItems),
        ("anyOf", TitledMultiSelectItems),
    ),
    lists=False,
)
if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = StringMultiSelectItems | TitledMultiSelectItems
else:
    MultiSelectItems = Annotated[Any, MULTI_SELECT_ITEMS_UNION]


PermissionOptionId: TypeAlias = str

RequestId: TypeAlias = int | str | None

RequestPermissionOutcome: TypeAlias = RequestPermissionOutcomeCancelled | SelectedPermissionOutcome

SessionConfigGroupId: TypeAlias = str

SessionConfigId: TypeAlias = str

SESSION_CONFIG_SELECT_OPTIONS_UNION = StructUnion(
    (),
    (
        ("group name options", SessionConfigSelectGroup),
        ("name value", SessionConfigSelectOption),
    ),
    lists=True,
)
if TYPE_CHECKING:
    SessionConfigSelectOptions: TypeAlias = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
else:
    SessionConfigSelectOptions = Annotated[Any, SESSION_CONFIG_SELECT_OPTIONS_UNION]


SessionConfigValueId: TypeAlias = str

SessionId: TypeAlias = str

SessionModeId: TypeAlias = str

SessionUpdate: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | SessionUpdateToolCallUpdate
    | Plan
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)

TerminalId: TypeAlias = str

ToolCallContent: TypeAlias = Content | Diff | Terminal

ToolCallId: TypeAlias = str
