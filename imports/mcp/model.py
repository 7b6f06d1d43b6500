"""Describes how an operation of an MCP server is called, where the server is, and the terms agreed with it. Structs only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from ..model import Imported, ImportedOperation

McpMethod: TypeAlias = Literal[
    "tools/call", "resources/read", "resources/list", "resources/templates/list", "prompts/get", "completion/complete"
]
Era: TypeAlias = Literal["legacy", "modern"]
"""Whether a server begins with `initialize` (to 2025-11-25), or takes each request for itself (since 2026-07-28)."""


LEGACY_REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions of MCP with a handshake that are spoken here, oldest first."""

MODERN_REVISION: Final = "2026-07-28"
"""The one without a handshake."""

MAX_REPLY_BYTES: Final = 10 * 1024 * 1024
"""How large the answer to a request may be."""


class Agreed(Struct, frozen=True):
    """The terms that client and server have agreed on. `name`, `version` and `instructions` are the server's own words."""

    revision: str
    capabilities: Mapping[str, Any] = {}  # Any: JSON
    name: str = ""
    version: str = ""
    instructions: str = ""

    @property
    def modern(self) -> bool:
        return self.revision == MODERN_REVISION

    @property
    def tells_changes(self) -> bool:
        """Whether the server tells when any of its lists has changed."""
        return any(map(self.changes, self.capabilities))

    @property
    def updates_resources(self) -> bool:
        """Whether the server tells when a resource has changed to which one has subscribed."""
        capability = self.capabilities.get("resources")
        return isinstance(capability, dict) and capability.get("subscribe") is True

    def changes(self, kind: str) -> bool:
        """Whether the server tells when this list has changed."""
        capability = self.capabilities.get(kind)
        return isinstance(capability, dict) and capability.get("listChanged") is True


Item: TypeAlias = dict[str, Any]  # Any: JSON


class Listing(Struct, frozen=True):
    """A server's lists, as it sent them."""

    tools: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()


class McpOperation(ImportedOperation, frozen=True, kw_only=True):
    """`target` is the name of the tool or the prompt, or the template of the URI. With `structured` the result is what
    the tool calls structured content. `mirrored` are the params that HTTP repeats in headers: their paths by the names of
    these headers. `ui` is what MCP Apps says of a tool: its page, and who may call it.
    """

    method: McpMethod
    target: str = ""
    structured: bool = False
    mirrored: Mapping[str, tuple[str, ...]] = {}
    ui: Mapping[str, Any] = {}


class McpImport(Imported, frozen=True, kw_only=True):
    """The operations of an MCP server. `era` is the one that it spoke, for its next start. `resources`, `templates` and `prompts`
    are the entries of its lists, as JSON texts, the prompts by their names. With `has_apps` it has pages of MCP Apps.
    """

    operations: tuple[McpOperation, ...] = ()
    era: Era = "modern"
    resources: tuple[bytes, ...] = ()
    templates: tuple[bytes, ...] = ()
    prompts: Mapping[str, bytes] = {}
    has_apps: bool = False
