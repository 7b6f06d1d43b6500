"""Batches, which revision 2025-03-26 alone has: each message of one is taken as if it had come by itself."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Service
from discreet.daemon.rpc.envelope import MAX_BATCH
from support.mcp_wire import MCP, McpClient

pytestmark = pytest.mark.anyio

PING = {"jsonrpc": "2.0", "method": "ping"}


async def session(wire: Any, revision: str = "2025-03-26") -> McpClient:
    client = McpClient(wire, revision)
    await client.begin(elicitation={})
    return client


async def test_every_request_of_a_batch_is_answered_once(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        client = await session(wire)
        price = {"name": "shop_price", "arguments": {"name": "pen"}}
        await wire.send(
            [
                {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": price},
                {"jsonrpc": "2.0", "method": "notifications/initialized"},
                {**PING, "id": "b"},
                {"jsonrpc": "2.0", "id": "c", "method": "nothing"},
                {"jsonrpc": "2.0", "id": "d"},
                5,
                [],
            ]
        )
        answers = [await wire.receive() for _ in range(6)]
        codes = {str(answer.get("id")): answer.get("error", {}).get("code") for answer in answers}
        assert codes == {"a": None, "b": None, "c": -32601, "d": -32600, "None": -32600}
        assert next(answer for answer in answers if answer.get("id") == "a")["result"]["content"]
        assert "result" in await client.call("ping")


async def test_a_batch_may_cancel_and_answer(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        client = await session(wire)
        order = client.request("tools/call", {"name": "shop_order", "arguments": {"name": "pen"}})
        wait = client.request("tools/call", {"name": "shop_wait"})
        await wire.send([wait, order])
        asked = await wire.receive()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": wait["id"]}}
        await wire.send([{"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}, cancel])
        assert (await client.answer(order))["result"]["isError"] is True
        assert "result" in await client.call("ping")


@pytest.mark.parametrize("batch", [[], [PING] * (MAX_BATCH + 1), [[{**PING, "id": 1}]]])
async def test_a_batch_that_is_empty_too_long_or_nested_gets_one_error(
    serving: Any, shop: Service, batch: list[Any]
) -> None:
    async with serving(shop, **MCP) as wire:
        client = await session(wire)
        await wire.send(batch)
        assert (await wire.receive())["error"]["code"] == -32600
        assert "result" in await client.call("ping")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_no_other_revision_takes_a_batch(serving: Any, shop: Service, revision: str) -> None:
    async with serving(shop, **MCP) as wire:
        await session(wire, revision)
        await wire.send([{**PING, "id": 1}])
        assert (await wire.receive())["error"]["code"] == -32600
