"""A server made with MCP's own SDK, for `test_foreign_servers`. Run by whichever Python has it."""

import os
import sys

import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, Tool

NAMES = ("echo", "ask", "wait", "cancelled", "chatter", "die")
cancelled: list[object] = []


async def list_tools(ctx, params) -> object:
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in NAMES])


async def call_tool(ctx, params) -> object:
    given = params.arguments or {}
    match params.name:
        case "ask":
            await ctx.session.send_ping()
        case "wait":
            try:
                await anyio.sleep(3600)
            except anyio.get_cancelled_exc_class():
                cancelled.append(params)
                raise
        case "cancelled":
            given = {"count": len(cancelled)}
        case "chatter":
            sys.stderr.write("chatter\n" * given["lines"])
        case "die":
            os._exit(7)
    return CallToolResult(content=[], structured_content=given)


async def main() -> object:
    server = Server("peer", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


anyio.run(main)
