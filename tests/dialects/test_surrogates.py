"""Hosts and editors in JavaScript send half a surrogate pair as an escape. It is read as U+FFFD, and the request is answered."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Service
from discreet.agents import RequestContext, TaskEvents
from support.acp_client import acp_client, agent_of
from support.mcp_wire import MCP, McpClient

pytestmark = pytest.mark.anyio


async def test_a_tool_of_mcp_is_called_with_what_can_be_read(serving: Any) -> None:
    service = Service("texts")

    @service.query
    async def same(text: str) -> str:
        return text

    async with serving(service, **MCP) as wire:
        client = McpClient(wire, "2025-11-25")
        await client.begin()
        result = await client.call("tools/call", {"name": "texts_same", "arguments": {"text": "a \ud83d b 😀"}})
        assert result["result"]["content"][0]["text"] == "a \ufffd b 😀"


async def test_a_prompt_of_acp_is_answered() -> None:
    async def execute(context: RequestContext, events: TaskEvents) -> None:
        await events.artifact(context.text)
        await events.complete()

    async with acp_client(agent_of(execute)) as client:
        await client.hello()
        assert await client.prompt(await client.session(), "a \ud83d b 😀") == "end_turn"
        assert client.texts("agent_message_chunk") == "a \ufffd b 😀"
