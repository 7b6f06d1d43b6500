"""The language server of examples/language_server on pygls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

server = LanguageServer("todo", "1.0")

WORDS = ["TODO", "DONE", "LATER"]


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover | None:
    """Count the word in the document."""
    document = server.workspace.get_text_document(params.text_document.uri)
    word = document.word_at_position(params.position)
    return types.Hover(contents=f"`{word}`: {len([*places(document, word)])} times") if word else None


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["#"]))
async def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
    """Offer the states of a task."""
    return [types.CompletionItem(label=word, kind=types.CompletionItemKind.Keyword) for word in WORDS]


@server.feature(types.TEXT_DOCUMENT_RENAME)
def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
    """Rename the word wherever the document has it."""
    document = server.workspace.get_text_document(params.text_document.uri)
    word = document.word_at_position(params.position)
    edits = [types.TextEdit(range=place, new_text=params.new_name) for place in places(document, word)] if word else []
    return types.WorkspaceEdit(changes={document.uri: edits}) if edits else None


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def opened(params: types.DidOpenTextDocumentParams) -> None:
    publish(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def changed(params: types.DidChangeTextDocumentParams) -> None:
    publish(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
def diagnostic(params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
    """The same diagnostics for editors that ask."""
    document = server.workspace.get_text_document(params.text_document.uri)
    return types.RelatedFullDocumentDiagnosticReport(items=problems(document))


@server.command("todo.finish_all")
async def finish_all(uri: str) -> bool:
    """Turn every TODO of a document into DONE, or into what the user's settings say."""
    document, token, done = server.workspace.get_text_document(uri), uuid4().hex, None
    workspace, window = server.client_capabilities.workspace, server.client_capabilities.window
    if workspace and workspace.configuration:
        item = types.ConfigurationItem(scope_uri=uri, section="todo.done")
        [done] = await server.workspace_configuration_async(types.ConfigurationParams(items=[item]))
    shows = bool(window and window.work_done_progress)
    if shows:
        await server.work_done_progress.create_async(token)
        server.work_done_progress.begin(token, types.WorkDoneProgressBegin(title="Finishing"))
    edits = []
    try:
        for place in places(document, "TODO"):
            edits.append(types.TextEdit(range=place, new_text=done or "DONE"))
            if shows:
                message = f"line {place.start.line + 1}"
                server.work_done_progress.report(token, types.WorkDoneProgressReport(message=message))
    finally:
        if shows:
            server.work_done_progress.end(token, types.WorkDoneProgressEnd())
    edit = types.ApplyWorkspaceEditParams(edit=types.WorkspaceEdit(changes={uri: edits}), label="Finish all")
    return (await server.workspace_apply_edit_async(edit)).applied


def publish(uri: str) -> None:
    document = server.workspace.get_text_document(uri)
    server.text_document_publish_diagnostics(
        types.PublishDiagnosticsParams(uri=uri, version=document.version, diagnostics=problems(document))
    )


def problems(document: TextDocument) -> list[types.Diagnostic]:
    return [
        types.Diagnostic(range=place, message="not done yet", severity=types.DiagnosticSeverity.Information)
        for place in places(document, "TODO")
    ]


def places(document: TextDocument, word: str) -> Iterator[types.Range]:
    for found in re.finditer(rf"\b{re.escape(word)}\b", document.source):
        start, end = map(document.client_position_at_offset, found.span())
        yield types.Range(start=start, end=end)


if __name__ == "__main__":
    server.start_io()
