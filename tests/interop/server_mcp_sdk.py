"""A server of the official SDK, of either major version: by stdio, or with a port by Streamable HTTP."""

import sys
from typing import Any

from mcp.types import ToolAnnotations
from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:  # before 2
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 0
OLD = MCPServer.__name__ == "FastMCP"
options: Any = {"port": PORT} if OLD and PORT else {}
server: Any = MCPServer("sdk", instructions="For tests.", **options)


class Point(BaseModel):
    x: int
    y: int


class Path(BaseModel):
    points: list[Point]
    next: "Path | None" = None


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False), description="Measure a path.")
def length(path: Path) -> int:
    return len(path.points) + (length(path.next) if path.next else 0)


@server.tool(annotations=ToolAnnotations(idempotentHint=True))
def fail(reason: str) -> Point:
    raise ValueError(reason)


@server.tool(structured_output=False)
async def steps(count: int, ctx: Context) -> str:
    for number in range(count):
        await ctx.report_progress(number + 1, count, f"step {number + 1}")
    return "done"


@server.tool(structured_output=False)
async def add(name: str, ctx: Context) -> str:
    server.add_tool(lambda: name, name=name, description="Added.")
    if not OLD:
        await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "added"


@server.resource("text://{name}")
def text(name: str) -> str:
    return f"The text {name}."


@server.prompt()
def ask(about: str) -> str:
    return f"What about {about}?"


if __name__ == "__main__":
    if PORT:
        server.run("streamable-http", **({} if OLD else {"port": PORT}))
    else:
        server.run()
