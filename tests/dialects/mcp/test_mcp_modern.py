"""What is peculiar to revision 2026-07-28: a version in every request, results that say what they are, no handshake."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service
from support.mcp_wire import MCP, META, MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SERVER = "io.modelcontextprotocol/serverInfo"


async def test_a_server_is_discovered_without_a_handshake(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        found = (await McpClient(wire, MODERN).call("server/discover"))["result"]
        assert found["supportedVersions"] == [MODERN]
        assert found["resultType"] == "complete"
        assert found["_meta"][SERVER] == {"name": "shop", "version": "2.1"}
        assert (found["cacheScope"], found["ttlMs"] > 0) == ("private", True)
        assert set(found["capabilities"]) == {"tools", "resources", "prompts", "completions", "logging"}


async def test_every_result_says_its_type_and_its_server(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        for method, params in (
            ("tools/list", {}),
            ("tools/call", {"name": "shop_greet"}),
            ("tools/call", {"name": "shop_price", "arguments": {"name": "crash"}}),
            ("resources/read", {"uri": "shop://prices"}),
            ("prompts/get", {"name": "shop_show"}),
        ):
            result = (await client.call(method, params))["result"]
            assert (result["resultType"], result["_meta"][SERVER]["name"]) == ("complete", "shop")


async def test_a_version_that_is_not_spoken_is_refused_with_those_that_are(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        for version in ("2027-01-01", "2025-11-25"):
            error = (await client.call("tools/list", {"_meta": {VERSION: version}}))["error"]
            assert (error["code"], error["data"]) == (-32022, {"requested": version, "supported": [MODERN]})


@pytest.mark.parametrize("wrong", [{VERSION: 1}, {CAPABILITIES: 1}, {"io.modelcontextprotocol/logLevel": "loud"}])
async def test_members_of_meta_are_checked(serving: Any, shop: Service, wrong: dict[str, Any]) -> None:
    async with serving(shop, **MCP) as wire:
        assert (await McpClient(wire, MODERN).call("tools/list", {"_meta": wrong}))["error"]["code"] == -32602


async def test_a_request_without_meta_is_refused_once_a_modern_one_came(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        assert (await wire.call("server/discover"))["error"]["code"] == -32602
        await McpClient(wire, MODERN).call("server/discover")
        for method in ("tools/list", "ping", "nothing"):
            assert (await wire.call(method))["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "nothing"])
async def test_methods_of_the_legacy_era_are_not_there(serving: Any, shop: Service, method: str) -> None:
    async with serving(shop, **MCP) as wire:
        assert (await McpClient(wire, MODERN).call(method))["error"]["code"] == -32601


async def test_both_eras_are_spoken_in_one_session(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        old, new = McpClient(wire, "2024-11-05"), McpClient(wire, MODERN)
        await old.begin()
        for _ in range(2):
            assert "resultType" not in await old.tool("shop_greet")
            assert (await new.tool("shop_greet"))["resultType"] == "complete"


async def test_log_messages_are_sent_only_where_a_request_asks_for_them(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        await client.tool("shop_count")
        assert client.notes == []
        await client.tool("shop_count", _meta={"io.modelcontextprotocol/logLevel": "debug"})
        assert [note["params"]["level"] for note in client.notes] == ["debug", "warning"]


async def test_a_modern_client_is_asked_nothing(serving: Any) -> None:
    service = Service("s")

    @service.query
    async def ask(ctx: Context) -> str:
        await ctx.request("roots/list")
        return "answered"

    async with mcp_client(serving, service, MODERN) as client:
        assert (await client.tool("s_ask"))["isError"] is True
        assert client.asked == []


async def test_the_client_is_who_the_request_says(serving: Any) -> None:
    service = Service("s")

    @service.query
    async def who(ctx: Context) -> list[Any]:
        return [ctx.client.name, ctx.client.protocol_version]

    async with serving(service, **MCP) as wire:
        result = await McpClient(wire, MODERN).tool("s_who")
        assert result["structuredContent"] == {"result": ["test", MODERN]}


async def test_a_listener_hears_of_the_resources_it_named(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        wanted = {"resourceSubscriptions": ["shop://prices"], "toolsListChanged": True}
        listening = client.request("subscriptions/listen", {"notifications": wanted})
        await client.wire.send(listening)
        acknowledged = await client.receive()
        meta = {"io.modelcontextprotocol/subscriptionId": listening["id"]}
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        told = {"resourceSubscriptions": ["shop://prices"]}
        assert acknowledged["params"] == {"_meta": meta, "notifications": told}
        await client.tool("shop_change")
        assert client.notes[-1]["params"] == {"uri": "shop://prices", "_meta": meta}
        client.notes.clear()
        params = {"requestId": listening["id"]}
        await client.wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await client.tool("shop_greet")
        await client.tool("shop_change")
        assert client.notes == []


async def test_a_listener_is_answered_when_the_daemon_ends(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        listening = client.request("subscriptions/listen", {"notifications": {}})
        await client.wire.send(listening)
        await client.receive()
        client.wire.transport.send_eof()
        result = (await client.answer(listening))["result"]
        assert result["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening["id"]


async def test_what_a_client_speaks_is_told_by_its_first_message(serving: Any, shop: Service) -> None:
    async with serving(shop, dialect="auto") as wire:
        assert (await wire.call("tools/list", {"_meta": META}))["result"]["resultType"] == "complete"
