"""Answers `tools/list` and `tools/call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw

from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from .asking import AskingParams, forward
from .generated.structs import ListToolsResult
from .generated.structs import Tool as ListedTool
from .revision import TTL_MS, Params, unknown
from .state import McpState
from .tool_results import ToolResult, write
from .tools import Tool, written_page

if TYPE_CHECKING:
    from .tool_search import ToolSearch


class ListParams(Params, frozen=True, kw_only=True):
    """The params of every list."""

    cursor: str | None = None


class CallParams(AskingParams, frozen=True, kw_only=True):
    name: str
    arguments: Raw = Raw(b"{}")


def add_tools(service: Service, state: McpState) -> None:
    """Add the methods to a service."""
    search: ToolSearch | None = None
    if state.host.settings.tool_search:
        from .tool_search import ToolSearch  # late: few services have so many tools

        search = ToolSearch(service, state)

    @service.query("tools/list", inline=True)
    def list_tools(ctx: Context, params: ListParams, /) -> Raw:
        """List the tools that the caller may call, or the two that find and call them."""
        shows_apps = state.shows_apps(state.protocol(params.meta))
        tools = [tool for tool in state.visible_tools(ctx) if shows_apps or tool.is_for_models]
        if search is None:
            shown, following = written_page(tools, params.cursor, _described)
        else:  # a host finds the page of a tool in the list
            of_apps = [tool.described for tool in tools if shows_apps and tool.ui is not None]
            shown, following = [*search.listed(len(tools)), *of_apps], None
        result = ListToolsResult(tools=shown, next_cursor=following)
        return write(state, result, params.meta, ttl_ms=TTL_MS)

    @service.query("tools/call", inline=True)
    def call_tool(params: CallParams, /) -> Any:  # Any: a forward
        """Call a tool."""
        name, arguments, where = params.name, params.arguments, "arguments"
        tool = state.tools.get(name)
        if search is not None:
            tool, name, arguments, where = search.meant(name, arguments)
        if tool is None:
            raise unknown("tool", name, param="name" if where == "arguments" else "arguments.name")
        protocol = state.protocol(params.meta)
        result = ToolResult(tool, protocol, state.server)
        given = tool.arguments(arguments)
        return forward(state, tool.spec.name, given, where, params, protocol, result.write, result.tell)


def _described(tool: Tool) -> ListedTool:
    return tool.described
