"""A reload hands the session on: the client sends neither its handshake nor its documents again."""

from __future__ import annotations

from typing import Any

import pytest

from discreet import Context, Service
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.transports.memory import memory_pair

pytestmark = pytest.mark.anyio


def language() -> Service:
    service = Service("texts", dialect="lsp")

    @service.query
    async def seen(ctx: Context) -> None: ...

    return service


def note(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


async def test_the_handshake_and_the_documents_outlive_a_reload(serving: Any) -> None:
    async with serving(language()) as wire:
        general = {"positionEncodings": ["utf-8"]}
        hello = {"clientInfo": {"name": "vim", "version": "9"}, "capabilities": {"general": general}}
        await wire.call("initialize", hello)
        item = {"uri": "a", "languageId": "x", "version": 7, "text": "one"}
        await wire.send(note("textDocument/didOpen", {"textDocument": item}))
        book = {"uri": "nb", "notebookType": "jupyter", "version": 3, "cells": [{"kind": 2, "document": "c"}]}
        cells = [{"uri": "c", "languageId": "x", "version": 1, "text": "cell"}]
        await wire.send(note("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": cells}))
        await wire.call("texts/seen")
        left = wire.daemon.connection.state()
    ours, _ = memory_pair()
    following = Daemon(Host([language()], Settings(), version="2"), ours, state=left)
    context = following.connection.context_host
    assert (context.client.name, context.documents.encoding) == ("vim", "utf-8")
    assert {uri: (one.version, one.text) for uri, one in context.documents.items()} == {
        "a": (7, "one"),
        "c": (1, "cell"),
    }
    assert [cell.document for cell in context.documents.notebooks["nb"].cells] == ["c"]
    assert context.session.dialect.state == "initialized"  # type: ignore[attr-defined]
