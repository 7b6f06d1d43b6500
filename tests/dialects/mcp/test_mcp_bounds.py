"""What a host may make the server keep, and what it may learn of operations that it may not call."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Service
from discreet.daemon.connection.session import MAX_CLIENT_BYTES
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from discreet.dialects.mcp.dialect import MAX_SUBSCRIBED, MAX_URI_LENGTH
from discreet.dialects.mcp.revision import MAX_META_BYTES, MAX_TOKEN_LENGTH
from support.mcp_wire import MCP, META, MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
NOBODY = Access(Identity("parent", frozenset()))


@pytest.fixture
def vault() -> Service:
    """Everything in it is for admins."""
    vault = Service("vault")

    @vault.resource("vault://coins", scopes=["admin"])
    async def coins() -> str:
        return "3"

    @vault.resource("vault://keys/{door}", scopes=["admin"], complete={"door": lambda begun: ["cellar"]})
    async def keys(door: str) -> str:
        return door

    @vault.prompt(scopes=["admin"], complete={"door": lambda begun: ["cellar"]})
    async def break_in(door: str) -> str:
        return door

    return vault


@pytest.mark.parametrize("method", ["tools/call", "server/discover", "nothing"])
async def test_meta_that_is_too_large_is_refused_before_it_is_decoded(serving: Any, shop: Service, method: str) -> None:
    async with mcp_client(serving, shop, MODERN) as client:
        large = {CAPABILITIES: {"a": [[]] * (MAX_META_BYTES // 3)}}
        refused = await client.call(method, {"name": "shop_greet", "_meta": large})
        assert (refused["error"]["code"], refused["error"]["data"]["param"]) == (-32602, "_meta")
        assert (await client.tool("shop_greet"))["structuredContent"] == {"result": "hello"}


@pytest.mark.parametrize(("length", "told"), [(MAX_TOKEN_LENGTH, True), (MAX_TOKEN_LENGTH + 1, False)])
async def test_a_request_with_a_token_that_is_too_long_is_told_no_progress(
    serving: Any, shop: Service, length: int, told: bool
) -> None:
    async with mcp_client(serving, shop) as client:
        counted = await client.tool("shop_count", _meta={"progressToken": "t" * length})
        assert counted["structuredContent"] == {"result": 3}
        assert ("notifications/progress" in [note["method"] for note in client.notes]) == told


async def test_a_uri_that_is_too_long_to_be_kept_is_refused(serving: Any, shop: Service) -> None:
    async with mcp_client(serving, shop) as client:
        uri = f"shop://items/{'i' * MAX_URI_LENGTH}/1"
        assert (await client.call("resources/subscribe", {"uri": uri}))["error"]["data"]["param"] == "uri"
        assert "result" in await client.call("resources/read", {"uri": uri})


async def test_one_request_listens_to_so_many_resources_at_most(serving: Any, shop: Service) -> None:
    async with serving(shop, **MCP) as wire:
        wanted = {"resourceSubscriptions": ["shop://prices"] * (MAX_SUBSCRIBED + 1)}
        refused = await McpClient(wire, MODERN).call("subscriptions/listen", {"notifications": wanted})
        assert refused["error"]["data"]["code"] == "OVERLOADED"


@pytest.mark.parametrize("member", ["capabilities", "clientInfo"])
async def test_a_client_that_says_too_much_of_itself_is_refused(serving: Any, shop: Service, member: str) -> None:
    async with serving(shop, **MCP) as wire:
        client = McpClient(wire)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        large = params | {member: {"name": "n" * MAX_CLIENT_BYTES, "version": "1"}}
        assert (await client.call("initialize", large))["error"]["code"] == -32602
        assert "result" in await client.call("initialize", params)


async def test_resources_that_a_caller_may_not_read_are_not_subscribed_to(serving: Any, vault: Service) -> None:
    async with serving(vault, **MCP, access=NOBODY) as wire:
        client = McpClient(wire)
        await client.begin()
        for uri in ("vault://coins", "vault://keys/cellar"):
            refused = await client.call("resources/subscribe", {"uri": uri})
            assert refused["error"]["data"]["code"] == "FORBIDDEN"
            params = {"notifications": {"resourceSubscriptions": [uri]}, "_meta": META}
            refused = await client.call("subscriptions/listen", params)
            assert refused["error"]["data"]["code"] == "FORBIDDEN"


async def test_arguments_of_what_a_caller_may_not_get_are_not_completed(serving: Any, vault: Service) -> None:
    async with serving(vault, **MCP, access=NOBODY) as wire:
        client = McpClient(wire)
        await client.begin()
        for ref in (
            {"type": "ref/prompt", "name": "vault_break_in"},
            {"type": "ref/resource", "uri": "vault://keys/{door}"},
        ):
            params = {"ref": ref, "argument": {"name": "door", "value": ""}}
            assert (await client.call("completion/complete", params))["error"]["data"]["code"] == "FORBIDDEN"


@pytest.mark.parametrize("wrong", [[1], None, ["\ud800"]])
async def test_completions_that_are_no_texts_are_a_fault_of_the_app(serving: Any, wrong: Any) -> None:
    service = Service("s")

    @service.prompt(complete={"about": lambda begun: wrong})
    async def advise(about: str) -> str:
        return about

    async with mcp_client(serving, service) as client:
        params = {"ref": {"type": "ref/prompt", "name": "s_advise"}, "argument": {"name": "about", "value": ""}}
        assert (await client.call("completion/complete", params))["error"]["code"] == -32603
