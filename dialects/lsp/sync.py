"""Applies a client's changes of its documents when they are read, before any handler sees them. Passes the documents on to the
program after a reload.

Loads late, since the structs of notebooks take longer than a server has for its first answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from ...daemon.documents import DocumentEvent, Documents, NotebookDocument, Place, PositionEncoding, shown
from ...daemon.memory import values_size
from ...daemon.operations.request import ClientInfo
from ...errors.decoders import convert, decoder_for
from .generated import documents as text
from .generated import notebooks as notebook
from .generated.base import VersionedTextDocumentIdentifier

Steps: TypeAlias = Generator[None, None, list[str]]
"""Applies one notification: it stops wherever something else may run. It returns the URIs of the documents and notebooks that
may hold more than before.
"""

Apply: TypeAlias = Callable[[Documents, Any], Steps]

State: TypeAlias = Literal["new", "initializing", "initialized", "shutdown"]
"""How far the session is."""

CHANGES_AT_ONCE: Final = 20
"""Changes of a document that are made without a stop. They take a millisecond, and 100 in a line of a million wide characters."""

NOTEBOOK_BYTES: Final = 1024
"""Bytes that a notebook or a cell takes beside its members, rounded up."""


class _Named(msgspec.Struct, rename="camel"):
    class Identifier(msgspec.Struct):
        uri: str

    text_document: Identifier | None = None
    notebook_document: Identifier | None = None


def _open(documents: Documents, params: text.DidOpenTextDocumentParams) -> Steps:
    yield from ()
    return [_open_item(documents, params.text_document)]


def _change(documents: Documents, params: text.DidChangeTextDocumentParams) -> Steps:
    return [(yield from _change_text(documents, params.text_document, params.content_changes))]


def _close(documents: Documents, params: text.DidCloseTextDocumentParams) -> Steps:
    documents.close(params.text_document.uri)
    yield from ()
    return []


def _open_notebook(documents: Documents, params: notebook.DidOpenNotebookDocumentParams) -> Steps:
    yield from ()
    given = params.notebook_document
    _keep_notebook(
        documents, NotebookDocument(given.uri, given.notebook_type, given.version, given.metadata, given.cells)
    )
    return [given.uri, *(_open_item(documents, item) for item in params.cell_text_documents)]


def _change_notebook(documents: Documents, params: notebook.DidChangeNotebookDocumentParams) -> Steps:
    book, change = documents.notebooks.get(params.notebook_document.uri), params.change
    if book is None:
        return []
    touched = [book.uri]
    if change.cells is not None:
        touched += yield from _change_cells(documents, book, change.cells)
    if change.metadata is not None:
        book.metadata = change.metadata
    book.version = params.notebook_document.version
    _keep_notebook(documents, book)
    return touched


def _change_cells(documents: Documents, book: NotebookDocument, change: notebook.NotebookDocumentCellChanges) -> Steps:
    touched, cells = [], list(book.cells)  # a new list: threads may read the old one
    if change.structure is not None:
        array = change.structure.array
        cells[array.start : array.start + array.delete_count] = array.cells or []
        touched += [_open_item(documents, item, "change") for item in change.structure.did_open or ()]
        for closed in change.structure.did_close or ():
            documents.close(closed.uri)
    new = {cell.document: cell for cell in change.data or ()}
    book.cells = [new.get(cell.document, cell) for cell in cells]
    for one in change.text_content or ():
        touched.append((yield from _change_text(documents, one.document, one.changes)))
    return touched


def _close_notebook(documents: Documents, params: notebook.DidCloseNotebookDocumentParams) -> Steps:
    yield from ()
    documents.close_notebook(params.notebook_document.uri)
    for closed in params.cell_text_documents:
        documents.close(closed.uri)
    return []


def _keep_notebook(documents: Documents, book: NotebookDocument) -> None:
    size = values_size((book.metadata, book.cells), 0)
    documents.keep_notebook(book, size + NOTEBOOK_BYTES * (1 + len(book.cells)))


def _open_item(documents: Documents, item: text.TextDocumentItem, event: DocumentEvent = "open") -> str:
    documents.open(item.uri, str(item.language_id), item.version, item.text, event)
    return item.uri


def _change_text(
    documents: Documents, changed: VersionedTextDocumentIdentifier, changes: list[Any]
) -> Generator[None, None, str]:
    document = documents.get(changed.uri)
    if document is not None:
        for start in range(0, len(changes) or 1, CHANGES_AT_ONCE):
            if start:
                yield
            part = changes[start : start + CHANGES_AT_ONCE]
            document = document.changed(changed.version, [(_span(change), change.text) for change in part])
        documents.keep(document)
    return changed.uri


def _span(change: Any) -> tuple[Place, Place] | None:
    span = getattr(change, "range", None)
    if span is None:
        return None
    return (span.start.line, span.start.character), (span.end.line, span.end.character)


SYNC_METHODS: Final[dict[str, tuple[type[msgspec.Struct], Apply]]] = {
    "textDocument/didOpen": (text.DidOpenTextDocumentParams, _open),
    "textDocument/didChange": (text.DidChangeTextDocumentParams, _change),
    "textDocument/didClose": (text.DidCloseTextDocumentParams, _close),
    "notebookDocument/didOpen": (notebook.DidOpenNotebookDocumentParams, _open_notebook),
    "notebookDocument/didChange": (notebook.DidChangeNotebookDocumentParams, _change_notebook),
    "notebookDocument/didClose": (notebook.DidCloseNotebookDocumentParams, _close_notebook),
}


def synchronise(documents: Documents, method: str, params: msgspec.Raw | None, exact: bytes = b"") -> Steps:
    """Apply one notification. `exact` is the body as it came, if it has unpaired surrogates. Between the steps a document is as
    it was before; nothing else may change it then.

    Raises `msgspec.DecodeError`, `ValueError` or `RecursionError` for params that are none of this method.
    """
    params_type, apply = SYNC_METHODS[method]
    if exact:
        given = convert(_with_exact_texts(json.loads(exact).get("params")), params_type)
    else:
        given = decoder_for(params_type)(params or b"{}")
    return (yield from apply(documents, given))


def discard(documents: Documents, uris: Iterable[str]) -> None:
    """Close these documents and notebooks, and the cells of the notebooks: the client has others than we can keep."""
    for uri in uris:
        book = documents.notebooks.get(uri)
        for cell in () if book is None else book.cells:
            documents.close(cell.document)
        documents.close_notebook(uri)
        documents.close(uri)


def named_in(params: msgspec.Raw | None) -> list[str]:
    """The document or notebook that a notification is about, where that can be read."""
    try:
        named = decoder_for(_Named)(params or b"{}")
    except (msgspec.DecodeError, RecursionError):
        return []
    return [one.uri for one in (named.text_document, named.notebook_document) if one is not None]


def tell_saved(documents: Documents, params: msgspec.Raw | None) -> None:
    """Tell that a document was saved, or the cells of a notebook."""
    for uri in named_in(params):
        book = documents.notebooks.get(uri)
        for saved in [uri] if book is None else [cell.document for cell in book.cells]:
            documents.saved(saved)


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


# What a reload hands on of an editor's session: the client sends neither its handshake nor its documents again.


class Saved(msgspec.Struct):
    """`registered` are the options of what is registered with the client, by method and as JSON texts; None before it has said
    `initialized`.
    """

    encoding: PositionEncoding
    state: State
    registered: dict[str, bytes] | None
    capabilities: dict[str, Any]
    name: str
    version: str
    documents: list[tuple[str, str, int, bytes]]
    notebooks: list[tuple[str, str, int, Any, list[notebook.NotebookCell]]]
    root_uri: str | None
    folders: dict[str, str]

    def restore(self, documents: Documents) -> None:
        documents.encoding = self.encoding
        documents.root_uri, documents.folders = self.root_uri, self.folders
        for uri, language, version, content in self.documents:
            documents.open(uri, language, version, content.decode("utf-8", "surrogatepass"))
        for book in self.notebooks:
            _keep_notebook(documents, NotebookDocument(*book))


def write(client: ClientInfo, documents: Documents, state: State, registered: dict[str, bytes] | None) -> bytes:
    saved = Saved(
        documents.encoding,
        state,
        registered,
        dict(client.capabilities),
        client.name,
        client.version,
        [(d.uri, d.language_id, d.version, d.exact.encode("utf-8", "surrogatepass")) for d in documents.values()],
        [(n.uri, n.notebook_type, n.version, n.metadata, n.cells) for n in documents.notebooks.values()],
        documents.root_uri,
        dict(documents.folders),
    )
    return msgspec.json.encode(saved)  # clients may send numbers that MessagePack has no room for


def read(saved: bytes) -> Saved:
    return decoder_for(Saved)(saved)
