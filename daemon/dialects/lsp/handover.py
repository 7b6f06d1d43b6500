"""What a reload hands on of an editor's session: the client sends neither its handshake nor its documents again.

Loads only with a reload, since the structs of notebooks take longer than a server has for its first answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...documents.store import Documents, NotebookDocument
from ...documents.text import PositionEncoding
from ...operations.context import ClientInfo
from .generated.notebooks import NotebookCell


class Kept(msgspec.Struct):
    encoding: PositionEncoding
    initialized: bool
    capabilities: dict[str, Any]
    name: str
    version: str
    documents: list[tuple[str, str, int, str]]
    notebooks: list[tuple[str, str, int, Any, list[NotebookCell]]]

    def restore(self, documents: Documents) -> None:
        documents.encoding = self.encoding
        for document in self.documents:
            documents.open(*document)
        for uri, notebook_type, version, metadata, cells in self.notebooks:
            documents.notebooks[uri] = NotebookDocument(uri, notebook_type, version, metadata, cells)


def write(client: ClientInfo, documents: Documents, *, initialized: bool) -> bytes:
    kept = Kept(
        documents.encoding,
        initialized,
        dict(client.capabilities),
        client.name,
        client.version,
        [(d.uri, d.language_id, d.version, d.text) for d in documents.values()],
        [(n.uri, n.notebook_type, n.version, n.metadata, n.cells) for n in documents.notebooks.values()],
    )
    return msgspec.msgpack.encode(kept)


def read(state: bytes) -> Kept:
    return msgspec.msgpack.decode(state, type=Kept)
