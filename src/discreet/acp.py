"""What agents say to editors: `from discreet.acp import AcpOptions, Mode`. Defines nothing; imports each name on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agents.acp_options import AcpOptions, AuthMethod, Choice, Command, ConfigOption, Mode
    from .agents.editor import (
        CommandResult,
        Diff,
        Editor,
        EditorUnavailableError,
        Permission,
        PermissionOption,
        PlanStep,
        Terminal,
        ToolCall,
    )

_EXPORTS = {
    "acp_options": ("AcpOptions", "AuthMethod", "Choice", "Command", "ConfigOption", "Mode"),
    "editor": (
        "CommandResult",
        "Diff",
        "Editor",
        "EditorUnavailableError",
        "Permission",
        "PermissionOption",
        "PlanStep",
        "Terminal",
        "ToolCall",
    ),
}
_MODULE_OF = {name: module for module, names in _EXPORTS.items() for name in names}

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
    "Mode",
    "Permission",
    "PermissionOption",
    "PlanStep",
    "Terminal",
    "ToolCall",
]


def __getattr__(name: str) -> Any:  # PEP 562
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".agents.{_MODULE_OF[name]}", "discreet"), name)
    globals()[name] = value
    return value
