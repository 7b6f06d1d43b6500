"""MCP Apps: pages that hosts show for tools, and what is checked of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from discreet import DeclarationError, Service, mcp
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.dialects.mcp.state import Offered
from support.mcp_wire import MODERN, McpClient, mcp_client

pytestmark = pytest.mark.anyio

UI = "io.modelcontextprotocol/ui"
APPS = {"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
PAGE = "ui://shop/prices"
META = {
    "csp": {"connectDomains": ["https://api.shop.example"], "frameDomains": []},
    "permissions": {"clipboardWrite": {}},
    "prefersBorder": False,
}


def make_shop() -> Service:
    shop = Service("shop")

    @shop.resource(PAGE, options={"ui": META})
    def page() -> str:
        return "<!DOCTYPE html><title>é</title>"

    @shop.resource("ui://shop/item/{name}")
    def item_page(name: str) -> bytes:
        return f"<!DOCTYPE html><title>{name}</title>".encode()

    @shop.query(options=mcp.ToolOptions(ui=mcp.McpUiToolMeta(resource_uri=PAGE)))
    def prices() -> dict[str, int]:
        """Tell the prices."""
        return {"pen": 1}

    @shop.query(options={"_meta": {"a": 1, "ui": {"resourceUri": "ui://shop/item/pen", "visibility": ["app"]}}})
    def item() -> int:
        """Tell of a pen."""
        return 1

    @shop.query
    def plain() -> int:
        """Tell the time."""
        return 1

    return shop


def conforms(name: str, value: Any) -> bool:
    """Whether a value is as the published schema of the extension has it; true where that is not at hand."""
    schema = Path(os.environ.get("DISCREET_SCHEMAS", "")) / "mcp" / "apps" / "schema.json"
    if "DISCREET_SCHEMAS" not in os.environ or not schema.exists():
        return True
    document = {"$defs": json.loads(schema.read_text("utf-8"))["$defs"], "$ref": f"#/$defs/{name}"}
    return bool(Draft202012Validator(document).is_valid(value))


async def tools_of(client: McpClient, capabilities: Any) -> dict[str, Any]:
    params = {"_meta": {CAPABILITIES: capabilities}} if client.revision == MODERN else {}
    return {tool["name"]: tool for tool in (await client.call("tools/list", params))["result"]["tools"]}


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", MODERN])
async def test_a_tool_names_its_page_which_is_read_as_a_resource(serving: Any, revision: str) -> None:
    async with mcp_client(serving, make_shop(), revision, **APPS) as client:
        tools = await tools_of(client, APPS)
        assert list(tools) == ["shop_prices", "shop_item", "shop_plain"]
        assert tools["shop_prices"]["_meta"] == {"ui": {"resourceUri": PAGE}}
        assert tools["shop_item"]["_meta"] == {
            "a": 1,
            "ui": {"resourceUri": "ui://shop/item/pen", "visibility": ["app"]},
        }
        assert "_meta" not in tools["shop_plain"]
        assert all(conforms("McpUiToolMeta", tool.get("_meta", {}).get("ui", {})) for tool in tools.values())
        (listed,) = (await client.call("resources/list"))["result"]["resources"]
        assert listed["mimeType"] == "text/html;profile=mcp-app"
        assert listed["_meta"]["ui"] == META
        assert conforms("McpUiResourceMeta", listed["_meta"]["ui"])
        (read,) = (await client.call("resources/read", {"uri": PAGE}))["result"]["contents"]
        assert read == {
            "uri": PAGE,
            "mimeType": "text/html;profile=mcp-app",
            "text": "<!DOCTYPE html><title>é</title>",
            "_meta": {"ui": META},
        }
        (blob,) = (await client.call("resources/read", {"uri": "ui://shop/item/pen"}))["result"]["contents"]
        assert (blob["mimeType"], "blob" in blob) == ("text/html;profile=mcp-app", True)


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    "capabilities",
    [{}, {"extensions": {UI: {}}}, {"extensions": {UI: {"mimeTypes": ["text/uri-list"]}}}, {"extensions": []}],
)
async def test_a_host_that_shows_no_pages_gets_no_tool_that_is_for_pages_alone(
    serving: Any, revision: str, capabilities: Any
) -> None:
    async with mcp_client(serving, make_shop(), revision, **capabilities) as client:
        tools = await tools_of(client, capabilities)
        assert list(tools) == ["shop_prices", "shop_plain"]
        called = (await client.call("tools/call", {"name": "shop_item"}))["result"]
        assert called["structuredContent"] == {"result": 1}


async def test_the_extension_is_announced_where_there_are_pages(serving: Any) -> None:
    async with serving(make_shop(), dialect="mcp", framing="content-length") as wire:
        client = McpClient(wire)
        assert (await client.begin(**APPS))["capabilities"]["extensions"] == {UI: {}}
        modern = McpClient(wire, MODERN)
        found = (await modern.call("server/discover"))["result"]["capabilities"]
        assert found["extensions"] == {UI: {}}
    shop = Service("shop")

    @shop.query
    def look() -> int:
        return 1

    async with serving(shop, dialect="mcp", framing="content-length") as wire:
        assert "extensions" not in (await McpClient(wire).begin(**APPS))["capabilities"]


async def test_searched_tools_keep_their_pages_for_hosts_that_show_them(serving: Any) -> None:
    async with serving(make_shop(), dialect="mcp", framing="content-length", tool_search=True) as wire:
        client = McpClient(wire)
        await client.begin(**APPS)
        listed = [tool["name"] for tool in (await client.call("tools/list"))["result"]["tools"]]
        assert listed == ["search_tools", "call_tool", "shop_prices", "shop_item"]
        found = await client.call("tools/call", {"name": "search_tools", "arguments": {"query": "tell shop"}})
        names = {tool["name"] for tool in found["result"]["structuredContent"]["tools"]}
        assert names == {"shop_prices", "shop_plain"}


def _page(uri: str, *, mime_type: str = "", options: Any = None, returns: Any = str) -> Callable[[Service], None]:
    def declare(shop: Service) -> None:
        def page() -> Any: ...

        page.__annotations__["return"] = returns
        shop.resource(uri, mime_type=mime_type, options=options)(page)

    return declare


def _tool(ui: Any) -> Callable[[Service], None]:
    def declare(shop: Service) -> None:
        @shop.query(options={"ui": ui})
        def look() -> int:
            return 1

    return declare


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (_page("ui://a", mime_type="text/html"), "is text/html;profile=mcp-app; leave mime_type out"),
        (_page("ui://a", returns=dict[str, int]), "must return str or bytes"),
        (_page("notes://a", options={"ui": {}}), "ui is for resources of ui://; its URI is notes://a"),
        (_page("ui://a", options={"ui": {"csp": {"connectDomain": []}}}), "there is no ui.csp.connectDomain"),
        (_page("ui://a", options={"ui": {"prefersBorder": 1}}), "Expected `bool | null`"),
        (_page("ui://a", options={"ui": {"permissions": {"camera": {"x": 1}}}}), "permissions.camera must be an empty"),
        (_page("ui://a", options={"ui": {}, "_meta": {"ui": {}}}), "ui and _meta.ui are the same"),
        (_tool({"resourceUri": "ui://nowhere"}), "ui.resourceUri must be a resource of ui:// that is hosted here"),
        (_tool({"resourceUri": "https://a.example"}), "not 'https://a.example'"),
        (_tool({"visibility": ["user"]}), "Invalid enum value 'user'"),
        (_tool({"csp": {}}), "there is no ui.csp"),
    ],
)
def test_what_is_no_page_and_a_page_that_is_not_there_fail_at_the_start(
    declare: Callable[[Service], None], why: str
) -> None:
    shop = Service("shop")
    declare(shop)
    with pytest.raises(DeclarationError, match="operation shop/.*: ") as refused:
        Offered(Host([shop], Settings(), version="1"))
    assert why in str(refused.value)
