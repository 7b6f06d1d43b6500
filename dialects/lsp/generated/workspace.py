# Written by tools/protocols from the meta model of LSP 3.17.0. Do not edit.
"""Files, folders and configuration of the workspace."""

from __future__ import annotations

from typing import Any

from ...structs import OpenInt, WireStruct
from .base import WorkspaceFolder
from .edits import WorkspaceEdit

__all__ = [
    "ApplyWorkspaceEditParams", "ApplyWorkspaceEditResult", "ConfigurationItem", "ConfigurationParams",
    "CreateFilesParams", "DeleteFilesParams", "DidChangeConfigurationParams", "DidChangeWatchedFilesParams",
    "DidChangeWorkspaceFoldersParams", "FileChangeType", "FileCreate", "FileDelete", "FileEvent", "FileRename",
    "RenameFilesParams", "TextDocumentContentParams", "TextDocumentContentRefreshParams",
    "TextDocumentContentResult", "WorkspaceEditMetadata", "WorkspaceFoldersChangeEvent",
]  # fmt: skip


class FileChangeType(OpenInt):
    CREATED = 1
    CHANGED = 2
    DELETED = 3


class ApplyWorkspaceEditParams(WireStruct, kw_only=True):
    label: str | None = None
    edit: WorkspaceEdit
    metadata: WorkspaceEditMetadata | None = None


class ApplyWorkspaceEditResult(WireStruct, kw_only=True):
    applied: bool
    failure_reason: str | None = None
    failed_change: int | None = None


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


class RenameFilesParams(WireStruct, kw_only=True):
    files: list[FileRename]


class TextDocumentContentParams(WireStruct, kw_only=True):
    uri: str


class TextDocumentContentRefreshParams(WireStruct, kw_only=True):
    uri: str


class TextDocumentContentResult(WireStruct, kw_only=True):
    text: str


class WorkspaceEditMetadata(WireStruct, kw_only=True):
    is_refactoring: bool | None = None


class WorkspaceFoldersChangeEvent(WireStruct, kw_only=True):
    added: list[WorkspaceFolder]
    removed: list[WorkspaceFolder]
