"""A session of MCP's own Python SDK with the daemon, in both eras. Run by whichever Python has mcp.

The argument is the mode: `legacy`, or a revision. A second one is the URL of a server that runs already.
"""

import os
import sys
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters

ARGUMENTS = ["serve", "./session_app.py:app", "--dialect", "mcp"]
STARTED = StdioServerParameters(command="discreet", args=ARGUMENTS, env=dict(os.environ))
SERVER = sys.argv[2] if len(sys.argv) > 2 else STARTED
SLOW = 0.2
"""Seconds after which the client gives up, and cancels."""


def say(name: str, what: object) -> None:
    print(f"{name}={what}", flush=True)


async def main(mode: str) -> None:
    told: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    async with Client(SERVER, mode=mode) as client:
        say("revision", client.protocol_version)
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        say("tool", tools["session_add"].description)
        added = await client.call_tool("session_add", {"a": 2, "b": 3})
        say("add", (added.structured_content, added.is_error))
        refused = await client.call_tool("session_refuse", {"why": "no"})
        say("refuse", (refused.structured_content["code"], refused.is_error))
        wrong = await client.call_tool("session_add", {"a": "two", "b": 3})
        say("wrong", (wrong.structured_content["code"], wrong.is_error))
        try:
            await client.call_tool("session_nothing", {})
        except MCPError as error:
            say("unknown", error.error.code)
        await client.call_tool("session_count", {"to": 3}, progress_callback=progress)
        say("progress", told)
        try:
            await client.call_tool("session_wait", {}, read_timeout_seconds=SLOW)
        except MCPError:
            say("cancelled", (await client.call_tool("session_add", {"a": 1, "b": 1})).structured_content)


anyio.run(main, sys.argv[1])
