"""`tools/list` and `tools/call`."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from .asking.calls import AskingParams, forward
from .generated import legacy
from .results import TTL_MS
from .revision import Params, unknown
from .state import McpState
from .tool_calls import ToolRendering
from .tools import tool_name, tool_page


class ListParams(Params, frozen=True, kw_only=True):
    """The params of every list."""

    cursor: str | None = None


class CallParams(AskingParams, frozen=True, kw_only=True):
    name: str
    arguments: Raw = Raw(b"{}")


def add_tools(service: Service, state: McpState) -> None:
    """Add the methods to a service."""

    @service.query("tools/list", inline=True)
    def list_tools(ctx: Context, params: ListParams, /) -> Raw:
        """List the tools that the caller may call."""
        names = (tool_name(spec.name) for spec in state.visible(ctx))
        tools = [tool for name in names if (tool := state.tools.get(name)) is not None]
        shown, following = tool_page(tools, params.cursor)
        result = legacy.ListToolsResult(tools=shown, next_cursor=following)
        return state.write(result, params.meta, ttl_ms=TTL_MS)

    @service.query("tools/call", inline=True)
    def call_tool(params: CallParams, /) -> Any:  # Any: a forward
        """Call a tool."""
        tool = state.tools.get(params.name)
        if tool is None:
            raise unknown("tool", params.name, param="name")
        rendering = ToolRendering(tool, state.protocol(params.meta), state.server, state.dialect)
        return forward(state, tool.spec.name, tool.arguments(params.arguments), "arguments", rendering, params)
