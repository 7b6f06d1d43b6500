"""What agents say to editors: `from discreet.acp import AcpOptions, Mode`. Defines nothing; imports each name on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import exports

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


_OPTIONS = ("AcpOptions", "AuthMethod", "Choice", "Command", "ConfigOption", "Mode")
"""Defined in `agents.acp_options`; all others in `agents.editor`."""

__getattr__ = exports(
    __name__, {name: "agents.acp_options" if name in _OPTIONS else "agents.editor" for name in __all__}
)
