# Written by tools/protocols from the schema of MCP Apps 2026-01-26. Do not edit.
"""The metadata of tools and resources in MCP Apps."""

from __future__ import annotations

from typing import Any, Literal

from ...structs import FrozenWireStruct

__all__ = [
    "McpUiResourceCsp", "McpUiResourceMeta", "McpUiResourcePermissions", "McpUiToolMeta",
]  # fmt: skip


class McpUiResourceCsp(FrozenWireStruct, frozen=True, kw_only=True):
    connect_domains: list[str] | None = None
    resource_domains: list[str] | None = None
    frame_domains: list[str] | None = None
    base_uri_domains: list[str] | None = None


class McpUiResourceMeta(FrozenWireStruct, frozen=True, kw_only=True):
    csp: McpUiResourceCsp | None = None
    permissions: McpUiResourcePermissions | None = None
    domain: str | None = None
    prefers_border: bool | None = None


class McpUiResourcePermissions(FrozenWireStruct, frozen=True, kw_only=True):
    camera: dict[str, Any] | None = None
    microphone: dict[str, Any] | None = None
    geolocation: dict[str, Any] | None = None
    clipboard_write: dict[str, Any] | None = None


class McpUiToolMeta(FrozenWireStruct, frozen=True, kw_only=True):
    resource_uri: str | None = None
    visibility: list[Literal["model", "app"]] | None = None
