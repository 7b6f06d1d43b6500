"""A session as an editor has it, in memory and with a real process."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from todo_server import todo

from discreet.client import Peer
from discreet.testing import in_memory, spawned

HERE = Path(__file__).parent
URI = "file:///notes.txt"
TEXT = "# TODO rose\nTODO 🌹 rose DONE\n"
CAPABILITIES = {"workspace": {"applyEdit": True, "configuration": True}, "window": {"workDoneProgress": True}}
Serving = Callable[[], AbstractAsyncContextManager[Peer]]


@pytest.fixture(params=["in memory", "spawned"])
def serving(request: pytest.FixtureRequest) -> Serving:
    if request.param == "in memory":
        return lambda: in_memory(todo)
    return lambda: spawned("./todo_server.py:todo", cwd=HERE)


def at(line: int, character: int) -> dict[str, Any]:
    return {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}


@pytest.mark.anyio
async def test_an_editor_works_with_a_document(serving: Serving) -> None:
    async with serving() as peer:
        told = anyio.Event()
        published: list[Any] = []
        edits: list[Any] = []
        kinds: list[str] = []

        def take_diagnostics(params: Any) -> None:
            published.append(params["diagnostics"])
            told.set()

        async def apply_edit(params: Any) -> Any:
            edits.append(params["edit"]["changes"][URI])
            return {"applied": True}

        async def configuration(params: Any) -> Any:
            return ["LATER" for _ in params["items"]]

        async def create(params: Any) -> None: ...

        peer.on_notification("textDocument/publishDiagnostics", take_diagnostics)
        peer.on_notification("$/progress", lambda params: kinds.append(params["value"]["kind"]))
        peer.on_request("workspace/applyEdit", apply_edit)
        peer.on_request("workspace/configuration", configuration)
        peer.on_request("window/workDoneProgress/create", create)

        server = await peer.call("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        assert server["serverInfo"] == {"name": "todo", "version": "1.0"}
        assert server["capabilities"]["completionProvider"] == {"triggerCharacters": ["#"]}
        await peer.notify("initialized", {})
        item = {"uri": URI, "languageId": "plaintext", "version": 1, "text": TEXT}
        await peer.notify("textDocument/didOpen", {"textDocument": item})

        assert (await peer.call("textDocument/hover", at(1, 9)))["contents"] == "`rose`: 2 times"
        assert [word["label"] for word in await peer.call("textDocument/completion", at(0, 1))] == [
            "TODO",
            "DONE",
            "LATER",
        ]
        renamed = await peer.call("textDocument/rename", {**at(1, 9), "newName": "tulip"})
        assert [edit["range"]["start"]["character"] for edit in renamed["changes"][URI]] == [7, 8]
        pulled = await peer.call("textDocument/diagnostic", {"textDocument": {"uri": URI}})
        await told.wait()
        assert pulled["items"] == published[0]

        assert await peer.call("workspace/executeCommand", {"command": "todo.finish_all", "arguments": [URI]}) is True
        assert [edit["newText"] for edit in edits[0]] == ["LATER", "LATER"]
        assert kinds == ["begin", "report", "report", "end"]
        assert await peer.call("shutdown") is None
        await peer.notify("exit")


@pytest.mark.anyio
async def test_a_document_that_was_closed_has_nothing() -> None:
    async with in_memory(todo) as peer:
        await peer.call("initialize", {"processId": None, "rootUri": None, "capabilities": CAPABILITIES})
        await peer.notify("initialized", {})
        assert await peer.call("textDocument/hover", at(0, 1)) is None
        assert await peer.call("textDocument/rename", {**at(0, 1), "newName": "tulip"}) is None
        assert (await peer.call("textDocument/diagnostic", {"textDocument": {"uri": URI}}))["items"] == []
        assert await peer.call("workspace/executeCommand", {"command": "todo.finish_all", "arguments": [URI]}) is False
