# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Notebooks."""

from __future__ import annotations

from typing import Any

from ...structs import OpenInt, WireStruct
from .base import TextDocumentIdentifier, VersionedTextDocumentIdentifier
from .documents import TEXT_DOCUMENT_CONTENT_CHANGE_EVENT_UNION, TextDocumentContentChangeEvent, TextDocumentItem

__all__ = [
    "DidChangeNotebookDocumentParams", "DidCloseNotebookDocumentParams", "DidOpenNotebookDocumentParams",
    "DidSaveNotebookDocumentParams", "ExecutionSummary", "NotebookCell", "NotebookCellArrayChange",
    "NotebookCellKind", "NotebookDocument", "NotebookDocumentCellChangeStructure", "NotebookDocumentCellChanges",
    "NotebookDocumentCellContentChanges", "NotebookDocumentChangeEvent", "NotebookDocumentIdentifier",
    "VersionedNotebookDocumentIdentifier",
]  # fmt: skip


class NotebookCellKind(OpenInt):
    MARKUP = 1
    CODE = 2


class DidChangeNotebookDocumentParams(WireStruct, kw_only=True):
    notebook_document: VersionedNotebookDocumentIdentifier
    change: NotebookDocumentChangeEvent


class DidCloseNotebookDocumentParams(WireStruct, kw_only=True):
    notebook_document: NotebookDocumentIdentifier
    cell_text_documents: list[TextDocumentIdentifier]


class DidOpenNotebookDocumentParams(WireStruct, kw_only=True):
    notebook_document: NotebookDocument
    cell_text_documents: list[TextDocumentItem]


class DidSaveNotebookDocumentParams(WireStruct, kw_only=True):
    notebook_document: NotebookDocumentIdentifier


class ExecutionSummary(WireStruct, kw_only=True):
    execution_order: int
    success: bool | None = None


class NotebookCell(WireStruct, kw_only=True):
    kind: NotebookCellKind
    document: str
    metadata: dict[str, Any] | None = None
    execution_summary: ExecutionSummary | None = None


class NotebookCellArrayChange(WireStruct, kw_only=True):
    start: int
    delete_count: int
    cells: list[NotebookCell] | None = None


class NotebookDocument(WireStruct, kw_only=True):
    uri: str
    notebook_type: str
    version: int
    metadata: dict[str, Any] | None = None
    cells: list[NotebookCell]


class NotebookDocumentCellChangeStructure(WireStruct, kw_only=True):
    array: NotebookCellArrayChange
    did_open: list[TextDocumentItem] | None = None
    did_close: list[TextDocumentIdentifier] | None = None


class NotebookDocumentCellChanges(WireStruct, kw_only=True):
    structure: NotebookDocumentCellChangeStructure | None = None
    data: list[NotebookCell] | None = None
    text_content: list[NotebookDocumentCellContentChanges] | None = None


class NotebookDocumentCellContentChanges(WireStruct, kw_only=True):
    document: VersionedTextDocumentIdentifier
    changes: list[TextDocumentContentChangeEvent]

    def __post_init__(self) -> None:
        self.changes = [TEXT_DOCUMENT_CONTENT_CHANGE_EVENT_UNION.read(item) for item in self.changes]


class NotebookDocumentChangeEvent(WireStruct, kw_only=True):
    metadata: dict[str, Any] | None = None
    cells: NotebookDocumentCellChanges | None = None


class NotebookDocumentIdentifier(WireStruct, kw_only=True):
    uri: str


class VersionedNotebookDocumentIdentifier(WireStruct, kw_only=True):
    version: int
    uri: str
