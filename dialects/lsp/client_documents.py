"""Keeps the documents that a client has open at a language server, with their versions and the encoding of positions.

LSP 3.17, section "Text Document Synchronization". Writes no files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final  # Any: JSON

import anyio

from ...daemon.documents import ENCODINGS, Change, PositionEncoding, Text, TextDocument
from ..client import Notification
from .generated.base import Position, Range, TextDocumentIdentifier, TextEdit, VersionedTextDocumentIdentifier
from .generated.client import Methods
from .generated.documents import (
    DidChangeTextDocumentParams,
    DidCloseTextDocumentParams,
    DidOpenTextDocumentParams,
    DidSaveTextDocumentParams,
    LanguageKind,
    TextDocumentContentChangePartial,
    TextDocumentContentChangeWholeDocument,
    TextDocumentItem,
)

if TYPE_CHECKING:
    from ...client.blocking import LoopThread

Notify: TypeAlias = Callable[[Notification[Any], object], Awaitable[None]]

_NONE: Final = 0
_FULL: Final = 1
"""Of `TextDocumentSyncKind`: changes are not sent, or the whole text is sent after each."""


@final
class Documents(Mapping[str, TextDocument]):
    """The documents that are open at a server, by URI, each as the server has it.

    The server is sent as much of them as it wants: nothing, all of the text, or the parts that changed. Versions count from 1.
    Changes of several tasks are sent one after the other. If a task is cancelled while it waits for its turn, nothing has
    happened; later, the change is made and sent.
    """

    def __init__(self, notify: Notify, capabilities: Mapping[str, Any]) -> None:
        self._notify = notify
        self._open: dict[str, TextDocument] = {}
        self._turn = anyio.Lock()
        encodings: dict[str, PositionEncoding] = {encoding: encoding for encoding in ENCODINGS}
        self.encoding: Final[PositionEncoding] = encodings.get(str(capabilities.get("positionEncoding")), "utf-16")
        sync = capabilities.get("textDocumentSync") or {}
        self._sync: Mapping[str, Any] = (
            sync if isinstance(sync, dict) else {"openClose": True, "change": sync, "save": True}
        )

    def __getitem__(self, uri: str) -> TextDocument:
        return self._open[uri]

    def __iter__(self) -> Iterator[str]:
        return iter(self._open)

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, uri: str, language_id: str, text: str) -> TextDocument:
        """Open a document. Raises `ValueError` if it is open, and as `Peer.notify` does."""
        async with self._turn:
            if uri in self._open:
                raise ValueError(f"{uri} is open already")
            document = TextDocument(uri, language_id, 1, Text(text, self.encoding))
            with self._kept(uri, document):
                if self._sync.get("openClose"):
                    item = TextDocumentItem(uri=uri, language_id=LanguageKind(language_id), version=1, text=text)
                    await self._notify(Methods.text_document_did_open, DidOpenTextDocumentParams(text_document=item))
            return document

    async def edit(self, uri: str, edits: Sequence[TextEdit]) -> TextDocument:
        """Make edits as servers return them: all of them name places in the text before the first one.

        Raises `ValueError` if the document is not open or edits overlap, and as `Peer.notify` does.
        """
        ordered = sorted(edits, key=lambda edit: (edit.range.start, edit.range.end))
        for before, after in pairwise(ordered):
            if after.range.start < before.range.end:
                raise ValueError(f"the edits overlap at {after.range.start}")
        return await self._change(uri, [(_span(edit.range), edit.new_text) for edit in reversed(ordered)])

    async def replace(self, uri: str, text: str) -> TextDocument:
        """Give a document another text. Raises as `edit` does."""
        return await self._change(uri, [(None, text)])

    async def save(self, uri: str) -> None:
        """Tell the server that a document was saved. Writes no file. Raises as `close` does."""
        async with self._turn:
            document, save = self._opened(uri), self._sync.get("save")
            if save:
                text = document.exact if isinstance(save, dict) and save.get("includeText") else None
                params = DidSaveTextDocumentParams(text_document=TextDocumentIdentifier(uri=uri), text=text)
                await self._notify(Methods.text_document_did_save, params)

    async def close(self, uri: str) -> None:
        """Close a document. Raises `ValueError` if it is not open, and as `Peer.notify` does."""
        async with self._turn:
            self._opened(uri)
            with self._kept(uri, None):
                if self._sync.get("openClose"):
                    identifier = TextDocumentIdentifier(uri=uri)
                    await self._notify(
                        Methods.text_document_did_close, DidCloseTextDocumentParams(text_document=identifier)
                    )

    async def _change(self, uri: str, changes: Sequence[Change]) -> TextDocument:
        async with self._turn:
            old = self._opened(uri)
            text = Text(old.exact, self.encoding).changed(changes)
            new = TextDocument(uri, old.language_id, old.version + 1, text)
            kind = self._sync.get("change") or _NONE
            sent = [(None, new.exact)] if kind == _FULL else changes
            with self._kept(uri, new):
                if kind != _NONE:
                    params = DidChangeTextDocumentParams(
                        text_document=VersionedTextDocumentIdentifier(uri=uri, version=new.version),
                        content_changes=[_content_change(*change) for change in sent],
                    )
                    await self._notify(Methods.text_document_did_change, params)
            return new

    def _opened(self, uri: str) -> TextDocument:
        if uri not in self._open:
            raise ValueError(f"{uri} is not open")
        return self._open[uri]

    @contextmanager
    def _kept(self, uri: str, document: TextDocument | None) -> Iterator[None]:
        """Put a document, or none, in the place of another. A text that can't be sent leaves the old one."""
        old = self._open.pop(uri, None)
        if document is not None:
            self._open[uri] = document
        try:
            yield
        except (TypeError, ValueError):
            self._open.pop(uri, None)
            if old is not None:
                self._open[uri] = old
            raise


def _span(of: Range) -> tuple[tuple[int, int], tuple[int, int]]:
    return (of.start.line, of.start.character), (of.end.line, of.end.character)


def _content_change(span: Any, text: str) -> TextDocumentContentChangePartial | TextDocumentContentChangeWholeDocument:
    if span is None:
        return TextDocumentContentChangeWholeDocument(text=text)
    return TextDocumentContentChangePartial(range=Range(*(Position(*place) for place in span)), text=text)


@final
class BlockingDocuments(Mapping[str, TextDocument]):
    """The documents that are open at a server, for programs without async: see `Documents`."""

    def __init__(self, documents: Documents, loop: LoopThread) -> None:
        self.encoding: Final = documents.encoding
        self._documents = documents
        self._run = loop.run

    def __getitem__(self, uri: str) -> TextDocument:
        return self._documents[uri]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._documents])

    def __len__(self) -> int:
        return len(self._documents)

    def open(self, uri: str, language_id: str, text: str) -> TextDocument:
        """Open a document: see `Documents.open`."""
        return self._run(partial(self._documents.open, uri, language_id, text))

    def edit(self, uri: str, edits: Sequence[TextEdit]) -> TextDocument:
        """Make edits: see `Documents.edit`."""
        return self._run(partial(self._documents.edit, uri, edits))

    def replace(self, uri: str, text: str) -> TextDocument:
        """Give a document another text: see `Documents.replace`."""
        return self._run(partial(self._documents.replace, uri, text))

    def save(self, uri: str) -> None:
        """Tell the server that a document was saved: see `Documents.save`."""
        self._run(partial(self._documents.save, uri))

    def close(self, uri: str) -> None:
        """Close a document: see `Documents.close`."""
        self._run(partial(self._documents.close, uri))
