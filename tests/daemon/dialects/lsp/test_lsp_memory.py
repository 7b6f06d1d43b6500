"""The documents that an editor has open count as memory; one without room is closed, and closing gives the room back."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024


def note(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def opened(uri: str, text: str) -> dict[str, Any]:
    return note("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": text}})


def grown(uri: str) -> dict[str, Any]:
    return {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "z" * (9 * MIB)}]}


async def test_open_documents_stay_within_the_memory_budget(serving: Any) -> None:
    service = Service("texts", dialect="lsp")

    @service.query
    async def uris(ctx: Context) -> list[str]:
        return [*ctx.documents]

    async with serving(service, max_memory=16 * MIB) as wire:
        await wire.call("initialize", {"capabilities": {}})
        for name in ("a", "b", "c", "d"):
            await wire.send(opened(name, "x" * (6 * MIB)))
        assert (await wire.call("texts/uris"))["result"] == ["a", "b"]
        change = {"textDocument": {"uri": "a", "version": 2}, "contentChanges": [{"text": "y" * (9 * MIB + MIB // 2)}]}
        await wire.send(note("textDocument/didChange", change), note("textDocument/didChange", grown("b")))
        assert (await wire.call("texts/uris"))["result"] == ["a"]
        for name in ("a",):
            await wire.send(note("textDocument/didClose", {"textDocument": {"uri": name}}))
        assert (await wire.call("texts/uris"))["result"] == []
        assert wire.daemon.host.memory.by_kind()["documents"] == 0
