"""The language server whose costs are measured. By itself, for it loads the structures of LSP."""

from __future__ import annotations

from counted_app import mark

from discreet import Context, Service, lsp

hover = Service("", version="1", dialect="lsp")
hover.query(inline=True)(mark)


@hover.query("textDocument/hover", inline=True)
def hover_word(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover:
    return lsp.Hover(contents=ctx.documents[params.text_document.uri].word_at(params.position))
