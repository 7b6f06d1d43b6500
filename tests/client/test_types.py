"""Static types of calls: a result has the requested type, with async and without, in handlers and in typed clients too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.programs import for_type_checkers

PROGRAM = """
from typing import Any, assert_type

from discreet import Context, acp, lsp, mcp
from discreet.client import Peer, blocking


async def ask(peer: Peer) -> None:
    assert_type(await peer.call("a", type=list[int]), list[int])
    assert_type(await peer.call("a"), Any)
    async for event in peer.subscribe("a", type=str, timeout=1.0):
        assert_type(event, str)
    peer.subscribe("a", idempotent=True)  # wrong


def block(peer: blocking.BlockingPeer) -> None:
    assert_type(peer.call("a", {"b": 1}, type=list[int], timeout=None, idempotent=True), list[int])
    assert_type(peer.call("a"), Any)
    for event in peer.subscribe("a", type=str, service_params={"traceparent": "00"}):
        assert_type(event, str)
    peer.call("a", timout=1.0)  # wrong
    peer.subscribe("a", idempotent=True)  # wrong


async def handle(ctx: Context) -> None:
    assert_type(await ctx.call("a", type=int, continue_running=True), int)
    assert_type(await ctx.call("a"), Any)
    assert_type(ctx.call_blocking("a", type=int), int)
    assert_type(await ctx.request("a", type=bytes, timeout=1.0), bytes)
    assert_type(await ctx.request("a"), Any)
    assert_type(ctx.request_blocking("a", type=bytes), bytes)


def told(params: lsp.PublishDiagnosticsParams) -> None:
    assert_type(params.diagnostics, list[lsp.Diagnostic])


async def configured(params: lsp.ConfigurationParams) -> list[Any]:
    return [None for item in params.items]


async def typed(server: lsp.Server, other: mcp.Server, agent: acp.Agent, params: lsp.DocumentSymbolParams) -> None:
    found = await server.text_document_document_symbol(params, timeout=1.0)
    assert_type(found, list[lsp.SymbolInformation] | list[lsp.DocumentSymbol] | None)
    assert_type(await other.tools_call(mcp.CallToolRequestParams(name="a")), mcp.CallToolResult)
    prompt = acp.wire.PromptRequest(session_id="1", prompt=[])
    assert_type((await agent.session_prompt(prompt)).stop_reason, acp.wire.StopReason)
    await server.text_document_hover(params)  # wrong
    await server.text_document_hoover(params)  # wrong
    await other.tools_call(mcp.CallToolRequestParams(nam="a"))  # wrong
    lsp.connect(["a"], handlers=lsp.Handlers(text_document_publish_diagnostics=told, workspace_configuration=configured))
    lsp.connect(["a"], handlers=lsp.Handlers(text_document_publish_diagnostics=configured))  # wrong
    lsp.connect(["a"], handlers=lsp.Handlers(workspace_configuration=told))  # wrong
    lsp.connect(["a"], dialect="lsp")  # wrong


def typed_blocking(server: lsp.BlockingServer, params: lsp.HoverParams) -> None:
    assert_type(server.text_document_hover(params), lsp.Hover | None)
    server.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=params.text_document))
    server.text_document_did_save(params)  # wrong
"""

WRONG = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}


@pytest.mark.needs("mypy")
def test_results_have_the_requested_type(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    options = ("--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", "--cache-dir", "cache")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mypy", *options, "program.py"],
        cwd=tmp_path,
        env=for_type_checkers(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if " error: " in line}
    assert found == WRONG, done.stdout
