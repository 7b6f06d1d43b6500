"""A session as an editor has it, in memory and with a real process; and the contract."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from editor import Hover, NotOpen, Position, Range, text_document

from discreet.client import Peer
from discreet.testing import Example, check_contract, in_memory, spawned

HERE = Path(__file__).parent
URI = "file:///poem.txt"
TEXT = "a rose is a rose \nis a 🌹 rose"
Serving = Callable[[], AbstractAsyncContextManager[Peer]]


@pytest.fixture(params=["in memory", "spawned"])
def serving(request: pytest.FixtureRequest) -> Serving:
    if request.param == "in memory":
        return lambda: in_memory(text_document)
    return lambda: spawned("./editor.py:text_document", cwd=HERE)


@pytest.mark.anyio
async def test_an_editor_opens_a_document_and_hovers_over_a_word(serving: Serving) -> None:
    async with serving() as peer:
        told = anyio.Event()
        published: list[Any] = []

        def note(params: Any) -> None:
            published.append(params)
            told.set()

        peer.on_notification("textDocument/publishDiagnostics", note)
        server = await peer.call("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert server["serverInfo"]["name"] == "discreet"
        await peer.notify("initialized", {})
        item = {"uri": URI, "languageId": "plaintext", "version": 1, "text": TEXT}
        await peer.notify("textDocument/didOpen", {"textDocument": item})

        place = {"textDocument": {"uri": URI}, "position": {"line": 1, "character": 8}, "workDoneToken": "w"}
        hover = await peer.call("textDocument/hover", place, type=Hover)
        assert hover == Hover("`rose`: 3 times", Range(Position(1, 8), Position(1, 12)))
        first = await peer.call("textDocument/definition", place)
        assert first["range"]["start"] == {"line": 0, "character": 2}

        await told.wait()
        assert [found["range"]["start"] for found in published[0]["diagnostics"]] == [{"line": 0, "character": 16}]
        await peer.call("shutdown")
        await peer.notify("exit")


def test_the_contract_holds() -> None:
    here = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 2}}
    nowhere = {"textDocument": {"uri": "file:///other.txt"}, "position": {"line": 0, "character": 2}}
    changed = {"contentChanges": [{"text": "a tulip"}]}
    check_contract(
        text_document,
        examples=[
            Example("textDocument/didOpen", {"textDocument": {"uri": URI, "text": TEXT}}),
            Example("textDocument/hover", here, result=Hover("`rose`: 3 times", Range(Position(0, 2), Position(0, 6)))),
            Example("textDocument/hover", nowhere, error=NotOpen),
            Example("textDocument/definition", nowhere, error=NotOpen),
            Example("textDocument/didChange", {"textDocument": {"uri": URI}, **changed}),
            Example("textDocument/didChange", {"textDocument": nowhere["textDocument"], **changed}, error=NotOpen),
            Example("textDocument/didClose", {"textDocument": {"uri": URI}}),
        ],
        snapshot=HERE / "editor.schema.json",
    )
