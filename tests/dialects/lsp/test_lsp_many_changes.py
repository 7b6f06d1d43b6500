"""A notification with many changes is applied in steps: everything else runs in between, and no handler sees half of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discreet import Context, Service, lsp
from discreet.daemon.documents import Documents
from discreet.daemon.memory import MemoryBudget
from discreet.daemon.operations.request import Request
from discreet.daemon.rpc.dialect import IGNORED
from discreet.daemon.rpc.envelope import decode
from discreet.dialects.lsp.dialect import LspDialect
from discreet.dialects.lsp.sync import CHANGES_AT_ONCE
from support.lsp_messages import note, opened, shake_hands

pytestmark = pytest.mark.anyio

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


def test_nothing_is_read_and_nothing_changes_until_the_last_step() -> None:
    documents, applied = Documents(), list[Request]()
    dialect = dialect_with(documents, applied)
    dialect.receive(call(opened(URI, "a")))
    message = call(many(STEPS * CHANGES_AT_ONCE))
    assert dialect.receive(message) is IGNORED
    for _ in range(STEPS - 1):
        assert (dialect.busy, applied, documents[URI].text) == (True, [], "a")
        dialect.advance()
    assert (dialect.busy, applied) == (False, [message])
    assert (documents[URI].version, len(documents[URI].text)) == (2, STEPS * CHANGES_AT_ONCE + 1)
    dialect.receive(message)
    assert len(documents[URI].text) == STEPS * CHANGES_AT_ONCE + 1


def test_what_is_read_all_the_same_comes_behind() -> None:
    documents, applied = Documents(), list[Request]()
    dialect = dialect_with(documents, applied)
    dialect.receive(call(opened(URI, "a")))
    dialect.receive(call(many(STEPS * CHANGES_AT_ONCE)))
    dialect.receive(call(many(1)))
    assert (dialect.busy, len(applied)) == (False, 1)
    assert len(documents[URI].text) == STEPS * CHANGES_AT_ONCE + 2
