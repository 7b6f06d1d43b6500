"""What is peculiar to revision 2026-07-28: a version in every request, results that say what they are, no handshake."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service
from discreet.daemon.rpc.envelope import MAX_BATCH
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


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("baggage", "known"),
    [
        ("a=1, b=2;meta=x", True),
        ("a=" + "x" * 8190, True),
        ("a=" + "x" * 8191, False),
        (",".join(f"k{number}=v" for number in range(64)), True),
        (",".join(f"k{number}=v" for number in range(65)), False),
        ("a=é", False),
        ("a=1\r\nb: 2", False),
        ("", False),
        (7, False),
    ],
)
async def test_baggage_of_a_request_is_bounded_and_is_a_service_param(
    serving: Any, revision: str, baggage: Any, known: bool
) -> None:
    service = Service("shop")

    @service.query
    def carried(ctx: Context) -> dict[str, str]:
        return dict(ctx.service_params)

    async with mcp_client(serving, service, revision) as client:
        params = {"name": "shop_carried", "_meta": {"baggage": baggage, "traceparent": "00-1-2-01", "other": "x"}}
        result = (await client.call("tools/call", params))["result"]["structuredContent"]
        assert result == {"traceparent": "00-1-2-01", **({"baggage": baggage} if known else {})}


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


# -- Batches, which revision 2025-03-26 alone has: each message of one is taken as if it had come by itself --


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
