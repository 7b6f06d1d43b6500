# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Diagnostics, pushed and pulled."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from ...structs import OpenStr, WireStruct
from .base import Diagnostic, ProgressToken, TextDocumentIdentifier

__all__ = [
    "DocumentDiagnosticParams", "DocumentDiagnosticReport", "DocumentDiagnosticReportKind",
    "DocumentDiagnosticReportPartialResult", "FullDocumentDiagnosticReport", "PreviousResultId",
    "PublishDiagnosticsParams", "RelatedFullDocumentDiagnosticReport", "RelatedUnchangedDocumentDiagnosticReport",
    "UnchangedDocumentDiagnosticReport", "WorkspaceDiagnosticParams", "WorkspaceDiagnosticReport",
    "WorkspaceDiagnosticReportPartialResult", "WorkspaceDocumentDiagnosticReport",
    "WorkspaceFullDocumentDiagnosticReport", "WorkspaceUnchangedDocumentDiagnosticReport",
]  # fmt: skip


class DocumentDiagnosticReportKind(OpenStr):
    FULL = "full"
    UNCHANGED = "unchanged"


class DocumentDiagnosticParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    identifier: str | None = None
    previous_result_id: str | None = None


class FullDocumentDiagnosticReport(WireStruct, kw_only=True, tag_field="kind", tag="full"):
    kind: ClassVar[Literal["full"]] = "full"
    result_id: str | None = None
    items: list[Diagnostic]


class RelatedFullDocumentDiagnosticReport(FullDocumentDiagnosticReport, kw_only=True):
    related_documents: dict[str, FullDocumentDiagnosticReport | UnchangedDocumentDiagnosticReport] | None = None


class UnchangedDocumentDiagnosticReport(WireStruct, kw_only=True, tag_field="kind", tag="unchanged"):
    kind: ClassVar[Literal["unchanged"]] = "unchanged"
    result_id: str


class RelatedUnchangedDocumentDiagnosticReport(UnchangedDocumentDiagnosticReport, kw_only=True):
    related_documents: dict[str, FullDocumentDiagnosticReport | UnchangedDocumentDiagnosticReport] | None = None


class DocumentDiagnosticReportPartialResult(WireStruct, kw_only=True):
    related_documents: dict[str, FullDocumentDiagnosticReport | UnchangedDocumentDiagnosticReport]


class PreviousResultId(WireStruct, kw_only=True):
    uri: str
    value: str


class PublishDiagnosticsParams(WireStruct, kw_only=True):
    uri: str
    version: int | None = None
    diagnostics: list[Diagnostic]


class WorkspaceDiagnosticParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    identifier: str | None = None
    previous_result_ids: list[PreviousResultId]


class WorkspaceDiagnosticReport(WireStruct, kw_only=True):
    items: list[WorkspaceDocumentDiagnosticReport]


class WorkspaceDiagnosticReportPartialResult(WireStruct, kw_only=True):
    items: list[WorkspaceDocumentDiagnosticReport]


class WorkspaceFullDocumentDiagnosticReport(FullDocumentDiagnosticReport, kw_only=True):
    uri: str
    version: int | None


class WorkspaceUnchangedDocumentDiagnosticReport(UnchangedDocumentDiagnosticReport, kw_only=True):
    uri: str
    version: int | None


DocumentDiagnosticReport: TypeAlias = RelatedFullDocumentDiagnosticReport | RelatedUnchangedDocumentDiagnosticReport

WorkspaceDocumentDiagnosticReport: TypeAlias = (
    WorkspaceFullDocumentDiagnosticReport | WorkspaceUnchangedDocumentDiagnosticReport
)
