"""A language server for notes: hover, completion, rename, diagnostics pushed and pulled, and a command with progress.

Editors may close a document before a handler runs that was asked about it: `ctx.documents.get` returns None then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from discreet import Context, Service, lsp, serve

todo = Service("todo", version="1.0", dialect="lsp")

WORDS = ["TODO", "DONE", "LATER"]


@todo.query("textDocument/hover")
def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover | None:
    """Count the word in the document."""
    document = ctx.documents.get(params.text_document.uri)
    if document is None:
        return None
    word = document.word_at(params.position)
    return lsp.Hover(contents=f"`{word}`: {len([*places(document, word)])} times") if word else None


@todo.query("textDocument/completion", options=lsp.CompletionOptions(trigger_characters=["#"]))
async def complete(params: lsp.CompletionParams, /) -> list[lsp.CompletionItem]:
    """Offer the states of a task."""
    return [lsp.CompletionItem(label=word, kind=lsp.CompletionItemKind.KEYWORD) for word in WORDS]


@todo.query("textDocument/rename")
def rename(ctx: Context, params: lsp.RenameParams, /) -> lsp.WorkspaceEdit | None:
    """Rename the word wherever the document has it."""
    document = ctx.documents.get(params.text_document.uri)
    if document is None:
        return None
    word = document.word_at(params.position)
    edits = [lsp.TextEdit(range=place, new_text=params.new_name) for place in places(document, word)] if word else []
    return lsp.WorkspaceEdit(changes={document.uri: edits}) if edits else None


@lsp.diagnostics(todo, delay=0.1)
def problems(document: lsp.TextDocument) -> list[lsp.Diagnostic]:
    """Say what is not done yet: to editors that ask, and after edits to the others."""
    return [
        lsp.Diagnostic(range=place, message="not done yet", severity=lsp.DiagnosticSeverity.INFORMATION)
        for place in places(document, "TODO")
    ]


@todo.command
async def finish_all(ctx: Context, uri: str) -> bool:
    """Turn every TODO of a document into DONE, or into what the user's settings say."""
    editor, document = lsp.Editor(ctx), ctx.documents.get(uri)
    if document is None:
        return False
    [done] = await editor.configuration("todo.done", scope_uri=uri)
    edits = []
    async with editor.progress("Finishing") as progress:
        for place in places(document, "TODO"):
            edits.append(lsp.TextEdit(range=place, new_text=done or "DONE"))
            await progress.report(f"line {place.start.line + 1}")
    return (await editor.apply_edit(lsp.WorkspaceEdit(changes={uri: edits}), "Finish all")).applied


def places(document: lsp.TextDocument, word: str) -> Iterator[lsp.Range]:
    for found in re.finditer(rf"\b{re.escape(word)}\b", document.text):
        start, end = map(document.position_at, found.span())
        yield lsp.Range(start, end)


if __name__ == "__main__":
    serve(todo)
