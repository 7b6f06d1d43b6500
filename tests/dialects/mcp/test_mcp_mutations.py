"""Every message of a host with every member wrong in every way: each request has one answer, and none is a fault of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from discreet import Service
from support.logged_events import logged_events
from support.mcp_wire import MCP, META
from support.mutations import exchange, samples

pytestmark = pytest.mark.anyio

REF = {"type": "ref/prompt", "name": "shop_advise"}
MCP_PARAMS: dict[str, Any] = {
    "initialize": {"protocolVersion": "2025-11-25"},
    "completion/complete": {"ref": REF, "argument": {"name": "about", "value": "p"}},
    "prompts/get": {"name": "shop_advise", "arguments": {"about": "pens", "style": "short", "words": "3"}},
    "resources/read": {"uri": "shop://items/pen/1"},
    "resources/subscribe": {"uri": "shop://prices"},
    "resources/unsubscribe": {"uri": "shop://prices"},
    "tools/call": {"name": "shop_price", "arguments": {"name": "pen", "amount": 2, "labels": ["a"]}},
}
"""What has to be right for more than the first check to be passed."""
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def messages_of_clients(schemas: Path, revision: str, right: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    definitions = json.loads((schemas / "mcp" / f"{revision}.json").read_text("utf-8"))["$defs"]
    unions = ("ClientRequest", "ClientNotification")
    names = [part["$ref"].rpartition("/")[2] for union in unions for part in definitions[union].get("anyOf", ())]
    found = [definitions[name]["properties"] for name in names]
    params = {each["method"]["const"]: each.get("params", {"type": "object"}) for each in found}
    return list(samples(params, definitions, right))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is read and refused is the same on each loop
async def test_no_message_of_a_legacy_host_is_a_fault_of_the_server(serving: Any, shop: Service, schemas: Path) -> None:
    messages = messages_of_clients(schemas, "2025-11-25", MCP_PARAMS | {name: {"cursor": None} for name in LISTS})
    with logged_events("error") as logged:
        async with serving(shop, **MCP) as wire:
            codes = await exchange(wire, messages, ("ping", {}))
        assert logged.names() == []
    assert set(codes) == {0, -32602, -32600, -32601, -32002}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is read and refused is the same on each loop
async def test_no_message_of_a_modern_host_is_a_fault_of_the_server(serving: Any, shop: Service, schemas: Path) -> None:
    meta = META | {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"}
    asked = {"name": "shop_order", "arguments": {"name": "pen"}, "inputResponses": {"sure": {"action": "accept"}}}
    right = MCP_PARAMS | {name: {"cursor": None} for name in LISTS} | {"tools/call": asked}
    messages = [
        (name, params | {"_meta": meta}, is_request)
        for name, params, is_request in messages_of_clients(schemas, "2026-07-28", right)
        if name != "subscriptions/listen"  # which is not answered
    ]
    with logged_events("error") as logged:
        async with serving(shop, **MCP) as wire:
            codes = await exchange(wire, messages, ("server/discover", {"_meta": META}))
        assert logged.names() == []
    assert set(codes) == {0, -32602, -32600, -32022}
