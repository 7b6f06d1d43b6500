"""What LSP 3.18 added: every entry of the meta model is listed here, with what becomes of it. A client that has its capability is sent
it as it is; another gets the form of 3.17, or nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from discreet import Context, Service, lsp
from discreet.dialects.lsp.capabilities import (
    ANNOUNCED,
    FILTER_PATTERNS,
    WATCHER_PATTERNS,
    announced_to,
    announcement,
    with_patterns,
)
from discreet.dialects.lsp.generated.names import HOMES
from discreet.dialects.lsp.generated.tables import CLIENT_CAPABILITIES_3_18, OPTIONS, REQUESTS, RESULTS_WITH
from discreet.dialects.lsp.guards import INSERT_REPLACE_SUPPORT, ITEM_DEFAULTS, ITEM_DEFAULTS_SUPPORT, RULES
from discreet.dialects.lsp.snippets import text_of
from support.lsp_messages import opened, shake_hands
from support.lsp_model import META_MODEL

pytestmark = pytest.mark.anyio

METHODS = """
    textDocument/inlineCompletion textDocument/rangesFormatting workspace/textDocumentContent
    workspace/foldingRange/refresh workspace/textDocumentContent/refresh
"""
GUARDED = """
    ApplyWorkspaceEditParams.metadata CodeAction.tags CodeActionOptions.documentation CompletionList.applyKind
    Diagnostic.message DocumentRangeFormattingOptions.rangesSupport MessageType.Debug
    ServerCapabilities.inlineCompletionProvider TextDocumentEdit.edits TextDocumentFilterLanguage.pattern
    TextDocumentFilterPattern.pattern TextDocumentFilterScheme.pattern WorkspaceOptions.textDocumentContent
"""
"""Sent to clients that have a capability, and otherwise in an older form or not at all."""

FREE = """
    CodeActionKind.Notebook CodeActionKind.RefactorMove Command.tooltip SemanticTokenTypes.label
"""
"""Sent to every client: the protocol names no capability, and clients ignore a member and take a value that they do not know."""

RECEIVED = "LanguageKind LanguageKind.D LanguageKind.Delphi LanguageKind.Pascal"
CAPABILITIES = """
    CodeActionClientCapabilities.documentationSupport CodeActionClientCapabilities.tagSupport
    CodeLensClientCapabilities.resolveSupport CompletionListCapabilities.applyKindSupport
    ClientSignatureInformationOptions.noActiveParameterSupport DiagnosticClientCapabilities.markupMessageSupport
    DocumentRangeFormattingClientCapabilities.rangesSupport FoldingRangeWorkspaceClientCapabilities.refreshSupport
    TextDocumentClientCapabilities.filters TextDocumentClientCapabilities.inlineCompletion
    TextDocumentFilterClientCapabilities.relativePatternSupport WorkspaceClientCapabilities.foldingRange
    WorkspaceClientCapabilities.textDocumentContent WorkspaceEditClientCapabilities.metadataSupport
    WorkspaceEditClientCapabilities.snippetEditSupport
"""
"""What a client may have."""

STRUCTS = """
    ApplyKind CodeActionDisabled CodeActionKindDocumentation CodeActionTag CompletionItemApplyKinds
    CompletionItemApplyKinds.commitCharacters CompletionItemApplyKinds.data DocumentRangesFormattingParams
    EditRangeWithInsertReplace InlineCompletionContext InlineCompletionItem InlineCompletionList
    InlineCompletionOptions InlineCompletionParams InlineCompletionTriggerKind LocationUriOnly
    MarkedStringWithLanguage NotebookCellLanguage NotebookDocumentCellChangeStructure NotebookDocumentCellChanges
    NotebookDocumentCellContentChanges NotebookDocumentFilterNotebookType NotebookDocumentFilterPattern
    NotebookDocumentFilterScheme NotebookDocumentFilterWithCells NotebookDocumentFilterWithNotebook
    PrepareRenameDefaultBehavior PrepareRenamePlaceholder SelectedCompletionInfo SemanticTokensFullDelta
    ServerCompletionItemOptions SnippetTextEdit StringValue TextDocumentContentChangePartial
    TextDocumentContentChangeWholeDocument TextDocumentContentOptions TextDocumentContentParams
    TextDocumentContentRefreshParams TextDocumentContentResult TextDocumentFilterLanguage TextDocumentFilterPattern
    TextDocumentFilterScheme WorkspaceEditMetadata ClientInfo
