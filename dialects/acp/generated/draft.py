# Written by tools/protocols from the schema of ACP 2. Do not edit.
"""The params and results that version 2, a draft, changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, OpenStr, StructUnion
from .structs import (
    Annotations,
    AudioContent,
    EmbeddedResource,
    EnvVariable,
    HttpHeader,
    ImageContent,
    MessageId,
    PermissionOption,
    PlanEntryPriority,
    SessionConfigGroupId,
    SessionConfigId,
    SessionConfigOptionCategory,
    SessionConfigSelectOption,
    SessionConfigValueId,
    SessionId,
    SessionInfoUpdate,
    StopReason,
    Terminal,
    TerminalExitStatus,
    TerminalId,
    TextContent,
    ToolCallId,
    ToolCallLocation,
    ToolKind,
    UsageUpdate,
)

__all__ = [
    "AgentMessage", "AgentMessageChunk", "AgentThought", "AgentThoughtChunk", "AvailableCommand",
    "AvailableCommandInput", "AvailableCommandsUpdate", "CommandPermissionSubject", "ConfigOptionUpdate", "Content",
    "ContentBlock", "ContentChunk", "Diff", "DiffChange", "DiffFileType", "DiffPatch", "DiffPatchFormat", "Icon",
    "IconTheme", "McpServer", "McpServerHttp", "McpServerStdio", "NewSessionRequest", "NewSessionResponse",
    "PlanEntry", "PlanEntryStatus", "PlanId", "PlanItems", "PlanUpdate", "PlanUpdateContent", "PromptRequest",
    "PromptResponse", "ReplayFrom", "ReplayFromStart", "RequestPermissionRequest", "RequestPermissionSubject",
    "ResourceLink", "ResumeSessionRequest", "ResumeSessionResponse", "SessionConfigOption",
    "SessionConfigSelectGroup", "SessionConfigSelectOptions", "SessionUpdate", "SessionUpdateToolCallUpdate",
    "SetSessionConfigOptionRequest", "SetSessionConfigOptionResponse", "StateUpdate", "TerminalOutput",
    "TerminalOutputChunk", "TerminalUpdate", "TextCommandInput", "ToolCallContent", "ToolCallContentChunk",
    "ToolCallPermissionSubject", "ToolCallStatus", "ToolCallUpdate", "UpdateSessionNotification", "UserMessage",
    "UserMessageChunk",
]  # fmt: skip


class DiffFileType(OpenStr):
    TEXT = "text"
    BINARY = "binary"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


class DiffPatchFormat(OpenStr):
    GIT_PATCH = "git_patch"


class IconTheme(OpenStr):
    LIGHT = "light"
    DARK = "dark"


class PlanEntryStatus(OpenStr):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class ToolCallStatus(OpenStr):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class AgentMessage(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_message"):
    session_update: ClassVar[Literal["agent_message"]] = "agent_message"
    message_id: MessageId
    content: list[ContentBlock] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ContentChunk(FrozenWireStruct, frozen=True, kw_only=True):
    message_id: MessageId
    content: ContentBlock
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AgentMessageChunk(ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_message_chunk"):
    session_update: ClassVar[Literal["agent_message_chunk"]] = "agent_message_chunk"


class AgentThought(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_thought"):
    session_update: ClassVar[Literal["agent_thought"]] = "agent_thought"
    message_id: MessageId
    content: list[ContentBlock] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AgentThoughtChunk(ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    session_update: ClassVar[Literal["agent_thought_chunk"]] = "agent_thought_chunk"


class AvailableCommand(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    description: str
    input: AvailableCommandInput | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TextCommandInput(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    type: ClassVar[Literal["text"]] = "text"
    hint: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AvailableCommandsUpdate(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="available_commands_update"
):
    session_update: ClassVar[Literal["available_commands_update"]] = "available_commands_update"
    available_commands: list[AvailableCommand]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CommandPermissionSubject(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="command"):
    type: ClassVar[Literal["command"]] = "command"
    command: str
    cwd: str
    tool_call_id: ToolCallId | None = None
    terminal_id: TerminalId | None = None
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


class ResourceLink(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    type: ClassVar[Literal["resource_link"]] = "resource_link"
    name: str
    uri: str
    title: str | None = None
    description: str | None = None
    icons: list[Icon] | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Diff(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    type: ClassVar[Literal["diff"]] = "diff"
    changes: list[DiffChange]
    patch: DiffPatch | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class DiffChange(FrozenWireStruct, frozen=True, kw_only=True):
    file_type: DiffFileType | None = None
    mime_type: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    operation: str
    path: str | None = None
    old_path: str | None = None


class DiffPatch(FrozenWireStruct, frozen=True, kw_only=True):
    format: DiffPatchFormat
    text: str


class Icon(FrozenWireStruct, frozen=True, kw_only=True):
    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: IconTheme | None = None


class McpServerHttp(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="http"):
    type: ClassVar[Literal["http"]] = "http"
    name: str
    url: str
    headers: list[HttpHeader] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class McpServerStdio(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="stdio"):
    type: ClassVar[Literal["stdio"]] = "stdio"
    name: str
    command: str
    args: list[str] | None = None
    env: list[EnvVariable] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class NewSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[McpServer] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class NewSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PlanEntry(FrozenWireStruct, frozen=True, kw_only=True):
    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PlanItems(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="items"):
    type: ClassVar[Literal["items"]] = "items"
    plan_id: PlanId
    entries: list[PlanEntry]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PlanUpdate(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_update"):
    session_update: ClassVar[Literal["plan_update"]] = "plan_update"
    plan: PlanUpdateContent
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    prompt: list[ContentBlock]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PromptResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReplayFromStart(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="start"):
    type: ClassVar[Literal["start"]] = "start"
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    title: str
    description: str | None = None
    subject: RequestPermissionSubject | None = None
    options: list[PermissionOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ToolCallPermissionSubject(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="tool_call"):
    type: ClassVar[Literal["tool_call"]] = "tool_call"
    tool_call: ToolCallUpdate


class ResumeSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[McpServer] | None = None
    replay_from: ReplayFrom | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResumeSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    config_options: list[SessionConfigOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionConfigOption(FrozenWireStruct, frozen=True, kw_only=True):
    config_id: SessionConfigId
    name: str
    description: str | None = None
    category: SessionConfigOptionCategory | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    type: str
    current_value: SessionConfigValueId | bool | None = None
    options: SessionConfigSelectOptions | None = None

    def __post_init__(self) -> None:
        force_setattr(
            self, "options", None if self.options is None else SESSION_CONFIG_SELECT_OPTIONS_UNION.read(self.options)
        )


class SessionConfigSelectGroup(FrozenWireStruct, frozen=True, kw_only=True):
    group_id: SessionConfigGroupId
    name: str
    options: list[SessionConfigSelectOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ToolCallUpdate(FrozenWireStruct, frozen=True, kw_only=True):
    tool_call_id: ToolCallId
    title: str | None = None
    kind: ToolKind | None = None
    status: ToolCallStatus | None = None
    content: list[ToolCallContent] | None = None
    locations: list[ToolCallLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionUpdateToolCallUpdate(
    ToolCallUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"
):
    session_update: ClassVar[Literal["tool_call_update"]] = "tool_call_update"


class StateUpdate(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="state_update"):
    session_update: ClassVar[Literal["state_update"]] = "state_update"
    state: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    stop_reason: StopReason | None = None


class TerminalOutputChunk(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="terminal_output_chunk"
):
    session_update: ClassVar[Literal["terminal_output_chunk"]] = "terminal_output_chunk"
    terminal_id: TerminalId
    data: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalUpdate(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="terminal_update"):
    session_update: ClassVar[Literal["terminal_update"]] = "terminal_update"
    terminal_id: TerminalId
    command: str | None = None
    cwd: str | None = None
    output: TerminalOutput | None = None
    exit_status: TerminalExitStatus | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ToolCallContentChunk(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_content_chunk"
):
    session_update: ClassVar[Literal["tool_call_content_chunk"]] = "tool_call_content_chunk"
    tool_call_id: ToolCallId
    content: ToolCallContent
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class UserMessage(FrozenWireStruct, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message"):
    session_update: ClassVar[Literal["user_message"]] = "user_message"
    message_id: MessageId
    content: list[ContentBlock] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class UserMessageChunk(ContentChunk, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="user_message_chunk"):
    session_update: ClassVar[Literal["user_message_chunk"]] = "user_message_chunk"


class SetSessionConfigOptionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    config_id: SessionConfigId
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    value: Any
    type: str


class SetSessionConfigOptionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    config_options: list[SessionConfigOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalOutput(FrozenWireStruct, frozen=True, kw_only=True):
    data: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class UpdateSessionNotification(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    update: SessionUpdate
    meta: dict[str, Any] | None = field(default=None, name="_meta")


AvailableCommandInput: TypeAlias = TextCommandInput

ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource

McpServer: TypeAlias = McpServerHttp | McpServerStdio

PlanId: TypeAlias = str

PlanUpdateContent: TypeAlias = PlanItems

ReplayFrom: TypeAlias = ReplayFromStart

RequestPermissionSubject: TypeAlias = ToolCallPermissionSubject | CommandPermissionSubject

SESSION_CONFIG_SELECT_OPTIONS_UNION = StructUnion(
    (),
    (
        ("groupId name options", SessionConfigSelectGroup),
        ("name value", SessionConfigSelectOption),
    ),
    lists=True,
)
if TYPE_CHECKING:
    SessionConfigSelectOptions: TypeAlias = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
else:
    SessionConfigSelectOptions = Annotated[Any, SESSION_CONFIG_SELECT_OPTIONS_UNION]


SessionUpdate: TypeAlias = (
    UserMessageChunk
    | UserMessage
    | AgentMessageChunk
    | AgentMessage
    | AgentThoughtChunk
    | AgentThought
    | StateUpdate
    | ToolCallContentChunk
    | SessionUpdateToolCallUpdate
    | TerminalUpdate
    | TerminalOutputChunk
    | PlanUpdate
    | AvailableCommandsUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)

ToolCallContent: TypeAlias = Content | Diff | Terminal
