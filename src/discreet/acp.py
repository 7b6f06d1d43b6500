"""Exports the types with which agents serve editors that speak ACP (`from discreet.acp import AcpOptions, Mode`), and the typed
client: `connect`, and the structs of the protocol in `wire`. Defines nothing. Loads the client when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .agents.editor import (
    AcpOptions,
    Asker,
    AuthMethod,
    Choice,
    Command,
    CommandResult,
    ConfigOption,
    Diff,
    Editor,
    EditorUnavailableError,
    FormAnswer,
    McpTools,
    Mode,
    Permission,
    PermissionOption,
    PlanStep,
    RunningCommand,
    Terminal,
    ToolCall,
)
from .lazy import exports

if TYPE_CHECKING:
    from .dialects.acp.client import Agent, BlockingAgent, Handlers, connect, connect_blocking, wire

__all__ = [
    "AcpOptions",
    "Agent",
    "Asker",
    "AuthMethod",
    "BlockingAgent",
    "Choice",
    "Command",
    "CommandResult",
    "ConfigOption",
    "Diff",
    "Editor",
    "EditorUnavailableError",
    "FormAnswer",
    "Handlers",
    "McpTools",
    "Mode",
    "Permission",
    "PermissionOption",
    "PlanStep",
    "RunningCommand",
    "Terminal",
    "ToolCall",
    "connect",
    "connect_blocking",
    "wire",
]

_CLIENT = ("Agent", "BlockingAgent", "Handlers", "connect", "connect_blocking", "wire")

__getattr__ = exports(__name__, dict.fromkeys(_CLIENT, "dialects.acp.client"))
