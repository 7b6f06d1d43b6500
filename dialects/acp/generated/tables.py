# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""The methods and error codes. Plain data, no structs. Types are names of structs."""

from __future__ import annotations

from typing import Final, Literal, NotRequired, TypedDict


class Method(TypedDict):
    direction: Literal["clientToAgent", "agentToClient", "both"]
    kind: Literal["request", "notification"]
    params: str
    result: NotRequired[str]


PROTOCOL_VERSION: Final = 1

METHODS: Final[dict[str, Method]] = {
    "$/cancel_request": {"direction": "both", "kind": "notification", "params": "CancelRequestNotification"},
    "authenticate": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "AuthenticateRequest",
        "result": "AuthenticateResponse",
    },
    "elicitation/complete": {
        "direction": "agentToClient",
        "kind": "notification",
        "params": "CompleteElicitationNotification",
    },
    "elicitation/create": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "CreateElicitationRequest",
        "result": "CreateElicitationResponse",
    },
    "fs/read_text_file": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "ReadTextFileRequest",
        "result": "ReadTextFileResponse",
    },
    "fs/write_text_file": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "WriteTextFileRequest",
        "result": "WriteTextFileResponse",
    },
    "initialize": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "InitializeRequest",
        "result": "InitializeResponse",
    },
    "logout": {"direction": "clientToAgent", "kind": "request", "params": "LogoutRequest", "result": "LogoutResponse"},
    "session/cancel": {"direction": "clientToAgent", "kind": "notification", "params": "CancelNotification"},
    "session/close": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "CloseSessionRequest",
        "result": "CloseSessionResponse",
    },
    "session/delete": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "DeleteSessionRequest",
        "result": "DeleteSessionResponse",
    },
    "session/list": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "ListSessionsRequest",
        "result": "ListSessionsResponse",
    },
    "session/load": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "LoadSessionRequest",
        "result": "LoadSessionResponse",
    },
    "session/new": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "NewSessionRequest",
        "result": "NewSessionResponse",
    },
    "session/prompt": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "PromptRequest",
        "result": "PromptResponse",
    },
    "session/request_permission": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "RequestPermissionRequest",
        "result": "RequestPermissionResponse",
    },
    "session/resume": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "ResumeSessionRequest",
        "result": "ResumeSessionResponse",
    },
    "session/set_config_option": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "SetSessionConfigOptionRequest",
        "result": "SetSessionConfigOptionResponse",
    },
    "session/set_mode": {
        "direction": "clientToAgent",
        "kind": "request",
        "params": "SetSessionModeRequest",
        "result": "SetSessionModeResponse",
    },
    "session/update": {"direction": "agentToClient", "kind": "notification", "params": "SessionNotification"},
    "terminal/create": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "CreateTerminalRequest",
        "result": "CreateTerminalResponse",
    },
    "terminal/kill": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "KillTerminalRequest",
        "result": "KillTerminalResponse",
    },
    "terminal/output": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "TerminalOutputRequest",
        "result": "TerminalOutputResponse",
    },
    "terminal/release": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "ReleaseTerminalRequest",
        "result": "ReleaseTerminalResponse",
    },
    "terminal/wait_for_exit": {
        "direction": "agentToClient",
        "kind": "request",
        "params": "WaitForTerminalExitRequest",
        "result": "WaitForTerminalExitResponse",
    },
}

ERROR_CODES: Final[dict[str, int]] = {
    "ParseError": -32700,
    "InvalidRequest": -32600,
    "MethodNotFound": -32601,
    "InvalidParams": -32602,
    "InternalError": -32603,
    "RequestCancelled": -32800,
    "AuthenticationRequired": -32000,
    "ResourceNotFound": -32002,
}
