"""Keeps the folders of a client's workspace, as it tells of them. What is of another type is left out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ...daemon.documents.store import Documents
from ...daemon.logs import log
from ...errors.decoders import decoder_for

MAX_BYTES: Final = 256 * 1024
"""What the folders of a workspace may take, as text. They are kept as long as the client is there."""


class _Changed(msgspec.Struct):
    class Event(msgspec.Struct):
        added: list[Any] = []  # Any: JSON, here and below
        removed: list[Any] = []

    event: Event


def set_workspace(documents: Documents, params: dict[str, Any]) -> None:
    """Keep what `initialize` says of the workspace. A client that knows one root alone has it as its only folder."""
    root, path = params.get("rootUri"), params.get("rootPath")
    if not isinstance(root, str) and isinstance(path, str) and path:
        from ...daemon.documents.file_uri import uri_of_path  # late: clients of today send URIs

        root = uri_of_path(path)
    folders = _read(params.get("workspaceFolders"))
    if isinstance(root, str) and len(root) <= MAX_BYTES:
        folders = folders or {root: root.rstrip("/").rpartition("/")[2]}
    else:
        root = None
    _keep(documents, folders)
    documents.root_uri = root or next(iter(documents.folders), None)


def change_workspace(documents: Documents, params: msgspec.Raw | None) -> None:
    """Apply one `workspace/didChangeWorkspaceFolders`."""
    try:
        event = decoder_for(_Changed)(params or b"{}").event
    except (msgspec.DecodeError, RecursionError):
        log.warning("workspace.unreadable_change")
        return
    removed = _read(event.removed)
    kept = {uri: name for uri, name in documents.folders.items() if uri not in removed}
    _keep(documents, kept | _read(event.added))


def _keep(documents: Documents, folders: dict[str, str]) -> None:
    if sum(len(uri) + len(name) for uri, name in folders.items()) > MAX_BYTES:
        log.warning("workspace.too_many_folders", folders=len(folders))
        return
    documents.folders = folders  # a new one: threads may read the old one


def _read(folders: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in folders if isinstance(folders, list) else ():
        if isinstance(folder, dict) and isinstance(uri := folder.get("uri"), str):
            found[uri] = name if isinstance(name := folder.get("name"), str) else ""
    return found
