"""The language server of the comparison on discreet: typed structs, synchronised documents, one hover."""

from discreet import Context, Service, lsp, serve

hovering = Service("hovering", version="1", dialect="lsp")


@hovering.query("textDocument/hover", inline=True)
def hover(ctx: Context, params: lsp.HoverParams, /) -> lsp.Hover:
    return lsp.Hover(contents=ctx.documents[params.text_document.uri].word_at(params.position))


if __name__ == "__main__":
    serve(hovering)
