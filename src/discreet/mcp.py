"""Exports the types that handlers return to clients of MCP beside plain values (`mcp.ImageContent` after `from discreet import
mcp`), and the typed client: `connect` and the params and results of all methods.

A tool may return a content class, a list of them, or a `CallToolResult`; a resource its contents; a prompt messages. Defines
nothing. Loads a module when one of its names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dialects.mcp.generated.tables import MESSAGES as _MESSAGES
from .lazy import exports

if TYPE_CHECKING:
    from .daemon.declarations import Ask, AskUrl, Roots, Sample
    from .dialects.mcp.client import BlockingServer, Handlers, Server, connect, connect_blocking
    from .dialects.mcp.generated.apps import (
        McpUiResourceCsp,
        McpUiResourceMeta,
        McpUiResourcePermissions,
        McpUiToolMeta,
    )
    from .dialects.mcp.generated.messages import *  # noqa: F403
    from .dialects.mcp.generated.structs import (
        Annotations,
        AudioContent,
        BlobResourceContents,
        CallToolResult,
        CreateMessageResult,
        EmbeddedResource,
        GetPromptResult,
        Icon,
        ImageContent,
        PromptMessage,
        ResourceLink,
        Root,
        SamplingMessage,
        TextContent,
        TextResourceContents,
        ToolAnnotations,
    )
    from .dialects.mcp.options import PromptOptions, ResourceOptions, ToolOptions

__all__ = [
    "Annotations",
    "Ask",
    "AskUrl",
    "AudioContent",
    "BlobResourceContents",
    "BlockingServer",
    "CallToolResult",
    "CreateMessageResult",
    "EmbeddedResource",
    "GetPromptResult",
    "Handlers",
    "Icon",
    "ImageContent",
    "McpUiResourceCsp",
    "McpUiResourceMeta",
    "McpUiResourcePermissions",
    "McpUiToolMeta",
    "PromptMessage",
    "PromptOptions",
    "ResourceLink",
    "ResourceOptions",
    "Root",
    "Roots",
    "Sample",
    "SamplingMessage",
    "Server",
    "TextContent",
    "TextResourceContents",
    "ToolAnnotations",
    "ToolOptions",
    "connect",
    "connect_blocking",
]

_HOMES = {
    "daemon.declarations": ("Ask", "AskUrl", "Roots", "Sample"),
    "dialects.mcp.client": ("BlockingServer", "Handlers", "Server", "connect", "connect_blocking"),
    "dialects.mcp.generated.apps": (
        "McpUiResourceCsp",
        "McpUiResourceMeta",
        "McpUiResourcePermissions",
        "McpUiToolMeta",
    ),
    "dialects.mcp.generated.messages": tuple(_MESSAGES),
    "dialects.mcp.options": ("PromptOptions", "ResourceOptions", "ToolOptions"),
}
"""Where the classes are defined; all others in `dialects.mcp.generated.structs`."""


__getattr__ = exports(
    __name__,
    dict.fromkeys(__all__, "dialects.mcp.generated.structs")
    | {name: home for home, names in _HOMES.items() for name in names},
)
