"""pytest-lsp as every editor that it knows, with the language server of the examples. Whatever is answered or asked that the
editor has not said it can take is a warning, and warnings are errors.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_lsp
from lsprotocol import types as t
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

URI = "file:///notes.txt"
TEXT = "# TODO rose\nTODO 🌹 rose DONE"
EDITORS = [
    *(f"neovim@{version}" for version in ("0.6", "0.7", "0.8", "0.9", "0.10", "0.11")),
    "emacs@29",
    "visual-studio-code@1.65",
]


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=["discreet", "serve", "./todo_server.py:todo"]), params=EDITORS
)
async def client(editor: LanguageClient, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    params = t.InitializeParams(capabilities=client_capabilities(request.param))
    result = await editor.initialize_session(params)
    offered = params.capabilities.general and params.capabilities.general.position_encodings
    assert result.capabilities.position_encoding in (offered or ["utf-16"])
    yield
    await editor.shutdown_session()


@pytest.mark.asyncio
async def test_an_editor_gets_nothing_that_it_has_not_said_it_can_take(client: LanguageClient) -> None:
    told = client.protocol.wait_for_notification_async(t.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    client.text_document_did_open(t.DidOpenTextDocumentParams(t.TextDocumentItem(URI, "plaintext", 1, TEXT)))
    document, rose = t.TextDocumentIdentifier(URI), t.Position(0, 8)
    hover = await client.text_document_hover_async(t.HoverParams(document, rose))
    assert hover.contents == "`rose`: 2 times"
    offered = await client.text_document_completion_async(t.CompletionParams(document, rose))
    assert [item.label for item in offered] == ["TODO", "DONE", "LATER"]
    renamed = await client.text_document_rename_async(t.RenameParams(document, rose, "tulip"))
    assert len(renamed.changes[URI]) == 2
    pulled = await client.text_document_diagnostic_async(t.DocumentDiagnosticParams(document))
    assert len(pulled.items) == 2
    if client.capabilities.text_document.diagnostic is None:  # others pull, and nothing is published
        published = await told
        supports_versions = client.capabilities.text_document.publish_diagnostics.version_support
        assert (published.diagnostics, published.version) == (pulled.items, 1 if supports_versions else None)

    edits = []

    @client.feature(t.WORKSPACE_APPLY_EDIT)
    def apply(params: t.ApplyWorkspaceEditParams) -> t.ApplyWorkspaceEditResult:
        edits.extend(params.edit.changes[URI])
        return t.ApplyWorkspaceEditResult(applied=True)

    client.set_configuration({"todo": {"done": "LATER"}})
    run = t.ExecuteCommandParams("todo.finish_all", [URI])
    assert await client.workspace_execute_command_async(run) is True
    configured = client.capabilities.workspace.configuration
    assert [edit.new_text for edit in edits] == ["LATER" if configured else "DONE"] * 2
    kinds = [[report.kind for report in reports] for reports in client.progress_reports.values()]
    assert kinds == [["begin", "report", "report", "end"]]


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=["discreet", "serve", "./server_lsp_3_18.py:app"]),
    params=["neovim@0.11", "visual-studio-code@1.65"],
)
async def older(editor: LanguageClient, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    result = await editor.initialize_session(t.InitializeParams(capabilities=client_capabilities(request.param)))
    assert result.capabilities.inline_completion_provider is None
    assert result.capabilities.workspace.text_document_content is None
    yield
    await editor.shutdown_session()


@pytest.mark.asyncio
async def test_an_editor_of_3_17_reads_what_a_server_of_3_18_writes(older: LanguageClient) -> None:
    document, start = t.TextDocumentIdentifier(URI), t.Position(0, 0)
    renamed = await older.text_document_rename_async(t.RenameParams(document, start, "tulip"))
    assert list(renamed.document_changes[0].edits) == [t.TextEdit(t.Range(start, start), "new")]
    pulled = await older.text_document_diagnostic_async(t.DocumentDiagnosticParams(document))
    assert pulled.items[0].message == "*no*"
    offered = await older.text_document_completion_async(t.CompletionParams(document, start))
    assert (offered.items[0].data, offered.apply_kind) == ({"a": 1, "b": 2}, None)
