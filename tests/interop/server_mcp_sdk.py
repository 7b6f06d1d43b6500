"""A server of the official SDK: by stdio, or with a port by Streamable HTTP."""

import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("sdk", instructions="For tests.", version="1.2")


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
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
