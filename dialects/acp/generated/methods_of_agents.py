# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""What a client asks of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, StructUnion
from .prompts import SessionConfigId, SessionConfigOption, SessionConfigValueId, SessionId, SessionModeId

__all__ = [
    "AgentAuthCapabilities", "AgentCapabilities", "AuthCapabilities", "AuthMethod", "AuthMethodAgent",
    "AuthMethodId", "AuthMethodTerminal", "AuthenticateRequest", "AuthenticateResponse",
    "BooleanConfigOptionCapabilities", "ClientCapabilities", "ClientSessionCapabilities", "CloseSessionRequest",
    "CloseSessionResponse", "DeleteSessionRequest", "DeleteSessionResponse", "ElicitationCapabilities",
    "ElicitationFormCapabilities", "ElicitationUrlCapabilities", "EnvVariable", "FileSystemCapabilities",
    "HttpHeader", "Implementation", "InitializeRequest", "InitializeResponse", "ListSessionsRequest",
    "ListSessionsResponse", "LoadSessionRequest", "LoadSessionResponse", "LogoutCapabilities", "LogoutRequest",
    "LogoutResponse", "McpCapabilities", "McpServer", "McpServerHttp", "McpServerSse", "McpServerStdio",
    "NewSessionRequest", "NewSessionResponse", "PromptCapabilities", "ProtocolVersion", "ResumeSessionRequest",
    "ResumeSessionResponse", "SessionAdditionalDirectoriesCapabilities", "SessionCapabilities",
    "SessionCloseCapabilities", "SessionConfigOptionsCapabilities", "SessionDeleteCapabilities", "SessionInfo",
    "SessionListCapabilities", "SessionMode", "SessionModeState", "SessionResumeCapabilities",
    "SetSessionConfigOptionRequest", "SetSessionConfigOptionResponse", "SetSessionModeRequest",
    "SetSessionModeResponse",
]  # fmt: skip


class AgentAuthCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    logout: LogoutCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AgentCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    load_session: bool | None = None
    prompt_capabilities: PromptCapabilities | None = None
    mcp_capabilities: McpCapabilities | None = None
    session_capabilities: SessionCapabilities | None = None
    auth: AgentAuthCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    terminal: bool | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthMethodAgent(FrozenWireStruct, frozen=True, kw_only=True):
    id: AuthMethodId
    name: str
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthMethodTerminal(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="terminal"):
    type: ClassVar[Literal["terminal"]] = "terminal"
    id: AuthMethodId
    name: str
    description: str | None = None
    args: list[str] | None = None
    env: dict[str, str] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthenticateRequest(FrozenWireStruct, frozen=True, kw_only=True):
    method_id: AuthMethodId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class AuthenticateResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class BooleanConfigOptionCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ClientCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    fs: FileSystemCapabilities | None = None
    terminal: bool | None = None
    session: ClientSessionCapabilities | None = None
    auth: AuthCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ClientSessionCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    config_options: SessionConfigOptionsCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CloseSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CloseSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class DeleteSessionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class DeleteSessionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ElicitationCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ElicitationFormCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ElicitationUrlCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EnvVariable(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class FileSystemCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    read_text_file: bool | None = None
    write_text_file: bool | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class HttpHeader(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    value: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class Implementation(FrozenWireStruct, frozen=True, kw_only=True):
    name: str
    title: str | None = None
    version: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class InitializeRequest(FrozenWireStruct, frozen=True, kw_only=True):
    protocol_version: ProtocolVersion
    client_capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class InitializeResponse(FrozenWireStruct, frozen=True, kw_only=True):
    protocol_version: ProtocolVersion
    agent_capabilities: AgentCapabilities | None = None
    auth_methods: list[AuthMethod] | None = None
    agent_info: Implementation | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "auth_methods",
            None if self.auth_methods is None else [AUTH_METHOD_UNION.read(item) for item in self.auth_methods],
        )


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


class LogoutCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class LogoutRequest(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class LogoutResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class McpCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    http: bool | None = None
    sse: bool | None = None
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


class PromptCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    image: bool | None = None
    audio: bool | None = None
    embedded_context: bool | None = None
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


class SessionAdditionalDirectoriesCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    list: SessionListCapabilities | None = None
    delete: SessionDeleteCapabilities | None = None
    additional_directories: SessionAdditionalDirectoriesCapabilities | None = None
    resume: SessionResumeCapabilities | None = None
    close: SessionCloseCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionCloseCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionConfigOptionsCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    boolean: BooleanConfigOptionCapabilities | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionDeleteCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionInfo(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    cwd: str
    additional_directories: list[str] | None = None
    title: str | None = None
    updated_at: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class SessionListCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
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


class SessionResumeCapabilities(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


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


AUTH_METHOD_UNION = StructUnion(
    (),
    (
        ("id name type", AuthMethodTerminal),
        ("id name", AuthMethodAgent),
    ),
    lists=False,
)
if TYPE_CHECKING:
    AuthMethod: TypeAlias = AuthMethodTerminal | AuthMethodAgent
else:
    AuthMethod = Annotated[Any, AUTH_METHOD_UNION]


AuthMethodId: TypeAlias = str

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


ProtocolVersion: TypeAlias = int
