# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""The methods of servers, and the handlers of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ...client import Answer, Listener, Notification, Request, Taken

if TYPE_CHECKING:
    from .structs import (
        AuthenticateRequest,
        AuthenticateResponse,
        CancelNotification,
        CloseSessionRequest,
        CloseSessionResponse,
        CompleteElicitationNotification,
        CreateElicitationRequest,
        CreateElicitationResponse,
        CreateTerminalRequest,
        CreateTerminalResponse,
        DeleteSessionRequest,
        DeleteSessionResponse,
        KillTerminalRequest,
        KillTerminalResponse,
        ListSessionsRequest,
        ListSessionsResponse,
        LoadSessionRequest,
        LoadSessionResponse,
        LogoutRequest,
        LogoutResponse,
        NewSessionRequest,
        NewSessionResponse,
        PromptRequest,
        PromptResponse,
        ReadTextFileRequest,
        ReadTextFileResponse,
        ReleaseTerminalRequest,
        ReleaseTerminalResponse,
        RequestPermissionRequest,
        RequestPermissionResponse,
        ResumeSessionRequest,
        ResumeSessionResponse,
        SessionNotification,
        SetSessionConfigOptionRequest,
        SetSessionConfigOptionResponse,
        SetSessionModeRequest,
        SetSessionModeResponse,
        TerminalOutputRequest,
        TerminalOutputResponse,
        WaitForTerminalExitRequest,
        WaitForTerminalExitResponse,
        WriteTextFileRequest,
        WriteTextFileResponse,
    )


class Methods:
    """The methods of a server, each with the struct of its params."""

    authenticate: Request[AuthenticateRequest, AuthenticateResponse] = Request("authenticate", "AuthenticateResponse")
    logout: Request[LogoutRequest, LogoutResponse] = Request("logout", "LogoutResponse")
    session_cancel: Notification[CancelNotification] = Notification("session/cancel")
    session_close: Request[CloseSessionRequest, CloseSessionResponse] = Request("session/close", "CloseSessionResponse")
    session_delete: Request[DeleteSessionRequest, DeleteSessionResponse] = Request(
        "session/delete", "DeleteSessionResponse"
    )
    session_list: Request[ListSessionsRequest, ListSessionsResponse] = Request("session/list", "ListSessionsResponse")
    session_load: Request[LoadSessionRequest, LoadSessionResponse] = Request("session/load", "LoadSessionResponse")
    session_new: Request[NewSessionRequest, NewSessionResponse] = Request("session/new", "NewSessionResponse")
    session_prompt: Request[PromptRequest, PromptResponse] = Request("session/prompt", "PromptResponse")
    session_resume: Request[ResumeSessionRequest, ResumeSessionResponse] = Request(
        "session/resume", "ResumeSessionResponse"
    )
    session_set_config_option: Request[SetSessionConfigOptionRequest, SetSessionConfigOptionResponse] = Request(
        "session/set_config_option", "SetSessionConfigOptionResponse"
    )
    session_set_mode: Request[SetSessionModeRequest, SetSessionModeResponse] = Request(
        "session/set_mode", "SetSessionModeResponse"
    )


class Handlers(Struct, frozen=True, kw_only=True):
    """Handlers of what a server sends, each called with the struct of the params."""

    elicitation_complete: Listener[CompleteElicitationNotification] | None = None
    elicitation_create: Answer[CreateElicitationRequest, CreateElicitationResponse] | None = None
    fs_read_text_file: Answer[ReadTextFileRequest, ReadTextFileResponse] | None = None
    fs_write_text_file: Answer[WriteTextFileRequest, WriteTextFileResponse] | None = None
    session_request_permission: Answer[RequestPermissionRequest, RequestPermissionResponse] | None = None
    session_update: Listener[SessionNotification] | None = None
    terminal_create: Answer[CreateTerminalRequest, CreateTerminalResponse] | None = None
    terminal_kill: Answer[KillTerminalRequest, KillTerminalResponse] | None = None
    terminal_output: Answer[TerminalOutputRequest, TerminalOutputResponse] | None = None
    terminal_release: Answer[ReleaseTerminalRequest, ReleaseTerminalResponse] | None = None
    terminal_wait_for_exit: Answer[WaitForTerminalExitRequest, WaitForTerminalExitResponse] | None = None


TAKEN: Final = {
    "elicitation_complete": Taken("elicitation/complete", "CompleteElicitationNotification", answers=False),
    "elicitation_create": Taken("elicitation/create", "CreateElicitationRequest", answers=True),
    "fs_read_text_file": Taken("fs/read_text_file", "ReadTextFileRequest", answers=True),
    "fs_write_text_file": Taken("fs/write_text_file", "WriteTextFileRequest", answers=True),
    "session_request_permission": Taken("session/request_permission", "RequestPermissionRequest", answers=True),
    "session_update": Taken("session/update", "SessionNotification", answers=False),
    "terminal_create": Taken("terminal/create", "CreateTerminalRequest", answers=True),
    "terminal_kill": Taken("terminal/kill", "KillTerminalRequest", answers=True),
    "terminal_output": Taken("terminal/output", "TerminalOutputRequest", answers=True),
    "terminal_release": Taken("terminal/release", "ReleaseTerminalRequest", answers=True),
    "terminal_wait_for_exit": Taken("terminal/wait_for_exit", "WaitForTerminalExitRequest", answers=True),
}
"""The message of each handler."""
