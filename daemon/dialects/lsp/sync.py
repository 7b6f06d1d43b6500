"""Applies what a client tells of its documents, as soon as it is read and before any handler sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ....errors.type_building import convert, decoder_for
from ...documents.store import Documents, NotebookDocument, Position, TextDocument
from ...documents.text import shown
from .generated import documents as text
from .generated import notebooks as notebook

Apply = Callable[[Documents, Any], None]


def _open(documents: Documents, params: text.DidOpenTextDocumentParams) -> None:
    _open_item(documents, params.text_document)


def _change(documents: Documents, params: text.DidChangeTextDocumentParams) -> None:
    document = documents.get(params.text_document.uri)
    if document is not None:
        _change_text(document, params.text_document.version, params.content_changes)


def _close(documents: Documents, params: text.DidCloseTextDocumentParams) -> None:
    documents.close(params.text_document.uri)


def _open_notebook(documents: Documents, params: notebook.DidOpenNotebookDocumentParams) -> None:
    given = params.notebook_document
    documents.notebooks[given.uri] = NotebookDocument(
        given.uri, given.notebook_type, given.version, given.metadata, list(given.cells)
    )
    for item in params.cell_text_documents:
        _open_item(documents, item)


def _change_notebook(documents: Documents, params: notebook.DidChangeNotebookDocumentParams) -> None:
    book = documents.notebooks.get(params.notebook_document.uri)
    if book is None:
        return
    book.version = params.notebook_document.version
    if params.change.metadata is not None:
        book.metadata = params.change.metadata
    cells = params.change.cells
    if cells is None:
        return
    if cells.structure is not None:
        array = cells.structure.array
        book.cells[array.start : array.start + array.delete_count] = array.cells or []
        for item in cells.structure.did_open or ():
            _open_item(documents, item)
        for closed in cells.structure.did_close or ():
            documents.close(closed.uri)
    for cell in cells.data or ():
        book.cells = [cell if old.document == cell.document else old for old in book.cells]
    for content in cells.text_content or ():
        document = documents.get(content.document.uri)
        if document is not None:
            _change_text(document, content.document.version, content.changes)


def _close_notebook(documents: Documents, params: notebook.DidCloseNotebookDocumentParams) -> None:
    documents.notebooks.pop(params.notebook_document.uri, None)
    for closed in params.cell_text_documents:
        documents.close(closed.uri)


def _open_item(documents: Documents, item: text.TextDocumentItem) -> None:
    documents.open(item.uri, str(item.language_id), item.version, item.text)


def _change_text(document: TextDocument, version: int, changes: list[Any]) -> None:
    document.change(version, [(_span(change), change.text) for change in changes])


def _span(change: Any) -> tuple[Position, Position] | None:
    span = getattr(change, "range", None)
    if span is None:
        return None
    return Position(span.start.line, span.start.character), Position(span.end.line, span.end.character)


SYNC_METHODS: Final[dict[str, tuple[type[msgspec.Struct], Apply]]] = {
    "textDocument/didOpen": (text.DidOpenTextDocumentParams, _open),
    "textDocument/didChange": (text.DidChangeTextDocumentParams, _change),
    "textDocument/didClose": (text.DidCloseTextDocumentParams, _close),
    "notebookDocument/didOpen": (notebook.DidOpenNotebookDocumentParams, _open_notebook),
    "notebookDocument/didChange": (notebook.DidChangeNotebookDocumentParams, _change_notebook),
    "notebookDocument/didClose": (notebook.DidCloseNotebookDocumentParams, _close_notebook),
}


def synchronise(documents: Documents, method: str, params: msgspec.Raw | None, exact: bytes = b"") -> None:
    """Apply one notification. `exact` is the body as it came, if it has unpaired surrogates.

    Raises `msgspec.DecodeError`, `ValueError` or `RecursionError` for params that are none of this method.
    """
    params_type, apply = SYNC_METHODS[method]
    if exact:
        given = convert(_with_exact_texts(json.loads(exact).get("params")), params_type)
    else:
        given = decoder_for(params_type)(params or b"{}")
    apply(documents, given)


def _with_exact_texts(value: Any, name: str = "", keep: bool = True) -> Any:  # Any: JSON
    """The value with U+FFFD for unpaired surrogates wherever they stand, but for the texts of documents."""
    match value:
        case str():
            return value if keep and name == "text" else shown(value)
        case list():
            return [_with_exact_texts(item, "", keep) for item in value]
        case dict():
            return {shown(key): _with_exact_texts(item, key, keep and key != "metadata") for key, item in value.items()}
        case _:
            return value
