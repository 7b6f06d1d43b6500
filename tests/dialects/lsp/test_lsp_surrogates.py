"""Editors that count in UTF-16 may send half a surrogate pair: the document stays what the editor has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet import Context, Service
from discreet.agents import RequestContext, TaskEvents
from support.acp_client import acp_client, agent_of
from support.lsp_messages import note, opened
from support.mcp_wire import MCP, McpClient

pytestmark = pytest.mark.anyio


def changed(uri: str, *changes: tuple[int, int, str], version: int = 2) -> dict[str, Any]:
    given = [
        {"range": {"start": {"line": 0, "character": start}, "end": {"line": 0, "character": end}}, "text": text}
        for start, end, text in changes
    ]
    return note("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": given})


def language(seen: list[Any] | None = None) -> Service:
    service = Service("texts", dialect="lsp")

    @service.notification("textDocument/didChange")
    async def change(params: dict[str, Any], /) -> None:
        if seen is not None:
            seen.extend(one["text"] for one in params["contentChanges"])

    @service.query
    async def text(ctx: Context, uri: str) -> str:
        return ctx.documents[uri].text

    @service.query
    async def ask(ctx: Context) -> str:
        return await ctx.request("window/name", type=str)

    return service


async def test_a_change_of_half_a_pair_leaves_the_text_that_the_editor_has(serving: Any) -> None:
    seen: list[Any] = []
    async with serving(language(seen)) as wire:
        await wire.call("initialize", {"capabilities": {}})
        await wire.send(opened("a", "x😀y"), changed("a", (2, 3, "\ude01")))
        assert (await wire.call("texts/text", {"uri": "a"}))["result"] == "x😁y"
        await wire.send(changed("a", (2, 3, "")))
        assert (await wire.call("texts/text", {"uri": "a"}))["result"] == "x\ufffdy"
        await wire.send(changed("a", (2, 2, "\ude02")))
        assert (await wire.call("texts/text", {"uri": "a"}))["result"] == "x😂y"
        assert seen == ["\ufffd", "", "\ufffd"]


async def test_a_document_may_come_with_half_a_pair(serving: Any) -> None:
    async with serving(language()) as wire:
        await wire.call("initialize", {"capabilities": {}})
        await wire.send(opened("a\udc00", "\ud83d!\\ud83d"), changed("a\udc00", (1, 1, "\ude00")))
        assert (await wire.call("texts/text", {"uri": "a\ufffd"}))["result"] == "😀!\\ud83d"
        assert (await wire.call("texts/text", {"uri": "a\ud800"}))["result"] == "😀!\\ud83d"


async def test_cells_of_notebooks_keep_half_a_pair_too_and_their_metadata_none(serving: Any) -> None:
    async with serving(language()) as wire:
        await wire.call("initialize", {"capabilities": {}})
        metadata = {"text": "\ud800", "list": ["\udc00"]}
        book = {"uri": "nb", "notebookType": "j", "version": 1, "metadata": metadata, "cells": []}
        cells = [{"uri": "c", "languageId": "x", "version": 1, "text": "\ud83d"}]
        await wire.send(note("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": cells}))
        change = {"document": {"uri": "c", "version": 2}, "changes": [changed("c", (1, 1, "\ude00"))["params"]]}
        change["changes"] = change["changes"][0]["contentChanges"]
        params = {"notebookDocument": {"uri": "nb", "version": 2}, "change": {"cells": {"textContent": [change]}}}
        await wire.send(note("notebookDocument/didChange", params))
        assert (await wire.call("texts/text", {"uri": "c"}))["result"] == "😀"
        documents = wire.daemon.connection.context_backend.documents
        assert documents.notebooks["nb"].metadata == {"text": "\ufffd", "list": ["\ufffd"]}
        assert wire.daemon.connection.state().session


async def test_requests_and_answers_have_u_fffd_for_half_a_pair(serving: Any) -> None:
    async with serving(language()) as wire:
        await wire.call("initialize", {"capabilities": {}})
        unknown = (await wire.call("texts/text", {"uri": 5, "x": "\ud800"}))["error"]
        assert (unknown["code"], unknown["data"]["param"]) == (-32602, "uri")
        await wire.send(wire.request("texts/ask"))
        asked = await wire.receive()
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": "\ud800 \ud83d\ude00"})
        assert (await wire.receive())["result"] == "\ufffd 😀"


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"texts/text"}',  # its caller would not know the answer
        b'{"jsonrpc":"2.0","id":1,"method":"texts/text","params":{"uri":"\xed\xa0\x80"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"texts/text","params":{"uri":"\\ud8"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"texts/text","params":{"uri":"\\ud8zz"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"texts/text","params":{"uri":"\\ud800"}',
    ],
)
async def test_what_is_no_json_otherwise_is_a_parse_error_still(serving: Any, body: bytes) -> None:
    async with serving(language()) as wire:
        await wire.call("initialize", {"capabilities": {}})
        await wire.send(body, json.dumps(wire.request("texts/ask")).encode())
        assert (await wire.receive())["error"]["code"] == -32700


async def test_plain_json_rpc_refuses_half_a_pair(serving: Any) -> None:
    service = Service("texts")

    @service.query
    async def text(uri: str) -> str:
        return uri

    async with serving(service) as wire:
        assert (await wire.call("texts/text", {"uri": "\ud800"}))["error"]["code"] == -32700


# -- Hosts and editors in JavaScript send half a surrogate pair as an escape. It is read as U+FFFD, and the request is answered --


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
