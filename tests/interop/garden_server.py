"""A language server with every feature that editors are tried with. A line of its documents reads `water rose`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import anyio

from discreet import Context, Service, lsp

garden = Service("garden", version="1.0", dialect="lsp")

if folder := os.environ.get("SESSION_PIDS"):
    Path(folder, str(os.getpid())).touch()

LEGEND = lsp.SemanticTokensLegend(token_types=["keyword"], token_modifiers=[])
WATCHED = {"watchers": [{"globPattern": "**/*.seed"}]}


def places(document: lsp.TextDocument, word: str) -> Iterator[lsp.Range]:
    for found in re.finditer(rf"\b{re.escape(word)}\b", document.text):
        start, end = map(document.position_at, found.span())
        yield lsp.Range(start, end)


@garden.query("textDocument/hover")
def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover:
    document = ctx.documents[params.text_document.uri]
    word = document.word_at(params.position)
    return lsp.Hover(contents=f"{word}: {len([*places(document, word)])} times")


@garden.query("textDocument/completion", options=lsp.CompletionOptions(trigger_characters=["#"]))
async def complete(params: lsp.CompletionParams, /) -> list[lsp.CompletionItem]:
    return [lsp.CompletionItem(label=word, kind=lsp.CompletionItemKind.KEYWORD) for word in ("water", "watered")]


@garden.query("textDocument/rename")
def rename(ctx: Context, params: lsp.RenameParams, /) -> lsp.WorkspaceEdit:
    document = ctx.documents[params.text_document.uri]
    found = places(document, document.word_at(params.position))
    return lsp.WorkspaceEdit(changes={document.uri: [lsp.TextEdit(range=at, new_text=params.new_name) for at in found]})


@garden.query(
    "textDocument/codeAction", options=lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QUICK_FIX])
)
def act(ctx: Context, params: lsp.CodeActionParams, /) -> list[lsp.CodeAction]:
    """One action, for the diagnostics that the editor names."""
    uri = params.text_document.uri
    edits = [lsp.TextEdit(range=each.range, new_text="watered") for each in params.context.diagnostics]
    edit = lsp.WorkspaceEdit(changes={uri: edits})
    return [lsp.CodeAction(title="Water it", kind=lsp.CodeActionKind.QUICK_FIX, edit=edit)] if edits else []


@garden.query("textDocument/semanticTokens/full", options=lsp.SemanticTokensOptions(legend=LEGEND))
def tokens(ctx: Context, params: lsp.SemanticTokensParams, /) -> lsp.SemanticTokens:
    """Every `water`, each as its distance from the one before it, its length, its type and no modifiers."""
    data: list[int] = []
    line = character = 0
    for at in places(ctx.documents[params.text_document.uri], "water"):
        character = character if at.start.line == line else 0
        length = at.end.character - at.start.character
        data += [at.start.line - line, at.start.character - character, length, 0, 0]
        line, character = at.start.line, at.start.character
    return lsp.SemanticTokens(data=data)


@garden.query("textDocument/inlayHint")
def hints(ctx: Context, params: lsp.InlayHintParams, /) -> list[lsp.InlayHint]:
    found = places(ctx.documents[params.text_document.uri], "water")
    return [lsp.InlayHint(position=at.end, label=f" {count}") for count, at in enumerate(found, 1)]


@lsp.diagnostics(garden, delay=0.05)
def check(document: lsp.TextDocument) -> list[lsp.Diagnostic]:
    return [lsp.Diagnostic(range=at, message="thirsty") for at in places(document, "water")]


@garden.notification("workspace/didChangeWatchedFiles", options=WATCHED)
async def sown(ctx: Context, params: lsp.DidChangeWatchedFilesParams, /) -> None:
    for change in params.changes:
        await lsp.Editor(ctx).show_message(f"sown {change.uri.rpartition('/')[2]}")


@garden.command
async def grow(ctx: Context) -> None:
    async with lsp.Editor(ctx).progress("Growing") as progress:
        await progress.report("a leaf", 50)


@garden.command
async def rest(ctx: Context) -> None:
    """Never ends. The file tells that it runs."""
    async with lsp.Editor(ctx).progress("Resting"):
        Path("resting").touch()
        await anyio.sleep_forever()
