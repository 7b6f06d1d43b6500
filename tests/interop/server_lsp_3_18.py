"""A language server with what LSP 3.18 added."""

from discreet import Context, Service, lsp

app = Service("new", version="1", dialect="lsp")


@app.query("textDocument/inlineCompletion")
async def complete_inline(params: lsp.InlineCompletionParams, /) -> lsp.InlineCompletionList:
    return lsp.InlineCompletionList(items=[lsp.InlineCompletionItem(insert_text=lsp.StringValue(value="${1:x}"))])


@app.query("textDocument/rangeFormatting")
async def format_range(params: lsp.DocumentRangeFormattingParams, /) -> list[lsp.TextEdit]:
    return []


@app.query("textDocument/rangesFormatting")
async def format_ranges(params: lsp.DocumentRangesFormattingParams, /) -> list[lsp.TextEdit]:
    return [lsp.TextEdit(range=each, new_text="") for each in params.ranges]


@app.query("workspace/textDocumentContent", options=lsp.TextDocumentContentOptions(schemes=["made"]))
async def content(params: lsp.TextDocumentContentParams, /) -> lsp.TextDocumentContentResult:
    return lsp.TextDocumentContentResult(text=f"of {params.uri}")


def edit(uri: str) -> lsp.WorkspaceEdit:
    start = lsp.Position(0, 0)
    snippet = lsp.SnippetTextEdit(range=lsp.Range(start, start), snippet=lsp.StringValue(value="${1:new}"))
    document = lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None)
    return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(text_document=document, edits=[snippet])])


@app.query("textDocument/rename")
async def rename(params: lsp.RenameParams, /) -> lsp.WorkspaceEdit:
    return edit(params.text_document.uri)


@app.query("textDocument/diagnostic")
async def diagnose(params: lsp.DocumentDiagnosticParams, /) -> lsp.DocumentDiagnosticReport:
    start = lsp.Position(0, 0)
    message = lsp.MarkupContent(kind=lsp.MarkupKind.MARKDOWN, value="*no*")
    found = lsp.Diagnostic(range=lsp.Range(start, start), message=message)
    return lsp.RelatedFullDocumentDiagnosticReport(items=[found])


@app.query("textDocument/completion")
async def complete(params: lsp.CompletionParams, /) -> lsp.CompletionList:
    return lsp.CompletionList(
        is_incomplete=False,
        items=[lsp.CompletionItem(label="x", data={"b": 2})],
        item_defaults=lsp.CompletionItemDefaults(data={"a": 1}),
        apply_kind=lsp.CompletionItemApplyKinds(data=lsp.ApplyKind.MERGE),
    )


@app.command
async def ask(ctx: Context, uri: str) -> None:
    editor = lsp.Editor(ctx)
    await editor.refresh("foldingRange")
    await editor.refresh("textDocumentContent", "made:1")
    await editor.log_message("for developers", lsp.MessageType.DEBUG)
    await editor.apply_edit(edit(uri), metadata=lsp.WorkspaceEditMetadata(is_refactoring=True))
