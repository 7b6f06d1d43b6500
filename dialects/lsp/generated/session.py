# Written by tools/protocols from the meta model of LSP 3.17.0. Do not edit.
"""The begin of a session, registrations, progress, cancellation and traces."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from ...structs import OpenInt, OpenStr, WireStruct
from .base import ProgressToken, WorkspaceFolder

__all__ = [
    "CancelParams", "ClientInfo", "ErrorCodes", "InitializeParams", "InitializedParams", "LSPErrorCodes",
    "LogTraceParams", "ProgressParams", "Registration", "RegistrationParams", "SetTraceParams", "TraceValue",
    "Unregistration", "UnregistrationParams", "WorkDoneProgressBegin", "WorkDoneProgressCancelParams",
    "WorkDoneProgressCreateParams", "WorkDoneProgressEnd", "WorkDoneProgressReport",
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


class LSPErrorCodes(OpenInt):
    REQUEST_FAILED = -32803
    SERVER_CANCELLED = -32802
    CONTENT_MODIFIED = -32801
    REQUEST_CANCELLED = -32800


class TraceValue(OpenStr):
    OFF = "off"
    MESSAGES = "messages"
    VERBOSE = "verbose"


class CancelParams(WireStruct, kw_only=True):
    id: int | str


class ClientInfo(WireStruct, kw_only=True):
    name: str
    version: str | None = None


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


class LogTraceParams(WireStruct, kw_only=True):
    message: str
    verbose: str | None = None


class ProgressParams(WireStruct, kw_only=True):
    token: ProgressToken
    value: Any


class Registration(WireStruct, kw_only=True):
    id: str
    method: str
    register_options: Any = None


class RegistrationParams(WireStruct, kw_only=True):
    registrations: list[Registration]


class SetTraceParams(WireStruct, kw_only=True):
    value: TraceValue


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


class WorkspaceFoldersInitializeParams(WireStruct, kw_only=True):
    workspace_folders: list[WorkspaceFolder] | None | UnsetType = UNSET
