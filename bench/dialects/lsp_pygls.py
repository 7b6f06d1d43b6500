"""The language server of the comparison on pygls."""

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("hovering", "1")


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover:
    document = server.workspace.get_text_document(params.text_document.uri)
    return types.Hover(contents=document.word_at_position(params.position))


server.start_io()
