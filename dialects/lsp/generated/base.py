# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""The parts of most messages: positions, ranges, documents, edits, diagnostics."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct

from ....daemon.documents import Position
from ...structs import OpenInt, OpenStr, WireStruct

__all__ = [
    "CodeDescription", "Command", "Diagnostic", "DiagnosticRelatedInformation", "DiagnosticSeverity",
    "DiagnosticTag", "LSPAny", "LSPArray", "LSPObject", "Location", "MarkupContent", "MarkupKind",
    "PartialResultParams", "Position", "ProgressToken", "Range", "TextDocumentIdentifier",
    "TextDocumentPositionParams", "TextEdit", "VersionedTextDocumentIdentifier", "WorkDoneProgressParams",
    "WorkspaceFolder",
]  # fmt: skip


class DiagnosticSeverity(OpenInt):
    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


class DiagnosticTag(OpenInt):
    UNNECESSARY = 1
    DEPRECATED = 2


class MarkupKind(OpenStr):
    PLAIN_TEXT = "plaintext"
    MARKDOWN = "markdown"


class CodeDescription(WireStruct, kw_only=True):
    href: str


class Command(WireStruct, kw_only=True):
    title: str
    tooltip: str | None = None
    command: str
    arguments: list[Any] | None = None


class Diagnostic(WireStruct, kw_only=True):
    range: Range
    severity: DiagnosticSeverity | None = None
    code: int | str | None = None
    code_description: CodeDescription | None = None
    source: str | None = None
    message: str | MarkupContent
    tags: list[DiagnosticTag] | None = None
    related_information: list[DiagnosticRelatedInformation] | None = None
    data: Any = None


class DiagnosticRelatedInformation(WireStruct, kw_only=True):
    location: Location
    message: str


class Location(WireStruct, kw_only=True):
    uri: str
    range: Range


class MarkupContent(WireStruct, kw_only=True):
    kind: MarkupKind
    value: str


class PartialResultParams(WireStruct, kw_only=True):
    partial_result_token: ProgressToken | None = None


class Range(Struct, rename="camel", frozen=True, order=True):
    start: Position
    end: Position


class TextDocumentIdentifier(WireStruct, kw_only=True):
    uri: str


class TextDocumentPositionParams(WireStruct, kw_only=True):
    text_document: TextDocumentIdentifier
    position: Position


class TextEdit(WireStruct, kw_only=True):
    range: Range
    new_text: str


class VersionedTextDocumentIdentifier(TextDocumentIdentifier, kw_only=True):
    version: int


class WorkDoneProgressParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None


class WorkspaceFolder(WireStruct, kw_only=True):
    uri: str
    name: str


LSPAny: TypeAlias = Any

LSPArray: TypeAlias = list[Any]

LSPObject: TypeAlias = dict[str, Any]

ProgressToken: TypeAlias = int | str
