# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""The session: its begin, registrations, progress, messages, and the files, folders and configuration of the workspace."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from ...structs import OpenInt, OpenStr, WireStruct
from .base import ProgressToken, Range, WorkspaceFolder
from .edits import WorkspaceEdit

__all__ = [
    "ApplyWorkspaceEditParams", "ApplyWorkspaceEditResult", "CancelParams", "ClientInfo", "ConfigurationItem",
    "ConfigurationParams", "CreateFilesParams", "DeleteFilesParams", "DidChangeConfigurationParams",
    "DidChangeWatchedFilesParams", "DidChangeWorkspaceFoldersParams", "ErrorCodes", "FileChangeType", "FileCreate",
    "FileDelete", "FileEvent", "FileRename", "InitializeParams", "InitializedParams", "LSPErrorCodes",
    "LogMessageParams", "LogTraceParams", "MessageActionItem", "MessageType", "ProgressParams", "Registration",
    "RegistrationParams", "RenameFilesParams", "SetTraceParams", "ShowDocumentParams", "ShowDocumentResult",
    "ShowMessageParams", "ShowMessageRequestParams", "TextDocumentContentParams",
    "TextDocumentContentRefreshParams", "TextDocumentContentResult", "TraceValue", "Unregistration",
    "UnregistrationParams", "WorkDoneProgressBegin", "WorkDoneProgressCancelParams", "WorkDoneProgressCreateParams",
    "WorkDoneProgressEnd", "WorkDoneProgressReport", "WorkspaceEditMetadata", "WorkspaceFoldersChangeEvent",
    "WorkspaceFoldersInitializeParams",
]  # fmt: skip


class ErrorCodes(OpenInt):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    SERVER_NOT_INITIALIZED = -32002
    UNKNOWN_ERROR_CODE = -32001


class FileChangeType(OpenInt):
    CREATED = 1
    CHANGED = 2
    DELETED = 3


class LSPErrorCodes(OpenInt):
    REQUEST_FAILED = -32803
    SERVER_CANCELLED = -32802
    CONTENT_MODIFIED = -32801
    REQUEST_CANCELLED = -32800


class MessageType(OpenInt):
    ERROR = 1
    WARNING = 2
    INFO = 3
    LOG = 4
    DEBUG = 5


class TraceValue(OpenStr):
    OFF = "off"
    MESSAGES = "messages"
    VERBOSE = "verbose"


class ApplyWorkspaceEditParams(WireStruct, kw_only=True):
    label: str | None = None
    edit: WorkspaceEdit
    metadata: WorkspaceEditMetadata | None = None


class ApplyWorkspaceEditResult(WireStruct, kw_only=True):
    applied: bool
    failure_reason: str | None = None
    failed_change: int | None = None


class CancelParams(WireStruct, kw_only=True):
    id: int | str


class ClientInfo(WireStruct, kw_only=True):
    name: str
    version: str | None = None


class ConfigurationItem(WireStruct, kw_only=True):
    scope_uri: str | None = None
    section: str | None = None


class ConfigurationParams(WireStruct, kw_only=True):
    items: list[ConfigurationItem]


class CreateFilesParams(WireStruct, kw_only=True):
    files: list[FileCreate]


class DeleteFilesParams(WireStruct, kw_only=True):
    files: list[FileDelete]


class DidChangeConfigurationParams(WireStruct, kw_only=True):
    settings: Any


class DidChangeWatchedFilesParams(WireStruct, kw_only=True):
    changes: list[FileEvent]


class DidChangeWorkspaceFoldersParams(WireStruct, kw_only=True):
    event: WorkspaceFoldersChangeEvent


class FileCreate(WireStruct, kw_only=True):
    uri: str


class FileDelete(WireStruct, kw_only=True):
    uri: str


class FileEvent(WireStruct, kw_only=True):
    uri: str
    type: FileChangeType


class FileRename(WireStruct, kw_only=True):
    old_uri: str
    new_uri: str


class InitializeParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    process_id: int | None = None
    client_info: ClientInfo | None = None
    locale: str | None = None
    root_path: str | None | UnsetType = UNSET
    root_uri: str | None = None
    capabilities: dict[str, Any]
    initialization_options: Any = None
    trace: TraceValue | None = None
    workspace_folders: list[WorkspaceFolder] | None | UnsetType = UNSET


class InitializedParams(WireStruct, kw_only=True):
    pass


class LogMessageParams(WireStruct, kw_only=True):
    type: MessageType
    message: str


class LogTraceParams(WireStruct, kw_only=True):
    message: str
    verbose: str | None = None


class MessageActionItem(WireStruct, kw_only=True):
    title: str


class ProgressParams(WireStruct, kw_only=True):
    token: ProgressToken
    value: Any


class Registration(WireStruct, kw_only=True):
    id: str
    method: str
    register_options: Any = None


class RegistrationParams(WireStruct, kw_only=True):
    registrations: list[Registration]


class RenameFilesParams(WireStruct, kw_only=True):
    files: list[FileRename]


class SetTraceParams(WireStruct, kw_only=True):
    value: TraceValue


class ShowDocumentParams(WireStruct, kw_only=True):
    uri: str
    external: bool | None = None
    take_focus: bool | None = None
    selection: Range | None = None


class ShowDocumentResult(WireStruct, kw_only=True):
    success: bool


class ShowMessageParams(WireStruct, kw_only=True):
    type: MessageType
    message: str


class ShowMessageRequestParams(WireStruct, kw_only=True):
    type: MessageType
    message: str
    actions: list[MessageActionItem] | None = None


class TextDocumentContentParams(WireStruct, kw_only=True):
    uri: str


class TextDocumentContentRefreshParams(WireStruct, kw_only=True):
    uri: str


class TextDocumentContentResult(WireStruct, kw_only=True):
    text: str


class Unregistration(WireStruct, kw_only=True):
    id: str
    method: str


class UnregistrationParams(WireStruct, kw_only=True):
    unregisterations: list[Unregistration]


class WorkDoneProgressBegin(WireStruct, kw_only=True, tag_field="kind", tag="begin"):
    kind: ClassVar[Literal["begin"]] = "begin"
    title: str
    cancellable: bool | None = None
    message: str | None = None
    percentage: int | None = None


class WorkDoneProgressCancelParams(WireStruct, kw_only=True):
    token: ProgressToken


class WorkDoneProgressCreateParams(WireStruct, kw_only=True):
    token: ProgressToken


class WorkDoneProgressEnd(WireStruct, kw_only=True, tag_field="kind", tag="end"):
    kind: ClassVar[Literal["end"]] = "end"
    message: str | None = None


class WorkDoneProgressReport(WireStruct, kw_only=True, tag_field="kind", tag="report"):
    kind: ClassVar[Literal["report"]] = "report"
    cancellable: bool | None = None
    message: str | None = None
    percentage: int | None = None


class WorkspaceEditMetadata(WireStruct, kw_only=True):
    is_refactoring: bool | None = None


class WorkspaceFoldersChangeEvent(WireStruct, kw_only=True):
    added: list[WorkspaceFolder]
    removed: list[WorkspaceFolder]


class WorkspaceFoldersInitializeParams(WireStruct, kw_only=True):
    workspace_folders: list[WorkspaceFolder] | None | UnsetType = UNSET
