"""MCP's own Python SDK answers what a server asks, in both eras. Run by whichever Python has it.

The argument is the mode: `legacy`, or a revision. A second one is the URL of a server that runs already.
"""

import os
import sys

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters

ARGUMENTS = ["serve", "./mcp_everything.py:server", "--dialect", "mcp"]
STARTED = StdioServerParameters(command="discreet", args=ARGUMENTS, env=dict(os.environ))
SERVER = sys.argv[2] if len(sys.argv) > 2 else STARTED
ANSWERS = {"name": "Alice", "color": "blue", "ok": True, "context": "the sea", "sure": True}


def say(name: str, what: object) -> None:
    print(f"{name}={what}", flush=True)


async def fill(context: object, params: types.ElicitRequestFormParams) -> types.ElicitResult:
    asked = params.requested_schema["properties"]
    return types.ElicitResult(action="accept", content={name: ANSWERS[name] for name in asked})


async def write(context: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", model="none", content=content)


async def roots(context: object) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///here")])


async def main(mode: str) -> None:
    answers = {"elicitation_callback": fill, "sampling_callback": write, "list_roots_callback": roots}
    async with Client(SERVER, mode=mode, **answers) as client:
        for tool in ("elicitation", "sampling", "list_roots", "multiple_inputs", "multi_round", "capabilities"):
            result = await client.call_tool(f"test_input_required_result_{tool}", {})
            say(tool, result.content[0].text)
        prompt = await client.get_prompt("test_input_required_result_prompt", {})
        say("prompt", prompt.messages[0].content.text)
        say("resource", (await client.read_resource("test://asking/it")).contents[0].text)


anyio.run(main, sys.argv[1])