"""
"""Structs and enumerations of `discreet.lsp`, new or with a name now."""

JSON = """
    InlineCompletionRegistrationOptions TextDocumentContentRegistrationOptions WorkspaceOptions ServerInfo
    ChangeAnnotationsSupportOptions ClientCodeActionKindOptions ClientCodeActionLiteralOptions
    ClientCodeActionResolveOptions ClientCodeLensResolveOptions ClientCompletionItemInsertTextModeOptions
    ClientCompletionItemOptions ClientCompletionItemOptionsKind ClientCompletionItemResolveOptions
    ClientDiagnosticsTagOptions ClientFoldingRangeKindOptions ClientFoldingRangeOptions ClientInlayHintResolveOptions
    ClientSemanticTokensRequestFullDelta ClientSemanticTokensRequestOptions ClientShowMessageActionItemOptions
    ClientSignatureInformationOptions ClientSignatureParameterInformationOptions ClientSymbolKindOptions
    ClientSymbolResolveOptions ClientSymbolTagOptions CodeActionTagOptions CompletionItemTagOptions
    FoldingRangeWorkspaceClientCapabilities InlineCompletionClientCapabilities RegularExpressionEngineKind
    StaleRequestSupportOptions TextDocumentContentClientCapabilities
"""
"""Parts of what is JSON here: capabilities, and the options that the table of them has."""

KINDS = (METHODS, GUARDED, FREE, RECEIVED, CAPABILITIES, STRUCTS, JSON)


def since_3_18() -> Iterator[str]:
    for row in META_MODEL["requests"] + META_MODEL["notifications"]:
        if is_new(row):
            yield row["method"]
    for kind, parts in (("structures", "properties"), ("enumerations", "values"), ("typeAliases", "")):
        for each in META_MODEL[kind]:
            if is_new(each):
                yield each["name"]
            yield from (f"{each['name']}.{part['name']}" for part in each.get(parts, ()) if is_new(part))


def is_new(row: dict[str, Any]) -> bool:
    return tuple(map(int, row.get("since", "0").split("."))) >= (3, 18)


def test_every_entry_of_the_meta_model_is_listed_once() -> None:
    listed = " ".join(KINDS).split()
    assert sorted(listed) == sorted(since_3_18())


def test_entries_are_where_their_list_says() -> None:
    assert {name.partition(".")[0] for name in STRUCTS.split()} <= HOMES.keys()
    assert {name.partition(".")[0] for name in f"{FREE} {RECEIVED}".split()} <= HOMES.keys()
    assert not set(JSON.split()) & HOMES.keys()
    known = {path.rpartition(".")[2] for path in CLIENT_CAPABILITIES_3_18}
    assert {name.partition(".")[2] for name in CAPABILITIES.split()} == known | {
        "refreshSupport",
        "relativePatternSupport",
    }


def test_results_that_may_hold_something_new_are_those_of_the_meta_model() -> None:
    assert RULES.keys() == RESULTS_WITH.keys()
    assert {rule.capability for rule in RULES.values()} <= set(CLIENT_CAPABILITIES_3_18)


# -- the forms of 3.17 --

AT = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
RANGE = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))
URI = "file:///a.txt"
VERSIONED = lsp.OptionalVersionedTextDocumentIdentifier(uri=URI, version=1)
SNIPPET = lsp.WorkspaceEdit(
    document_changes=[
        lsp.TextDocumentEdit(
            text_document=VERSIONED,
            edits=[
                lsp.SnippetTextEdit(range=RANGE, snippet=lsp.StringValue(value="f(${1:x})$0")),
                lsp.TextEdit(range=RANGE, new_text="y"),
            ],
        )
    ]
)
MARKUP = lsp.Diagnostic(
    range=RANGE, message=lsp.MarkupContent(kind=lsp.MarkupKind.MARKDOWN, value="*no*"), data={"message": {}}
)
DEFAULTS = lsp.CompletionItemDefaults(
    commit_characters=["."], edit_range=RANGE, insert_text_format=lsp.InsertTextFormat.SNIPPET, data={"a": 1, "b": 1}
)
INSERT_REPLACE = lsp.EditRangeWithInsertReplace(insert=RANGE, replace=lsp.Range(lsp.Position(0, 0), lsp.Position(0, 9)))


def completions(**members: Any) -> lsp.CompletionList:
    items = [
        lsp.CompletionItem(label="x", commit_characters=[";"], data={"b": 2}, text_edit_text="xx"),
        lsp.CompletionItem(label="y"),
    ]
    return lsp.CompletionList(is_incomplete=False, items=items, **members)


MERGE = lsp.CompletionItemApplyKinds(commit_characters=lsp.ApplyKind.MERGE, data=lsp.ApplyKind.MERGE)


def reads(*defaults: str, commit_characters: bool = True) -> dict[str, Any]:
    """The capabilities of a client that reads these defaults."""
    item = {"commitCharactersSupport": commit_characters}
    return {"completion": {"completionItem": item, "completionList": {"itemDefaults": list(defaults)}}}


def language() -> Service:
    """A server that returns something new wherever it may."""
    service = Service("new", dialect="lsp")

    @service.query("textDocument/rename")
    async def rename(params: lsp.RenameParams, /) -> lsp.WorkspaceEdit | None:
        return SNIPPET

    @service.query(
        "textDocument/codeAction",
        options={"documentation": [{"kind": "source", "command": {"title": "?", "command": "c"}}]},
    )
    async def code_action(params: lsp.CodeActionParams, /) -> list[lsp.CodeAction] | None:
        return [
            lsp.CodeAction(
                title="a",
                tags=[lsp.CodeActionTag.LLM_GENERATED],
                diagnostics=[MARKUP],
                edit=SNIPPET,
                data={"tags": [1], "title": ""},
            )
        ]

    @service.query("textDocument/diagnostic")
    async def diagnose(params: lsp.DocumentDiagnosticParams, /) -> lsp.DocumentDiagnosticReport:
        return lsp.RelatedFullDocumentDiagnosticReport(items=[MARKUP])

    @service.query("textDocument/signatureHelp")
    async def signature(params: lsp.SignatureHelpParams, /) -> lsp.SignatureHelp | None:
        one = lsp.SignatureInformation(label="f", active_parameter=None)
        return lsp.SignatureHelp(signatures=[one], active_parameter=None)

    @service.query("textDocument/completion")
    async def complete(params: lsp.CompletionParams, /) -> lsp.CompletionList | None:
        return completions(item_defaults=DEFAULTS, apply_kind=MERGE)

    @service.query("textDocument/rangeFormatting")
    async def format_range(params: lsp.DocumentRangeFormattingParams, /) -> list[lsp.TextEdit] | None: ...

    @service.query("textDocument/rangesFormatting")
    async def format_ranges(params: lsp.DocumentRangesFormattingParams, /) -> list[lsp.TextEdit] | None:
        return [lsp.TextEdit(range=one, new_text="") for one in params.ranges]

    @service.query("textDocument/inlineCompletion")
    async def complete_inline(params: lsp.InlineCompletionParams, /) -> list[lsp.InlineCompletionItem]:
        return [lsp.InlineCompletionItem(insert_text=lsp.StringValue(value="${1:x}"))]

    @service.query("workspace/textDocumentContent", options=lsp.TextDocumentContentOptions(schemes=["made"]))
    async def content(params: lsp.TextDocumentContentParams, /) -> lsp.TextDocumentContentResult:
        return lsp.TextDocumentContentResult(text=params.uri)

    @service.notification("textDocument/didOpen")
    async def opens(ctx: Context, params: lsp.DidOpenTextDocumentParams, /) -> None:
        editor = lsp.Editor(ctx)
        await editor.publish_diagnostics(URI, [MARKUP])
        await editor.log_message("for developers", lsp.MessageType.DEBUG)
        await editor.show_message("for developers", lsp.MessageType.DEBUG)
        await editor.show_message("for users")

    @service.command
    async def ask(ctx: Context) -> None:
        editor = lsp.Editor(ctx)
        await editor.apply_edit(SNIPPET, metadata=lsp.WorkspaceEditMetadata(is_refactoring=True))
        await editor.refresh("foldingRange")
        await editor.refresh("textDocumentContent", "made:1")

    return service


def client_with(*paths: str, **more: Any) -> dict[str, Any]:
    """The capabilities of a client: these paths, and these members."""
    found: dict[str, Any] = {}
    for path in paths:
        *names, last = path.split(".")
        place = found
        for name in names:
            place = place.setdefault(name, {})
        place[last] = True
    for path, value in more.items():
        found.setdefault(path, {}).update(value)
    return found


WHERE = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
PARAMS: dict[str, Any] = {
    "textDocument/rename": {**WHERE, "newName": "x"},
    "textDocument/codeAction": {"textDocument": {"uri": URI}, "range": AT, "context": {"diagnostics": []}},
    "textDocument/diagnostic": {"textDocument": {"uri": URI}},
}

PLAIN_EDITS = [{"range": AT, "newText": "f(x)"}, {"range": AT, "newText": "y"}]
NEW_EDITS = [{"range": AT, "snippet": {"kind": "snippet", "value": "f(${1:x})$0"}}, PLAIN_EDITS[1]]


def edits_of(edit: dict[str, Any]) -> Any:
    return edit["documentChanges"][0]["edits"]


CASES: dict[str, tuple[str, str, Any, Any, Any]] = {
    "a snippet": (
        "textDocument/rename",
        "workspace.workspaceEdit.snippetEditSupport",
        edits_of,
        NEW_EDITS,
        PLAIN_EDITS,
    ),
    "the snippet of a code action": (
        "textDocument/codeAction",
        "workspace.workspaceEdit.snippetEditSupport",
        lambda actions: edits_of(actions[0]["edit"]),
        NEW_EDITS,
        PLAIN_EDITS,
    ),
    "a tag, and not that of the author": (
        "textDocument/codeAction",
        "textDocument.codeAction.tagSupport",
        lambda actions: (actions[0].get("tags"), actions[0]["data"]),
        ([1], {"tags": [1], "title": ""}),
        (None, {"tags": [1], "title": ""}),
    ),
    "markup": (
        "textDocument/diagnostic",
        "textDocument.diagnostic.markupMessageSupport",
        lambda report: (report["items"][0]["message"], report["items"][0]["data"]),
        ({"kind": "markdown", "value": "*no*"}, {"message": {}}),
        ("*no*", {"message": {}}),
    ),
    "markup in the diagnostic of a code action": (
        "textDocument/codeAction",
        "textDocument.diagnostic.markupMessageSupport",
        lambda actions: actions[0]["diagnostics"][0]["message"],
        {"kind": "markdown", "value": "*no*"},
        "*no*",
    ),
    "no active parameter": (
        "textDocument/signatureHelp",
        "textDocument.signatureHelp.signatureInformation.noActiveParameterSupport",
        lambda found: (found.get("activeParameter", "absent"), found["signatures"][0].get("activeParameter", "absent")),
        (None, None),
        ("absent", "absent"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_result_is_new_for_a_client_that_can_and_plain_for_one_that_can_not(serving: Any, case: Any) -> None:
    method, capability, part, new, plain = case
    for capabilities, expected in (([capability], new), ([], plain), ([*CLIENT_CAPABILITIES_3_18], new)):
        async with serving(language()) as wire:
            await shake_hands(wire, **client_with(*capabilities))
            answer = await wire.call(method, PARAMS.get(method, WHERE))
            assert part(answer["result"]) == expected


@pytest.mark.parametrize("path", ANNOUNCED)
def test_a_capability_of_3_18_is_announced_to_a_client_that_can(path: str) -> None:
    found = announcement(language().operations).capabilities

    def has(client: dict[str, Any]) -> bool:
        place: Any = announced_to(client, found)
        for name in path.split("."):
            place = place.get(name, {})
        return bool(place)

    assert has(client_with(ANNOUNCED[path]))
    assert not has(client_with(*(other for other in CLIENT_CAPABILITIES_3_18 if other != ANNOUNCED[path])))


def test_an_announcement_is_the_same_for_the_next_client() -> None:
    found = announcement(language().operations).capabilities
    told = announced_to({}, found)
    assert told != found
    assert announced_to(client_with(*ANNOUNCED.values()), found) == found
    assert told["codeActionProvider"] == {} == told["documentRangeFormattingProvider"]


async def test_new_methods_are_served(serving: Any) -> None:
    async with serving(language()) as wire:
        told = (await shake_hands(wire, **client_with(*CLIENT_CAPABILITIES_3_18)))["capabilities"]
        assert told["inlineCompletionProvider"] is True
        assert told["workspace"]["textDocumentContent"] == {"schemes": ["made"]}
        inline = {**WHERE, "context": {"triggerKind": 1}}
        assert (await wire.call("textDocument/inlineCompletion", inline))["result"] == [
            {"insertText": {"kind": "snippet", "value": "${1:x}"}}
        ]
        assert (await wire.call("workspace/textDocumentContent", {"uri": "made:1"}))["result"] == {"text": "made:1"}
        ranges = {"textDocument": {"uri": URI}, "ranges": [AT, AT], "options": {"tabSize": 2, "insertSpaces": True}}
        assert len((await wire.call("textDocument/rangesFormatting", ranges))["result"]) == 2


def test_what_a_server_may_register_has_a_capability_that_allows_it() -> None:
    for method in METHODS.split():
        row = REQUESTS[method]
        assert row.direction == "serverToClient" or row.dynamic_registration, method


# -- completion --


def given(**members: Any) -> list[dict[str, Any]]:
    own: list[dict[str, Any]] = [
        {"label": "x", "commitCharacters": [";"], "data": {"b": 2}, "textEditText": "xx"},
        {"label": "y"},
    ]
    return [{**item, **{name: value[index] for name, value in members.items()}} for index, item in enumerate(own)]


WITH_DEFAULTS = {
    "insertTextFormat": [2, 2],
    "textEdit": [{"newText": "xx", "range": AT}, {"newText": "y", "range": AT}],
}
MERGED = {"commitCharacters": [[".", ";"], ["."]], "data": [{"a": 1, "b": 2}, {"a": 1, "b": 1}]}
REPLACED = {"commitCharacters": [[";"], ["."]], "data": [{"b": 2}, {"a": 1, "b": 1}]}


@pytest.mark.parametrize(
    ("client", "kind", "items", "left"),
    [
        (reads(), MERGE, WITH_DEFAULTS | MERGED, set()),
        (reads(), None, WITH_DEFAULTS | REPLACED, set()),
        (reads(commit_characters=False), MERGE, WITH_DEFAULTS | {"data": MERGED["data"]}, set()),
        (reads(*ITEM_DEFAULTS), MERGE, MERGED, {"editRange", "insertTextFormat"}),
        (reads(*ITEM_DEFAULTS), None, {}, {"commitCharacters", "editRange", "insertTextFormat", "data"}),
        (
            reads("data"),
            None,
            WITH_DEFAULTS | {"commitCharacters": REPLACED["commitCharacters"]},
            {"data"},
        ),
    ],
)
async def test_defaults_that_a_client_does_not_read_or_merge_become_members_of_the_items(
    serving: Any, client: Any, kind: Any, items: Any, left: set[str]
) -> None:
    service = Service("new", dialect="lsp")

    @service.query("textDocument/completion")
    async def complete(params: lsp.CompletionParams, /) -> lsp.CompletionList | None:
        return completions(item_defaults=DEFAULTS, apply_kind=kind)

    async with serving(service) as wire:
        await shake_hands(wire, textDocument=client)
        found = (await wire.call("textDocument/completion", WHERE))["result"]
        expected = given(**items)
        if "textEdit" in items:
            del expected[0]["textEditText"]
        assert found["items"] == expected
        assert set(found.get("itemDefaults", ())) == left
        assert "applyKind" not in found


async def test_a_client_that_merges_gets_the_list_as_it_is(serving: Any) -> None:
    client = {"completion": {"completionList": {"itemDefaults": list(ITEM_DEFAULTS), "applyKindSupport": True}}}
    async with serving(language()) as wire:
        await shake_hands(wire, textDocument=client)
        found = (await wire.call("textDocument/completion", WHERE))["result"]
        assert (found["applyKind"], found["items"]) == ({"commitCharacters": 2, "data": 2}, given())


@pytest.mark.parametrize(
    ("can", "edit"),
    [
        ([], {"range": AT}),
        (
            [INSERT_REPLACE_SUPPORT],
            {"insert": AT, "replace": {"start": AT["start"], "end": {"line": 0, "character": 9}}},
        ),
    ],
)
async def test_a_default_range_becomes_the_edit_that_the_client_knows(serving: Any, can: list[str], edit: Any) -> None:
    assert ITEM_DEFAULTS_SUPPORT not in can
    service = Service("new", dialect="lsp")

    @service.query("textDocument/completion")
    async def complete(params: lsp.CompletionParams, /) -> lsp.CompletionList | None:
        item = lsp.CompletionItem(label="x", insert_text="inserted")
        defaults = lsp.CompletionItemDefaults(edit_range=INSERT_REPLACE)
        return lsp.CompletionList(is_incomplete=False, items=[item], item_defaults=defaults)

    async with serving(service) as wire:
        await shake_hands(wire, **client_with(*can))
        found = (await wire.call("textDocument/completion", WHERE))["result"]
        assert found["items"][0]["textEdit"] == {"newText": "inserted", **edit}


# -- what handlers send --


CAN_MARKUP = client_with("textDocument.diagnostic.markupMessageSupport")
MESSAGES = [(CAN_MARKUP, {"kind": "markdown", "value": "*no*"}), ({}, "*no*")]


@pytest.mark.parametrize(("client", "message"), MESSAGES)
async def test_a_partial_result_is_written_as_a_whole_one_is(serving: Any, client: Any, message: Any) -> None:
    service = Service("new", dialect="lsp")

    @service.subscription("textDocument/codeAction")
    async def code_action(params: lsp.CodeActionParams, /) -> AsyncIterator[list[lsp.CodeAction]]:
        yield [lsp.CodeAction(title="a", diagnostics=[MARKUP])]

    async with serving(service) as wire:
        await shake_hands(wire, **client)
        asked = PARAMS["textDocument/codeAction"]
        await wire.send(wire.request("textDocument/codeAction", {**asked, "partialResultToken": "t"}))
        part, _ = await wire.receive_all(2)
        assert part["params"]["value"][0]["diagnostics"][0]["message"] == message
        whole = await wire.call("textDocument/codeAction", asked)
        assert whole["result"][0]["diagnostics"][0]["message"] == message


@pytest.mark.parametrize(("client", "message"), MESSAGES)
async def test_what_a_handler_tells_is_what_the_editor_can_read(serving: Any, client: Any, message: Any) -> None:
    async with serving(language()) as wire:
        await shake_hands(wire, **client)
        await wire.send(opened(URI, "x"))
        published, *told = await wire.receive_all(4)
        assert published["params"]["diagnostics"][0]["message"] == message
        debug = lsp.MessageType.DEBUG if client else lsp.MessageType.LOG
        assert [each["params"]["type"] for each in told] == [debug, debug, lsp.MessageType.INFO]


async def test_an_editor_is_asked_for_what_it_can(serving: Any) -> None:
    new = (
        "workspace.applyEdit",
        "workspace.workspaceEdit.snippetEditSupport",
        "workspace.workspaceEdit.metadataSupport",
        "workspace.foldingRange.refreshSupport",
        "workspace.textDocumentContent.dynamicRegistration",
    )
    run = {"command": "new.ask"}
    for paths in (new, new[:1]):
        async with serving(language()) as wire:
            await shake_hands(wire, **client_with(*paths))
            await wire.send(wire.request("workspace/executeCommand", run, id="run"))
            asked = await wire.receive()
            assert edits_of(asked["params"]["edit"]) == (NEW_EDITS if paths is new else PLAIN_EDITS)
            assert asked["params"].get("metadata") == ({"isRefactoring": True} if paths is new else None)
            await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": True}})
            if paths is new:
                for method, params in (("foldingRange", {}), ("textDocumentContent", {"uri": "made:1"})):
                    asked = await wire.receive()
                    assert (asked["method"], asked.get("params", {})) == (f"workspace/{method}/refresh", params)
                    await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": None})
            assert (await wire.receive())["id"] == "run"


RELATIVE = {"baseUri": {"uri": "file:///a%20b/[c]", "name": "c"}, "pattern": "**/*.py"}


def test_a_relative_pattern_becomes_a_glob_for_a_client_that_has_none() -> None:
    options = {"documentSelector": [{"language": "x", "pattern": RELATIVE}], "watchers": [{"globPattern": RELATIVE}]}
    whole = "/a b/[[]c]/**/*.py"
    for paths, pattern, watched in (
        ((), whole, whole),
        ((FILTER_PATTERNS,), RELATIVE, whole),
        ((WATCHER_PATTERNS,), whole, RELATIVE),
    ):
        assert with_patterns(client_with(*paths), options) == {
            "documentSelector": [{"language": "x", "pattern": pattern}],
            "watchers": [{"globPattern": watched}],
        }


async def test_what_is_registered_has_the_patterns_that_the_client_reads(serving: Any) -> None:
    service = Service("new", dialect="lsp")

    @service.notification("workspace/didChangeWatchedFiles", options={"watchers": [{"globPattern": RELATIVE}]})
    async def watched(params: lsp.DidChangeWatchedFilesParams, /) -> None: ...

    async with serving(service) as wire:
        await shake_hands(wire, **client_with("workspace.didChangeWatchedFiles.dynamicRegistration"))
        registration = (await wire.receive())["params"]["registrations"][0]
        assert registration["registerOptions"] == {"watchers": [{"globPattern": "/a b/[[]c]/**/*.py"}]}


@pytest.mark.parametrize(
    ("snippet", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (r"\$1 \} \\ \n", r"$1 } \ \n"),
        ("f($1, ${2})$0", "f(, )"),
        ("for ${1:i} in ${2:range(${3:n})}: $1", "for i in range(n): i"),
        ("$1 = ${1:x}", "x = x"),
        ("${1|one,two|} ${2|a\\,b,c|}", "one a,b"),
        ("${TM_FILENAME} ${NAME:dear}", " dear"),
        ("${1/(.*)/${1:/upcase}/}!", "!"),
        ("cost: 5$ }", "cost: 5$ }"),
        ("${1:open", "open"),
        ("${1:$1}", ""),
        ("\n${1:\n}", "\n\n"),
    ],
)
def test_the_text_of_a_snippet_is_what_it_inserts_when_nothing_is_filled_in(snippet: str, text: str) -> None:
    assert text_of(snippet) == text


def test_a_deep_or_long_snippet_is_read_to_its_end() -> None:
    assert text_of("${1:" * 1000 + "x").endswith("x")
    assert len(text_of("a$1" * 100_000)) == 100_000


def test_options_of_3_18_are_in_the_table() -> None:
    assert {"rangesSupport", "documentation", "schemes"} <= {name for row in OPTIONS.values() for name in row}
