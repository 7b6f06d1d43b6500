"""The documents that an editor has open count as memory; one without room is closed, and closing gives the room back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discreet import Context, Service, lsp
from discreet.daemon.connection.connection import Connection
from discreet.daemon.documents import Documents
from discreet.daemon.host import Host
from discreet.daemon.memory import MemoryBudget
from discreet.daemon.operations.request import Request
from discreet.daemon.rpc.envelope import decode
from discreet.daemon.settings import Settings
from discreet.dialects.lsp.session import LspDialect
from discreet.dialects.lsp.sync import CHANGES_AT_ONCE
from discreet.framing.encoder import encode_frame
from discreet.framing.transports.memory import memory_pair
from support.lsp_messages import note, opened, shake_hands
from support.owners import Alone

pytestmark = pytest.mark.anyio


MIB = 1024 * 1024


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
        change = {"textDocument": {"uri": "a", "version": 2}, "contentChanges": [{"text": "y" * (8 * MIB)}]}
        await wire.send(note("textDocument/didChange", change), note("textDocument/didChange", grown("b")))
        assert (await wire.call("texts/uris"))["result"] == ["a"]
        for name in ("a",):
            await wire.send(note("textDocument/didClose", {"textDocument": {"uri": name}}))
        assert (await wire.call("texts/uris"))["result"] == []
        assert wire.daemon.host.memory.by_kind()["documents"] == 0


def test_a_connection_that_closes_gives_back_what_its_documents_took_and_no_more() -> None:
    host = Host([Service("texts", dialect="lsp")], Settings(), version="1")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
    connections, taken = [], []
    for size in (1000, 5000):
        ours, theirs = memory_pair()
        connections.append(connection := Connection(host, ours, Alone()))
        for message in (hello, opened("a", "x" * size), opened("b", "y")):
            theirs.send_nowait(memoryview(encode_frame(msgspec.json.encode(message), "content-length")))
            connection.begin()
        taken.append(host.memory.by_kind()["documents"])
    one, both = taken
    assert 1000 < one < both - 5000
    for connection, left in zip(connections, (both - one, 0), strict=True):
        assert list(connection.context_backend.documents) == ["a", "b"]
        connection.session.dialect.close()
        assert host.memory.by_kind()["documents"] == left


def book(uri: str, size: int) -> dict[str, Any]:
    cells = [{"kind": 2, "document": f"{uri}/1"}]
    described = {"uri": uri, "notebookType": "x", "version": 1, "metadata": {"m": "x" * size}, "cells": cells}
    texts = [{"uri": f"{uri}/1", "languageId": "x", "version": 1, "text": "x" * size}]
    return note("notebookDocument/didOpen", {"notebookDocument": described, "cellTextDocuments": texts})


async def test_notebooks_stay_within_the_memory_budget_with_their_cells(serving: Any) -> None:
    service = Service("texts", dialect="lsp")

    @service.query
    async def uris(ctx: Context) -> list[str]:
        return [*ctx.documents, *ctx.documents.notebooks]

    async with serving(service, max_memory=16 * MIB) as wire:
        await wire.call("initialize", {"capabilities": {}})
        await wire.send(*(book(name, 3 * MIB) for name in ("n1", "n2", "n3")))
        assert (await wire.call("texts/uris"))["result"] == ["n1/1", "n2/1", "n1", "n2"]
        changed = {"notebookDocument": {"uri": "n1", "version": 2}, "change": {"metadata": {"m": "x" * (9 * MIB)}}}
        await wire.send(note("notebookDocument/didChange", changed))
        assert (await wire.call("texts/uris"))["result"] == ["n2/1", "n2"]
        closed = {"notebookDocument": {"uri": "n2"}, "cellTextDocuments": [{"uri": "n2/1"}]}
        await wire.send(note("notebookDocument/didClose", closed))
        assert (await wire.call("texts/uris"))["result"] == []
        assert wire.daemon.host.memory.by_kind()["documents"] == 0


async def test_documents_count_again_after_a_reload(serving: Any) -> None:
    async with serving(Service("texts", dialect="lsp")) as wire:
        await wire.call("initialize", {"capabilities": {}})
        await wire.send(opened("a", "x" * 5000), book("n", 1000))
        await wire.call("shutdown")
        before = wire.daemon.host.memory.by_kind()["documents"]
        left = wire.daemon.connection.state()
    host = Host([Service("texts", dialect="lsp")], Settings(), version="1")
    Connection(host, memory_pair()[0], Alone(), left)
    assert host.memory.by_kind()["documents"] == before > 7000


# -- A notification with many changes is applied in steps: everything else runs in between, and no handler sees half of it --


URI = "file:///a.txt"
STEPS = 4


def many(count: int) -> dict[str, Any]:
    at = {"line": 0, "character": 0}
    changes = [{"range": {"start": at, "end": at}, "text": "b"}] * count
    return note("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": changes})


def call(message: dict[str, Any]) -> Request:
    read = decode(msgspec.json.encode(message))
    assert isinstance(read, Request)
    return read


async def test_requests_behind_many_changes_see_all_of_them_and_the_handler_runs_once_before(serving: Any) -> None:
    seen: list[int] = []
    service = Service("toy", dialect="lsp")

    @service.notification("textDocument/didChange")
    async def changed(ctx: Context, params: lsp.DidChangeTextDocumentParams, /) -> None:
        seen.append(len(ctx.documents[params.text_document.uri].text))

    @service.query("textDocument/hover", inline=True)
    def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover:
        return lsp.Hover(contents=str(len(ctx.documents[params.text_document.uri].text)))

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "a"), many(STEPS * CHANGES_AT_ONCE))
        where = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
        answer = await wire.call("textDocument/hover", where)
        assert answer["result"]["contents"] == str(STEPS * CHANGES_AT_ONCE + 1)
        await wire.call("textDocument/hover", where)
    assert seen == [STEPS * CHANGES_AT_ONCE + 1]


def dialect_with(documents: Documents, calls: list[Request]) -> LspDialect:
    def nothing(*_: object) -> None: ...

    dialect = LspDialect(documents, frozenset(), MemoryBudget(2**30), nothing, nothing, nothing, calls.append)
    dialect.state = "initialized"
    return dialect


def test_what_is_read_all_the_same_comes_behind() -> None:
    documents, applied = Documents(), list[Request]()
    dialect = dialect_with(documents, applied)
    dialect.receive(call(opened(URI, "a")))
    dialect.receive(call(many(STEPS * CHANGES_AT_ONCE)))
    dialect.receive(call(many(1)))
    assert (dialect.busy, len(applied)) == (False, 1)
    assert len(documents[URI].text) == STEPS * CHANGES_AT_ONCE + 2
