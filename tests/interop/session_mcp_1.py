"""A session of MCP's own Python SDK, version 1, with the shop of the examples. Run by whichever Python has it.

The argument, if there is one, is the URL of a server that runs already.
"""

import os
import sys

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

SERVER = StdioServerParameters(
    command="discreet", args=["serve", "./shop.py:shop", "--dialect", "mcp"], env=dict(os.environ)
)


def say(name: str, what: object) -> None:
    print(f"{name}={what}", flush=True)


async def accept(context: object, params: object) -> object:
    return types.ElicitResult(action="accept", content={"sure": True})


async def main() -> None:
    told: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    asking = {"elicitation_callback": accept} if hasattr(types, "ElicitResult") else {}
    opened = streamablehttp_client(sys.argv[1]) if len(sys.argv) > 1 else stdio_client(SERVER)
    async with opened as streams, ClientSession(*streams[:2], **asking) as session:
        hello = await session.initialize()
        say("hello", f"{hello.serverInfo.name} {hello.protocolVersion}")
        say("tools", " ".join(tool.name for tool in (await session.list_tools()).tools))
        found = await session.call_tool("shop_look", {"name": "pen"})
        say("look", f"{found.isError} {found.content[0].text}")
        unknown = await session.call_tool("shop_look", {"name": "lamp"})
        say("unknown", f"{unknown.isError} {unknown.content[0].text.splitlines()[0]}")
        try:
            await session.call_tool("shop_steal", {})
        except McpError as error:
            say("steal", error.error.code)
        ordered = await session.call_tool("shop_order", {"name": "pen", "amount": 2}, progress_callback=progress)
        say("order", f"{ordered.isError} {ordered.content[0].text.splitlines()[0]} {told}")
        say("resources", " ".join(str(resource.uri) for resource in (await session.list_resources()).resources))
        templates = (await session.list_resource_templates()).resourceTemplates
        say("templates", " ".join(template.uriTemplate for template in templates))
        say("read", (await session.read_resource("shop://stock")).contents[0].text.splitlines()[1])
        say("item", (await session.read_resource("shop://items/desk")).contents[0].text)
        say("prompts", " ".join(prompt.name for prompt in (await session.list_prompts()).prompts))
        prompt = await session.get_prompt("shop_compare", {"one": "pen", "other": "desk"})
        say("compare", prompt.messages[0].content.text.partition(".")[0])
        reference = types.PromptReference(type="ref/prompt", name="shop_compare")
        completed = await session.complete(reference, {"name": "one", "value": "p"})
        say("complete", " ".join(completed.completion.values))


anyio.run(main)
