"""What a host sees: tools with errors that a model can read, a resource that changes, a prompt."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.client import MCP, InvalidParams, Peer, connect

COMMAND = [sys.executable, "-P", "-m", "discreet", "serve", "./shop.py:shop", "--dialect", "mcp"]


@asynccontextmanager
async def hosted() -> AsyncIterator[Peer]:
    async with connect(COMMAND, cwd=Path(__file__).parent, dialect=MCP) as peer:
        yield peer


async def call(peer: Peer, tool: str, **arguments: Any) -> Any:
    return await peer.call("tools/call", {"name": tool, "arguments": arguments})


@pytest.mark.anyio
async def test_a_model_sees_the_tools_and_not_what_the_user_is_asked() -> None:
    async with hosted() as peer:
        tools = {tool["name"]: tool for tool in (await peer.call("tools/list"))["tools"]}
        assert list(tools) == ["shop_look", "shop_order", "shop_restock"]
        assert list(tools["shop_order"]["inputSchema"]["properties"]) == ["name", "amount"]
        assert tools["shop_look"]["annotations"] == {"readOnlyHint": True}


@pytest.mark.anyio
async def test_an_error_tells_the_model_what_it_can_do() -> None:
    async with hosted() as peer:
        assert (await call(peer, "shop_look", name="pen"))["structuredContent"]["price"] == 1.5
        failed = await call(peer, "shop_look", name="lamp")
        assert failed["isError"] is True
        assert failed["structuredContent"]["details"]["known"] == ["desk", "paper", "pen"]
        with pytest.raises(InvalidParams):
            await call(peer, "shop_steal")


@pytest.mark.anyio
async def test_a_subscription_is_a_tool_with_a_list_as_result() -> None:
    async with hosted() as peer:
        done = await call(peer, "shop_restock", name="desk", boxes=2)
        assert [event["left"] for event in done["structuredContent"]["result"]] == [2, 3]
        read = await peer.call("resources/read", {"uri": "shop://stock"})
        assert "desk: 3" in read["contents"][0]["text"]


@pytest.mark.anyio
async def test_names_are_completed_and_prompts_filled() -> None:
    async with hosted() as peer:
        ref = {"type": "ref/resource", "uri": "shop://items/{name}"}
        argument = {"name": "name", "value": "p"}
        completed = await peer.call("completion/complete", {"ref": ref, "argument": argument})
        assert completed["completion"]["values"] == ["pen", "paper"]
        arguments = {"one": "pen", "other": "desk"}
        prompt = await peer.call("prompts/get", {"name": "shop_compare", "arguments": arguments})
        assert "pen and desk" in prompt["messages"][0]["content"]["text"]
