"""Traces of clients that speak MCP, ACP and LSP: where they name them, and where they are told of them."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace")

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from discreet import Context, Service
from support.mcp_wire import MCP, MODERN, McpClient
from support.spans import PARENT, TRACE, TRACEPARENT, Spans, attributes

pytestmark = pytest.mark.anyio

CANARY = "c4n4ry"


def make_shop() -> Service:
    shop = Service("shop", uses=["shop/price"])

    @shop.query
    async def price(name: str = "") -> int:
        """Tell a price."""
        return 1

    @shop.query
    async def broken() -> int:
        """Fail."""
        raise RuntimeError(CANARY)

    @shop.query
    async def ask(ctx: Context) -> int:
        """Ask the client."""
        return len(await ctx.request("roots/list", {}, type=dict[str, Any]))

    @shop.prompt
    def advise(about: str) -> str:
        """Advise."""
        return about

    @shop.resource("shop://items/{name}")
    def item(name: str) -> str:
        """One item."""
        return name

    return shop


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_tool_is_called_for_the_span_that_its_meta_names(serving: Any, spans: Spans, revision: str) -> None:
    async with serving(make_shop(), otel=True, **MCP) as wire:
        client = McpClient(wire, revision)
        if revision != MODERN:
            await client.begin()
            spans.clear()
        meta = {"traceparent": TRACEPARENT, "tracestate": "vendor=1", "progressToken": 1}
        await client.call("tools/call", {"name": "shop_price", "arguments": {"name": CANARY}, "_meta": meta})
    (span,) = spans.all()
    assert (span.kind, span.name) == (SpanKind.SERVER, "tools/call shop_price")
    assert span.parent is not None and span.context is not None
    assert (trace.format_trace_id(span.parent.trace_id), trace.format_span_id(span.parent.span_id)) == (TRACE, PARENT)
    assert span.context.trace_state.to_header() == "vendor=1"
    assert attributes(span) == {
        "rpc.system.name": "jsonrpc",
        "jsonrpc.protocol.version": "2.0",
        "rpc.method": "tools/call",
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "shop_price",
    }


async def test_methods_of_mcp_name_what_is_declared_and_nothing_of_the_caller(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True, **MCP) as wire:
        client = McpClient(wire)
        await client.begin()
        meta = {"_meta": {"traceparent": CANARY, "tracestate": CANARY, CANARY: CANARY, "progressToken": CANARY}}
        for method, params in (
            ("tools/list", {}),
            ("tools/call", {"name": CANARY, "arguments": {}}),
            ("tools/call", {"name": "shop_broken", "arguments": {}}),
            ("tools/call", {"name": "shop_price", "arguments": {CANARY: CANARY}}),
            ("prompts/get", {"name": "shop_advise", "arguments": {"about": CANARY}}),
            ("resources/read", {"uri": f"shop://items/{CANARY}"}),
            (CANARY, {}),
        ):
            await client.call(method, {**params, **meta})
    assert [(span.name, attributes(span).get("error.type")) for span in spans.all()[1:]] == [
        ("tools/list", None),
        ("tools/call", "INVALID_INPUT"),
        ("tools/call shop_broken", "INTERNAL"),
        ("tools/call shop_price", "INVALID_INPUT"),
        ("prompts/get shop_advise", None),
        ("resources/read shop_item", None),
        ("jsonrpc", "NOT_FOUND"),
    ]
    assert CANARY not in spans.text()


async def test_a_client_is_asked_for_the_span_of_the_request_and_told_so_in_meta(serving: Any, spans: Spans) -> None:
    async with serving(make_shop(), otel=True, **MCP) as wire:
        client = McpClient(wire)
        await client.begin(roots={})
        await wire.send(client.request("tools/call", {"name": "shop_ask", "arguments": {}}))
        asked = await wire.receive()
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        await wire.receive()
    assert spans.tree()[-2:] == ["SERVER tools/call shop_ask", "  CLIENT roots/list"]
    named = asked["params"]["_meta"]["traceparent"].split("-")[2]
    assert named == trace.format_span_id(spans.named("roots/list").context.span_id)  # type: ignore[union-attr]


@pytest.mark.parametrize(("dialect", "told"), [("plain", True), ("lsp", False)])
async def test_a_client_of_lsp_is_told_of_no_trace(serving: Any, spans: Spans, dialect: str, told: bool) -> None:
    async with serving(make_shop(), otel=True, dialect=dialect) as wire:
        if dialect == "lsp":
            await wire.call("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
            await wire.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        await wire.send(wire.request("shop/ask"))
        asked = await wire.receive()
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": CANARY}})
        await wire.receive()
    assert asked["params"] == {}
    assert ("traceparent" in asked.get("serviceParams", {})) is told
    assert attributes(spans.named("roots/list"))["error.type"] == "ClientRefused"
    assert CANARY not in spans.text()
