"""Exports the types with which agents serve editors that speak ACP: `from discreet.acp import AcpOptions, Mode`. Defines
nothing."""

from .agents.editor import (
    AcpOptions,
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

__all__ = [
    "AcpOptions",
    "AuthMethod",
    "Choice",
    "Command",
    "CommandResult",
    "ConfigOption",
    "Diff",
    "Editor",
    "EditorUnavailableError",
    "FormAnswer",
    "McpTools",
    "Mode",
    "Permission",
    "PermissionOption",
    "PlanStep",
    "RunningCommand",
    "Terminal",
    "ToolCall",
]
