"""What comes with pygls' workspace: the folders, the root, documents of files that are not open; and the beginning and the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet import Context, Service, lsp
from discreet.daemon.documents import Documents, path_of_uri
from support.logged_events import logged_events
from support.lsp_messages import note, opened, shake_hands

pytestmark = pytest.mark.anyio

RUN = "workspace/executeCommand"
ONE, TWO = {"uri": "file:///one", "name": "one"}, {"uri": "file:///two", "name": "two"}


def workspace() -> Service:
    service = Service("w", dialect="lsp")

    @service.command
    async def folders(ctx: Context) -> dict[str, Any]:
        return {"root": ctx.documents.root_uri, "folders": dict(ctx.documents.folders)}

    @service.command
    def word(ctx: Context, uri: str) -> list[Any]:
        document = ctx.documents.read(uri)
        return [document.version, document.word_at(lsp.Position(0, 1))]

    return service


@pytest.mark.parametrize(
    ("params", "root", "folders"),
    [
        (
            {"workspaceFolders": [ONE, TWO], "rootUri": "file:///one"},
            "file:///one",
            {"file:///one": "one", "file:///two": "two"},
        ),
        ({"workspaceFolders": [TWO]}, "file:///two", {"file:///two": "two"}),
        ({"rootUri": "file:///a/b"}, "file:///a/b", {"file:///a/b": "b"}),
        ({"rootPath": "/a b", "rootUri": None}, "file:///a%20b", {"file:///a%20b": "a%20b"}),
        ({"rootPath": "C:\\a"}, "file:///C%3A/a", {"file:///C%3A/a": "a"}),
        ({"workspaceFolders": None}, None, {}),
        (
            {"workspaceFolders": [5, {"uri": 5}, {"uri": "file:///x", "name": 5}], "rootUri": 5},
            "file:///x",
            {"file:///x": ""},
        ),
        ({"workspaceFolders": [{"uri": "x" * 300_000}], "rootUri": "y" * 300_000}, None, {}),
    ],
)
async def test_the_folders_of_the_workspace_are_kept(
    serving: Any, params: dict[str, Any], root: str | None, folders: dict[str, str]
) -> None:
    async with serving(workspace()) as wire:
        await wire.call("initialize", {"capabilities": {}, **params})
        await wire.send(note("initialized"))
        assert (await wire.call(RUN, {"command": "w.folders"}))["result"] == {"root": root, "folders": folders}


async def test_folders_come_and_go(serving: Any) -> None:
    changed = "workspace/didChangeWorkspaceFolders"
    async with serving(workspace()) as wire:
        result = await wire.call("initialize", {"capabilities": {}, "workspaceFolders": [ONE]})
        offered = result["result"]["capabilities"]["workspace"]["workspaceFolders"]
        assert offered == {"supported": True, "changeNotifications": True}
        await wire.send(note("initialized"))
        await wire.send(note(changed, {"event": {"added": [TWO], "removed": [ONE]}}), note(changed, {"event": 5}))
        assert (await wire.call(RUN, {"command": "w.folders"}))["result"]["folders"] == {"file:///two": "two"}


async def test_a_document_that_is_not_open_is_that_of_its_file(serving: Any, tmp_path: Path) -> None:
    path = tmp_path / "a b.txt"
    path.write_bytes(b"ab\r\ncd")
    uri = path.as_uri()
    async with serving(workspace()) as wire:
        await shake_hands(wire)

        async def word(of: str) -> Any:
            return (await wire.call(RUN, {"command": "w.word", "arguments": [of]})).get("result")

        assert await word(uri) == [0, "ab"]
        await wire.send(opened(uri, "tea", 7))
        assert await word(uri) == [7, "tea"]
        assert await word("file:///none/of/it") is None
        assert await word("untitled:1") is None


async def test_a_document_of_a_text_counts_as_the_client_does(serving: Any) -> None:
    service = Service("w", dialect="lsp")

    @service.query
    async def length(ctx: Context) -> int:
        return ctx.documents.of_text("a😀", "file:///x").position_at(2).character

    async with serving(service) as wire:
        await shake_hands(wire, general={"positionEncodings": ["utf-8"]})
        assert (await wire.call("w/length"))["result"] == 5


@pytest.mark.parametrize(
    ("uri", "posix", "windows"),
    [
        ("file:///a%20b/%C3%A9", "/a b/é", "\\a b\\é"),
        ("file:///c%3A/a", "/c:/a", "c:\\a"),
        ("file:///C:/a", "/C:/a", "C:\\a"),
        ("file://server/share/a", "/share/a", "\\\\server\\share\\a"),
        ("file://localhost/a", "/a", "\\a"),
    ],
)
def test_a_uri_is_the_path_of_the_system(uri: str, posix: str, windows: str) -> None:
    assert path_of_uri(uri, windows=False) == posix
    assert path_of_uri(uri, windows=True) == windows


def test_documents_and_the_root_have_the_paths_of_their_uris() -> None:
    documents = Documents()
    assert documents.root_path is None
    documents.root_uri = "file:///a%20b"
    assert documents.root_path == path_of_uri("file:///a%20b")
    assert documents.of_text("", "file:///c").path == path_of_uri("file:///c")
    assert documents.of_text("", "untitled:1").path is None


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "https://a/b", "", "file:///a%00b"])
def test_a_uri_that_names_no_file_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"names no file|NUL"):
        path_of_uri(uri)


async def test_a_shutdown_handler_may_talk_to_the_client_before_it_is_answered(serving: Any) -> None:
    service = Service("w", dialect="lsp")

    @service.shutdown
    async def end(ctx: Context) -> None:
        lsp.Editor(ctx).log_message("bye")
        assert await lsp.Editor(ctx).choose("Save?", ["Yes", "No"]) == "Yes"

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send({"jsonrpc": "2.0", "id": 9, "method": "shutdown"})
        assert (await wire.receive())["method"] == "window/logMessage"
        asked = await wire.receive()
        assert asked["method"] == "window/showMessageRequest"
        assert (await wire.call("w/none"))["error"]["code"] == -32600
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"title": "Yes"}})
        assert await wire.receive() == {"jsonrpc": "2.0", "id": 9, "result": None}


async def test_a_shutdown_handler_of_a_plain_service_runs_before_the_daemon_ends(serving: Any) -> None:
    service, ran = Service("w"), list[str]()

    @service.shutdown
    def end() -> None:
        ran.append("end")

    async with serving(service) as wire:
        assert "message" in (await wire.call("shutdown"))["result"]
    assert ran == ["end"]


@pytest.mark.parametrize(("dialect", "told"), [("mcp", ["w"]), ("acp", ["w"]), ("lsp", None), ("plain", None)])
async def test_a_shutdown_handler_that_no_client_can_reach_is_told_of(
    serving: Any, dialect: Any, told: list[str] | None
) -> None:
    service = Service("w", dialect=dialect)

    @service.shutdown
    def end() -> None: ...

    with logged_events("warning") as events:
        async with serving(service):
            found = dict(events()).get("shutdown.unheard")
    assert (None if found is None else found["services"]) == told


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_feature_that_is_declared_during_initialize_is_a_capability(serving: Any, threaded: bool) -> None:
    service = Service("w", dialect="lsp")

    def declare() -> None:
        @service.query("textDocument/hover")
        async def hover(params: lsp.HoverParams, /) -> lsp.Hover:
            return lsp.Hover(contents="here")

        @service.command("w.late")
        async def late() -> str:
            return "late"

    if threaded:

        @service.initialize
        def begin() -> None:
            declare()

    else:

        @service.initialize
        async def begin_on_loop() -> None:
            declare()

    async with serving(service) as wire:
        capabilities = (await shake_hands(wire))["capabilities"]
        assert capabilities["hoverProvider"] is True
        assert capabilities["executeCommandProvider"] == {"commands": ["w.late"]}
        where = {"textDocument": {"uri": "file:///a"}, "position": {"line": 0, "character": 0}}
        assert (await wire.call("textDocument/hover", where))["result"] == {"contents": "here"}
        assert (await wire.call(RUN, {"command": "w.late"}))["result"] == "late"


async def test_an_editor_that_has_not_said_so_can_be_asked_for_its_configuration(serving: Any) -> None:
    service = Service("w", dialect="lsp")

    @service.query
    async def both(ctx: Context) -> list[Any]:
        editor = lsp.Editor(ctx)
        return [await editor.configuration("a"), await editor.configuration("a", anyway=True)]

    async with serving(service) as wire:
        await shake_hands(wire)
        await wire.send({"jsonrpc": "2.0", "id": 9, "method": "w/both"})
        asked = await wire.receive()
        assert asked["method"] == "workspace/configuration"
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": [3]})
        assert (await wire.receive())["result"] == [[None], [3]]
