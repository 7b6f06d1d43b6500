"""What a host sees of the tool and its page, and what the page says to a host."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sales import sales

from discreet.client import Peer
from discreet.testing import in_memory

HERE = Path(__file__).parent
UI = "io.modelcontextprotocol/ui"
APPS = {"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}}


async def begin(peer: Peer, capabilities: Any) -> Any:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    }
    welcome = await peer.call("initialize", hello)
    await peer.notify("notifications/initialized")
    return welcome["capabilities"]


@pytest.mark.anyio
async def test_a_host_finds_the_page_of_the_tool() -> None:
    async with in_memory(sales, dialect="mcp") as peer:
        assert (await begin(peer, APPS))["extensions"] == {UI: {}}
        tools = {tool["name"]: tool for tool in (await peer.call("tools/list"))["tools"]}
        uri = tools["sales_report"]["_meta"]["ui"]["resourceUri"]
        assert tools["sales_quarters"]["_meta"]["ui"]["visibility"] == ["app"]
        (contents,) = (await peer.call("resources/read", {"uri": uri}))["contents"]
        assert contents["mimeType"] == "text/html;profile=mcp-app"
        assert contents["_meta"] == {"ui": {"prefersBorder": True}}
        assert contents["text"].startswith("<!DOCTYPE html>")


@pytest.mark.anyio
async def test_a_host_without_apps_sees_a_tool_like_any_other() -> None:
    async with in_memory(sales, dialect="mcp") as peer:
        await begin(peer, {})
        assert [tool["name"] for tool in (await peer.call("tools/list"))["tools"]] == ["sales_report"]
        result = await peer.call("tools/call", {"name": "sales_report", "arguments": {"year": 2025}})
        assert "South" in result["content"][0]["text"]


def play(*steps: Any) -> tuple[list[Any], Any]:
    """The messages of the page, and what it shows at the end."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    command = [node, "host.mjs", "sales.html", json.dumps(steps)]
    told = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True, timeout=60)
    *messages, shown = map(json.loads, told.stdout.splitlines())
    return messages, shown


@pytest.mark.anyio
async def test_the_page_shows_what_the_tools_answer_and_speaks_as_the_specification_says() -> None:
    async with in_memory(sales, dialect="mcp") as peer:
        await begin(peer, APPS)
        report = await peer.call("tools/call", {"name": "sales_report", "arguments": {"year": 2025}})
        quarters = await peer.call(
            "tools/call", {"name": "sales_quarters", "arguments": {"year": 2025, "region": "West"}}
        )
    messages, shown = play(
        {"stranger": True, "send": {"method": "ui/notifications/tool-cancelled", "params": {"reason": "x"}}},
        {"send": {"method": "ui/notifications/tool-input", "params": {"arguments": {"year": 2025}}}},
        {"send": {"method": "ui/notifications/tool-result", "params": report}},
        {"answers": {"sales_quarters": {"result": quarters}}},
        {"click": "West"},
        {"send": {"id": 7, "method": "ping"}},
        {"send": {"id": 8, "method": "ui/resource-teardown", "params": {"reason": "closed"}}},
        {"send": {"id": 9, "method": "toString"}},
    )
    assert [message.get("method", message) for message in messages] == [
        "ui/initialize",
        "ui/notifications/initialized",
        "ui/notifications/size-changed",
        "tools/call",
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": 8, "result": {}},
        {"jsonrpc": "2.0", "id": 9, "error": {"code": -32601, "message": "Method not found"}},
    ]
    assert messages[0]["params"]["protocolVersion"] == "2026-01-26"
    assert messages[2]["params"] == {"width": 400, "height": 200}
    assert messages[3]["params"] == {"name": "sales_quarters", "arguments": {"year": 2025, "region": "West"}}
    assert shown["status"] == ["West, 2025, by quarter."]
    assert shown["regions"] == ["North", "58", "South", "134", "West", "53"]
    assert shown["chart"] == ["Q1: 7", "Q2: 11", "Q3: 19", "Q4: 16"]
    assert shown["style"] == {"color-scheme": "dark", "--color-text-info": "red"}


def test_the_page_tells_what_went_wrong() -> None:
    failed = {"isError": True, "content": [{"type": "text", "text": "There are no figures of this year"}]}
    _, shown = play({"send": {"method": "ui/notifications/tool-result", "params": failed}})
    assert shown["status"] == ["There are no figures of this year"]
    report = {"structuredContent": {"year": 2025, "regions": [{"name": "East", "sold": 1}]}, "content": []}
    refused = {"error": {"code": -32000, "message": "The user refused"}}
    _, shown = play(
        {"send": {"method": "ui/notifications/tool-result", "params": report}},
        {"answers": {"sales_quarters": refused}},
        {"click": "East"},
    )
    assert shown["status"] == ["The user refused"]
