"""What a reload hands on of an editor's session: the client sends neither its handshake nor its documents again.

Loads only with a reload, since the structs of notebooks take longer than a server has for its first answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...daemon.documents.store import Documents, NotebookDocument
from ...daemon.documents.text import PositionEncoding
from ...daemon.operations.context import ClientInfo
from ...errors.decoders import decoder_for
from .dialect import State
from .generated.notebooks import NotebookCell
from .sync import keep_notebook


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
    notebooks: list[tuple[str, str, int, Any, list[NotebookCell]]]
    root_uri: str | None
    folders: dict[str, str]

    def restore(self, documents: Documents) -> None:
        documents.encoding = self.encoding
        documents.root_uri, documents.folders = self.root_uri, self.folders
        for uri, language, version, text in self.documents:
            documents.open(uri, language, version, text.decode("utf-8", "surrogatepass"))
        for notebook in self.notebooks:
            keep_notebook(documents, NotebookDocument(*notebook))


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
