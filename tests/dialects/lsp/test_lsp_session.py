"""A language server as an editor sees it: the handshake, documents, errors, commands, progress, partial results."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest

from discreet import Context, OperationError, Service, lsp
from support.backends import both_loops
from support.logged_events import LoggedEvents
from support.lsp_messages import note, opened, shake_hands
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

URI = "file:///a.txt"
WHERE = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 1}}


class TooLarge(OperationError, code="TOO_LARGE"):
    """The document is too large"""

    limit: int


def changed(text: str, version: int, span: tuple[int, int] | None = None) -> dict[str, Any]:
    change: dict[str, Any] = {"text": text}
    if span is not None:
        change["range"] = {"start": {"line": 0, "character": span[0]}, "end": {"line": 0, "character": span[1]}}
    return note(
        "textDocument/didChange", {"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}
    )


def language() -> Service:
    service = Service("toy", version="2.1", dialect="lsp")

    @service.query("textDocument/hover", errors=[TooLarge, lsp.ContentModified])
    def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover:
        document = ctx.documents[params.text_document.uri]
        if document.text == "large":
            raise TooLarge(limit=3)
        if document.text == "changing":
            raise lsp.ContentModified
        if document.text == "crash":
            raise RuntimeError("secret text")
        return lsp.Hover(contents=f"{document.version}:{document.word_at(params.position)}")

    return service


async def test_before_the_handshake_requests_are_refused_and_notifications_dropped(serving: Any) -> None:
    async with serving(language()) as wire:
        await wire.send(opened(URI, "lost"))
        assert (await wire.call("textDocument/hover", WHERE))["error"]["code"] == -32002
        await shake_hands(wire)
        assert (await wire.call("initialize", {"capabilities": {}}))["error"]["code"] == -32600
        assert (await wire.call("textDocument/hover", WHERE))["error"]["code"] == -32603


async def test_the_editor_is_told_what_the_server_can(serving: Any) -> None:
    async with serving(language()) as wire:
        result = await shake_hands(wire)
        assert result == {
            "capabilities": {
                "positionEncoding": "utf-16",
                "textDocumentSync": {"openClose": True, "change": 2},
                "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
                "hoverProvider": True,
            },
            "serverInfo": {"name": "toy", "version": "2.1"},
        }


@pytest.mark.parametrize(
    ("offered", "chosen", "word"),
    [(["utf-8", "utf-16"], "utf-8", "1:b"), (["ebcdic", "utf-32"], "utf-32", "1:c"), (None, "utf-16", "1:")],
)
async def test_positions_are_read_in_the_encoding_that_was_agreed_on(
    serving: Any, offered: Any, chosen: str, word: str
) -> None:
    async with serving(language()) as wire:
        result = await shake_hands(wire, general={} if offered is None else {"positionEncodings": offered})
        assert result["capabilities"]["positionEncoding"] == chosen
        await wire.send(opened(URI, "😀 b c"))
        where = {**WHERE, "position": {"line": 0, "character": {"utf-8": 5, "utf-16": 2, "utf-32": 4}[chosen]}}
        assert (await wire.call("textDocument/hover", where))["result"]["contents"] == word


async def test_a_change_that_can_not_be_read_closes_the_document_rather_than_leave_it_old(serving: Any) -> None:
    async with serving(language()) as wire:
        await shake_hands(wire)
        await wire.send(
            opened(URI, "abc"), note("textDocument/didChange", {"textDocument": {"uri": URI, "version": "x"}})
        )
        assert (await wire.call("textDocument/hover", WHERE))["error"]["code"] == -32603
        await wire.send(opened(URI, "def"))
        assert (await wire.call("textDocument/hover", WHERE))["result"]["contents"] == "1:def"


async def test_a_change_of_nobody_knows_what_leaves_the_documents(serving: Any) -> None:
    async with serving(language()) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, "abc"), note("textDocument/didChange", {"textDocument": 3}), note("$/unknown"))
        assert (await wire.call("textDocument/hover", WHERE))["result"]["contents"] == "1:abc"
        assert (await wire.call("$/unknown"))["error"]["code"] == -32601
        await wire.send(note("textDocument/didClose", {"textDocument": {"uri": URI}}))
        assert (await wire.call("textDocument/hover", WHERE))["error"]["code"] == -32603


@pytest.mark.parametrize(
    ("text", "code", "data"),
    [
        ("large", -32803, {"code": "TOO_LARGE", "retryable": False, "details": {"limit": 3}}),
        ("changing", -32801, {"code": "CONTENT_MODIFIED", "retryable": True}),
        ("crash", -32603, None),
    ],
)
async def test_errors_have_the_numbers_of_lsp(serving: Any, text: str, code: int, data: Any) -> None:
    async with serving(language()) as wire:
        await shake_hands(wire)
        await wire.send(opened(URI, text))
        error = (await wire.call("textDocument/hover", WHERE))["error"]
        assert (error["code"], error.get("data")) == (code, data)
        assert "secret" not in str(error)


RUN = "workspace/executeCommand"


def todo() -> Service:
    service = Service("todo", dialect="lsp")

    @service.command("words.count")
    async def count(word: str) -> int:
        return len(word)

    @service.command
    async def fix(ctx: Context, uri: str, line: int = 0) -> str:
        return f"{uri}:{line}"

    @service.command
    async def fix_all(ctx: Context, head: str = "all", *numbers: int) -> str:
        return f"{head}: {','.join(map(str, numbers))}"

    return service


@pytest.mark.parametrize(
    ("command", "arguments", "outcome"),
    [
        ("words.count", ["tea"], 3),
        ("todo.fix", ["u", 3], "u:3"),
        ("todo.fix", ["u"], "u:0"),
        ("todo.fix", ["u", "x"], {"param": "arguments.line"}),
        ("todo.fix_all", [], "all: "),
        ("todo.fix_all", ["u", 1, 2, 3], "u: 1,2,3"),
        ("todo.fix_all", ["u", 1, "x"], {"param": "arguments.numbers[1]"}),
        ("todo.nope", [], {"accepted": ["todo.fix", "todo.fix_all", "words.count"]}),
    ],
)
async def test_commands_have_their_own_names_and_take_typed_arguments_by_position(
    serving: Any, command: str, arguments: list[Any], outcome: Any
) -> None:
    async with serving(todo()) as wire:
        result = await shake_hands(wire)
        commands = ["todo.fix", "todo.fix_all", "words.count"]
        assert sorted(result["capabilities"]["executeCommandProvider"]["commands"]) == commands
        answer = await wire.call(RUN, {"command": command, "arguments": arguments})
        if isinstance(outcome, dict):
            assert answer["error"]["code"] == -32602
            data = {name: answer["error"]["data"][name] for name in outcome}
            assert {name: sorted(each) if name == "accepted" else each for name, each in data.items()} == outcome
        else:
            assert answer["result"] == outcome


async def test_partial_results_go_out_at_once_where_they_are_asked_for(serving: Any) -> None:
    service = Service(dialect="lsp")

    @service.subscription("textDocument/documentSymbol")
    async def symbols(params: dict[str, Any], /) -> AsyncIterator[list[Any]]:
        for part in ([1, 2], [], [3]):
            yield part

    async with serving(service) as wire:
        await shake_hands(wire)
        assert (await wire.call("textDocument/documentSymbol", {}))["result"] == [1, 2, 3]
        await wire.send(wire.request("textDocument/documentSymbol", {"partialResultToken": "t"}))
        *parts, last = await wire.receive_all(4)
        assert [part["params"] for part in parts] == [{"token": "t", "value": v} for v in ([1, 2], [], [3])]
        assert last["result"] == []


def found_tokens() -> Service:
    service = Service(dialect="lsp")

    @service.subscription("textDocument/semanticTokens/full", options={"legend": LEGEND})
    def tokens(params: lsp.SemanticTokensParams, /) -> Iterator[lsp.SemanticTokensPartialResult]:
        for part in () if params.text_document.uri == "none" else ([1, 2], [], [3]):
            assert threading.current_thread() is not threading.main_thread()
            yield lsp.SemanticTokensPartialResult(data=part)

    @service.subscription("workspace/diagnostic")
    async def check(
        params: lsp.WorkspaceDiagnosticParams, /
    ) -> AsyncIterator[lsp.WorkspaceDiagnosticReportPartialResult]:
        for version in (1, 2):
            report = lsp.WorkspaceFullDocumentDiagnosticReport(uri="a", version=version, items=[])
            yield lsp.WorkspaceDiagnosticReportPartialResult(items=[report])

    @service.subscription(
        "textDocument/diagnostic", options={"interFileDependencies": True, "workspaceDiagnostics": True}
    )
    async def with_related(params: lsp.DocumentDiagnosticParams, /) -> AsyncIterator[Any]:
        yield lsp.RelatedFullDocumentDiagnosticReport(result_id="7", items=[])
        for uri in ("b", "c"):
            found = lsp.FullDocumentDiagnosticReport(items=[])
            yield lsp.DocumentDiagnosticReportPartialResult(related_documents={uri: found})

    return service


LEGEND = {"tokenTypes": ["a"], "tokenModifiers": []}
EMPTY = {"kind": "full", "items": []}


@pytest.mark.parametrize(
    ("method", "params", "whole", "count", "nothing"),
    [
        ("textDocument/semanticTokens/full", {"textDocument": {"uri": "a"}}, {"data": [1, 2, 3]}, 3, {"data": []}),
        ("textDocument/semanticTokens/full", {"textDocument": {"uri": "none"}}, {"data": []}, 0, {"data": []}),
        (
            "workspace/diagnostic",
            {"previousResultIds": []},
            {"items": [{"uri": "a", "version": version, **EMPTY} for version in (1, 2)]},
            2,
            {"items": []},
        ),
        (
            "textDocument/diagnostic",
            {"textDocument": {"uri": "a"}},
            {"resultId": "7", **EMPTY, "relatedDocuments": {"b": EMPTY, "c": EMPTY}},
            3,
            EMPTY,
        ),
    ],
)
@both_loops
async def test_partial_results_that_are_structs_are_joined_where_they_are_not_asked_for(
    serving: Any, method: str, params: dict[str, Any], whole: Any, count: int, nothing: Any
) -> None:
    async with serving(found_tokens()) as wire:
        await shake_hands(wire)
        assert (await wire.call(method, params))["result"] == whole
        await wire.send(wire.request(method, {**params, "partialResultToken": 5}))
        *parts, last = await wire.receive_all(count + 1)
        assert [part["params"]["token"] for part in parts] == [5] * count
        assert last["result"] == nothing


@both_loops
async def test_a_generator_is_closed_when_its_request_is_cancelled(serving: Any) -> None:
    service, ends = Service(dialect="lsp"), list[str]()

    @service.subscription("textDocument/documentSymbol")
    def symbols(ctx: Context, params: lsp.DocumentSymbolParams, /) -> Iterator[list[lsp.DocumentSymbol]]:
        try:
            while True:
                yield []
                ends.append("step")
        finally:
            ends.append("closed")

    async with serving(service) as wire:
        await shake_hands(wire)
        asked = wire.request("textDocument/documentSymbol", {"textDocument": {"uri": "a"}})
        await wire.send(asked)
        await until(lambda: ends)
        await wire.send(note("$/cancelRequest", {"id": asked["id"]}))
        assert (await wire.receive())["error"]["code"] == -32800
        await until(lambda: ends[-1] == "closed")


async def test_what_is_registered_later_is_registered_after_the_handshake(serving: Any) -> None:
    service = Service(dialect="lsp")

    @service.notification("workspace/didChangeWatchedFiles", options={"watchers": [{"globPattern": "*"}]})
    def watched(params: lsp.DidChangeWatchedFilesParams, /) -> None: ...

    async with serving(service) as wire:
        await shake_hands(wire, workspace={"didChangeWatchedFiles": {"dynamicRegistration": True}})
        asked = await wire.receive()
        assert asked["method"] == "client/registerCapability"
        assert asked["params"]["registrations"][0]["registerOptions"] == {"watchers": [{"globPattern": "*"}]}
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
    async with serving(service) as wire:
        await shake_hands(wire)
        assert (await wire.call("shutdown"))["result"] is None


@pytest.mark.parametrize("shown", [True, False])
async def test_a_document_is_shown_with_all_that_lsp_knows(serving: Any, shown: bool) -> None:
    service = Service("w", dialect="lsp")

    @service.command
    async def show(ctx: Context) -> bool:
        place = lsp.Range(lsp.Position(1, 2), lsp.Position(3, 4))
        return await lsp.Editor(ctx).show_document(URI, external=True, take_focus=True, selection=place)

    async with serving(service) as wire:
        await shake_hands(wire, window={"showDocument": {"support": True}})
        await wire.send(wire.request(RUN, {"command": "w.show"}))
        asked = await wire.receive()
        assert (asked["method"], asked["params"]) == (
            "window/showDocument",
            {
                "uri": URI,
                "external": True,
                "takeFocus": True,
                "selection": {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}},
            },
        )
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"success": shown}})
        assert (await wire.receive())["result"] is shown


async def test_the_editor_is_only_asked_what_it_can(serving: Any) -> None:
    service = Service("ask", dialect="lsp")

    @service.command
    async def all_of_it(ctx: Context) -> list[Any]:
        editor = lsp.Editor(ctx)
        edit = await editor.apply_edit(lsp.WorkspaceEdit(changes={}))
        shown = await editor.show_document("https://example.org", external=True)
        return [edit.applied, shown, await editor.configuration("a", "b")]

    run = {"command": "ask.all_of_it"}
    async with serving(service) as wire:
        await shake_hands(wire)
        assert (await wire.call("workspace/executeCommand", run))["result"] == [False, False, [None, None]]
    async with serving(service) as wire:
        await shake_hands(
            wire, workspace={"applyEdit": True, "configuration": True}, window={"showDocument": {"support": True}}
        )
        await wire.send(wire.request("workspace/executeCommand", run))
        for result in ({"applied": True}, {"success": True}, [1, 2]):
            asked = await wire.receive()
            await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        assert (await wire.receive())["result"] == [True, True, [1, 2]]


async def test_diagnostics_have_the_version_of_the_document_that_is_open(serving: Any) -> None:
    service = Service("lint", dialect="lsp")

    @service.notification("textDocument/didOpen")
    async def check(ctx: Context, params: lsp.DidOpenTextDocumentParams, /) -> None:
        at = lsp.Range(start=lsp.Position(0, 0), end=lsp.Position(0, 1))
        await lsp.Editor(ctx).publish_diagnostics(URI, [lsp.Diagnostic(range=at, message="no")])

    async with serving(service) as wire:
        await shake_hands(wire, textDocument={"publishDiagnostics": {"versionSupport": True}})
        await wire.send(opened(URI, "x", 9))
        params = (await wire.receive())["params"]
        assert (params["uri"], params["version"], params["diagnostics"][0]["message"]) == (URI, 9, "no")


async def test_a_document_that_a_handler_has_never_changes_and_its_diagnostics_have_its_version(serving: Any) -> None:
    taken, gate = threading.Event(), threading.Event()
    service = Service("lint", dialect="lsp")

    @service.query
    def check(ctx: Context) -> list[Any]:
        document = ctx.documents[URI]
        taken.set()
        assert gate.wait(DEADLINE_SECONDS)
        lsp.Editor(ctx).publish_diagnostics(URI, [], version=document.version)
        return [document.version, document.text, ctx.documents[URI].text]

    @service.query(inline=True)
    def go() -> None:
        gate.set()

    async with serving(service) as wire:
        await shake_hands(wire, textDocument={"publishDiagnostics": {"versionSupport": True}})
        await wire.send(opened(URI, "old", 9), wire.request("lint/check", id="c"))
        await until(taken.is_set)
        await wire.send(changed("new", 10), wire.request("lint/go", id="g"))
        messages = {message.get("id"): message for message in await wire.receive_all(3)}
        assert messages["c"]["result"] == [9, "old", "new"]
        assert messages[None]["params"]["version"] == 9


async def test_notebooks_and_their_cells_are_kept(serving: Any) -> None:
    service = Service("book", dialect="lsp")

    @service.query(name="cells")
    async def cells(ctx: Context) -> list[Any]:
        book = ctx.documents.notebooks["nb:1"]
        return [book.version, *(ctx.documents[cell.document].text for cell in book.cells)]

    def cell(name: str) -> dict[str, Any]:
        return {"kind": 2, "document": name}

    def item(name: str, text: str) -> dict[str, Any]:
        return {"uri": name, "languageId": "python", "version": 1, "text": text}

    async with serving(service) as wire:
        await shake_hands(wire)
        book = {"uri": "nb:1", "notebookType": "jupyter", "version": 1, "cells": [cell("c1"), cell("c2")]}
        texts = [item("c1", "one"), item("c2", "two")]
        await wire.send(note("notebookDocument/didOpen", {"notebookDocument": book, "cellTextDocuments": texts}))
        assert (await wire.call("book/cells"))["result"] == [1, "one", "two"]
        structure = {
            "array": {"start": 1, "deleteCount": 1, "cells": [cell("c3")]},
            "didOpen": [item("c3", "three")],
            "didClose": [{"uri": "c2"}],
        }
        content = [{"document": {"uri": "c1", "version": 2}, "changes": [{"text": "ONE"}]}]
        change = {"cells": {"structure": structure, "textContent": content}}
        await wire.send(
            note("notebookDocument/didChange", {"notebookDocument": {"uri": "nb:1", "version": 2}, "change": change})
        )
        assert (await wire.call("book/cells"))["result"] == [2, "ONE", "three"]


# -- `initialize` with wrong params: refused by the name of the param, or ignored; the server lives on and may be greeted again --


def encodings(value: Any) -> dict[str, Any]:
    return {"capabilities": {"general": {"positionEncodings": value}}}


REFUSED: list[tuple[Any, str, str]] = [
    ([1], "$", "array"),
    ({"capabilities": 5}, "capabilities", "number"),
    ({"capabilities": {"general": "x"}}, "capabilities.general", "string"),
    (encodings("utf-8"), "capabilities.general.positionEncodings", "string"),
    (encodings([5, "utf-8"]), "capabilities.general.positionEncodings[0]", "number"),
    ({"processId": "x", "capabilities": {}}, "processId", "string"),
]
"""What the server itself needs of it: params, the param that is named, and what it received."""

IGNORED: list[Any] = [
    None,
    [],
    {},
    {"capabilities": []},  # clients in Lua
    {"capabilities": {"textDocument": 5, "workspace": "x", "window": []}},
    {"capabilities": {"window": {"workDoneProgress": "yes"}}},
    encodings(None),
    *({"processId": pid, "capabilities": {}} for pid in (None, 0, -1, 10**30)),
    *({name: 5, "capabilities": {}} for name in ("clientInfo", "trace", "locale", "rootUri", "rootPath")),
    *({"workspaceFolders": given, "capabilities": {}} for given in (5, [5], [{"uri": 5}])),
    {"workDoneToken": {}, "capabilities": {}},
]

REFUSED_BY_TYPE: list[tuple[Any, str]] = [
    ({}, "capabilities"),
    ({"capabilities": {}, "processId": None, "workspaceFolders": [{"uri": 5}]}, "workspaceFolders[0].uri"),
    ({"capabilities": {}, "processId": None, "rootUri": 5}, "rootUri"),
]


def without_hook() -> Service:
    return Service("toy", dialect="lsp")


def with_hook() -> Service:
    service = without_hook()

    @service.initialize
    async def begin(ctx: Context) -> None: ...

    return service


@pytest.mark.parametrize("service", [without_hook, with_hook])
async def test_wrong_params_are_refused_by_name_and_the_client_may_try_again(serving: Any, service: Any) -> None:
    for params, param, received in REFUSED:
        async with serving(service()) as wire:
            error = (await wire.call("initialize", params))["error"]
            assert (error["code"], error["data"]["param"], error["data"]["received"]) == (-32602, param, received)
            assert "capabilities" in (await wire.call("initialize", {"capabilities": {}}))["result"]


@pytest.mark.parametrize("service", [without_hook, with_hook])
async def test_what_the_server_does_not_need_is_not_looked_at(serving: Any, service: Any) -> None:
    for params in IGNORED:
        async with serving(service()) as wire:
            result = (await wire.call("initialize", params))["result"]
            assert result["capabilities"]["positionEncoding"] == "utf-16", params
            assert (await wire.call("shutdown"))["result"] is None


async def test_a_typed_handler_refuses_wrong_params_by_name(serving: Any) -> None:
    service = without_hook()

    @service.initialize
    def begin(params: lsp.InitializeParams, /) -> None: ...

    for params, param in REFUSED_BY_TYPE:
        async with serving(service) as wire:
            error = (await wire.call("initialize", params))["error"]
            assert (error["code"], error["data"]["param"]) == (-32602, param)
            hello = {"processId": None, "rootUri": None, "capabilities": [], "workspaceFolders": []}
            assert "capabilities" in (await wire.call("initialize", hello))["result"]


async def test_a_greeting_that_is_cancelled_before_it_begins_may_be_repeated(serving: Any) -> None:
    gate = threading.Event()
    service = without_hook()

    @service.initialize
    def begin(ctx: Context) -> None:
        assert gate.wait(DEADLINE_SECONDS)

    async with serving(service) as wire:
        cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}}
        await wire.send(wire.request("initialize", {"capabilities": {}}), cancel)
        assert (await wire.receive())["error"]["code"] == -32800
        gate.set()
        assert "capabilities" in (await wire.call("initialize", {"capabilities": {}}))["result"]


async def test_a_cancellation_as_a_request_has_its_turn_like_any_other(serving: Any) -> None:
    async with serving(without_hook()) as wire:
        assert (await wire.call("$/cancelRequest", {"id": 7}))["error"]["code"] == -32002
        await wire.call("initialize", {"capabilities": {}})
        assert (await wire.call("$/cancelRequest", {"id": 7}))["result"] is None
        await wire.call("shutdown")
        assert (await wire.call("$/cancelRequest", {"id": 7}))["error"]["code"] == -32600


async def test_a_method_that_is_nearly_lsps_is_logged(serving: Any, logged: LoggedEvents) -> None:
    words = Service("words")

    @words.query("textDocument/hovr")
    def hover(params: lsp.HoverParams, /) -> None: ...

    async with serving(words, dialect="lsp"):
        pass
    (unknown,) = [fields for name, fields in logged() if name == "method.unknown"]
    assert "nearest: textDocument/hover;" in unknown["hint"]


# -- progress that an editor shows: with whose token, that it always ends, and what its user's cancellation ends --


def working() -> Service:
    service = Service("work", dialect="lsp")

    @service.command
    async def index(ctx: Context, *, wait: bool = False) -> bool:
        async with lsp.Editor(ctx).progress("Indexing", cancellable=True) as progress:
            await progress.report("half", 50)
            if wait:
                await anyio.sleep_forever()
        return progress.cancelled

    return service


async def test_progress_begins_reports_and_always_ends(serving: Any) -> None:
    async with serving(working()) as wire:
        await shake_hands(wire, window={"workDoneProgress": True})
        run = {"command": "work.index", "arguments": [], "workDoneToken": 7}
        await wire.send(wire.request("workspace/executeCommand", run))
        *told, answer = await wire.receive_all(4)
        assert [one["params"]["token"] for one in told] == [7, 7, 7]
        assert [one["params"]["value"]["kind"] for one in told] == ["begin", "report", "end"]
        assert answer["result"] is False
        await wire.send(wire.request("workspace/executeCommand", {"command": "work.index"}))
        created = await wire.receive()
        assert created["method"] == "window/workDoneProgress/create"
        await wire.send({"jsonrpc": "2.0", "id": created["id"], "result": None})
        assert {one["params"]["token"] for one in await wire.receive_all(3)} == {created["params"]["token"]}
        assert (await wire.receive())["result"] is False


async def test_a_token_belongs_to_the_first_progress_that_is_shown_with_it(serving: Any) -> None:
    async with serving(working()) as wire:
        await shake_hands(wire, window={"workDoneProgress": True})
        run = {"command": "work.index", "arguments": [True], "workDoneToken": "t"}
        first, second = wire.request("workspace/executeCommand", run), wire.request("workspace/executeCommand", run)
        await wire.send(first)
        await wire.receive_all(2)
        await wire.send(second)
        created = await wire.receive()
        assert created["method"] == "window/workDoneProgress/create"
        await wire.send({"jsonrpc": "2.0", "id": created["id"], "result": None})
        assert {one["params"]["token"] for one in await wire.receive_all(2)} == {created["params"]["token"]}
        for token, call in (("t", first), (created["params"]["token"], second)):
            await wire.send(note("window/workDoneProgress/cancel", {"token": token}))
            end, answer = await wire.receive_all(2)
            assert (end["params"]["token"], end["params"]["value"]["kind"]) == (token, "end")
            assert (answer["id"], answer["result"]) == (call["id"], True)


async def test_a_second_progress_of_a_request_is_one_of_its_own(serving: Any) -> None:
    service = Service("work", dialect="lsp")

    @service.command
    async def twice(ctx: Context) -> None:
        for title in ("One", "Two"):
            async with lsp.Editor(ctx).progress(title):
                pass

    async with serving(service) as wire:
        await shake_hands(wire)
        run = {"command": "work.twice", "workDoneToken": 7}
        await wire.send(wire.request("workspace/executeCommand", run))
        begin, end, answer = await wire.receive_all(3)
        assert [one["params"]["value"]["kind"] for one in (begin, end)] == ["begin", "end"]
        assert "result" in answer
