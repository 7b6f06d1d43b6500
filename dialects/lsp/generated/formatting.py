# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Formatting and renaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import StructUnion, WireStruct
from .base import Position, ProgressToken, Range, TextDocumentIdentifier, TextDocumentPositionParams

__all__ = [
    "DocumentFormattingParams", "DocumentOnTypeFormattingParams", "DocumentRangeFormattingParams",
    "DocumentRangesFormattingParams", "FormattingOptions", "PrepareRenameDefaultBehavior", "PrepareRenameParams",
    "PrepareRenamePlaceholder", "PrepareRenameResult", "RenameParams",
]  # fmt: skip


class DocumentFormattingParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    options: FormattingOptions


class DocumentOnTypeFormattingParams(WireStruct, kw_only=True):
    text_document: TextDocumentIdentifier
    position: Position
    ch: str
    options: FormattingOptions


class DocumentRangeFormattingParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    range: Range
    options: FormattingOptions


class DocumentRangesFormattingParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    ranges: list[Range]
    options: FormattingOptions


class FormattingOptions(WireStruct, kw_only=True):
    tab_size: int
    insert_spaces: bool
    trim_trailing_whitespace: bool | None = None
    insert_final_newline: bool | None = None
    trim_final_newlines: bool | None = None


class PrepareRenameDefaultBehavior(WireStruct, kw_only=True):
    default_behavior: bool


class PrepareRenameParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None


class PrepareRenamePlaceholder(WireStruct, kw_only=True):
    range: Range
    placeholder: str


class RenameParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    position: Position
    new_name: str


PREPARE_RENAME_RESULT_UNION = StructUnion(
    (),
    (
        ("end start", Range),
        ("placeholder range", PrepareRenamePlaceholder),
        ("defaultBehavior", PrepareRenameDefaultBehavior),
    ),
    lists=False,
)
if TYPE_CHECKING:
    PrepareRenameResult: TypeAlias = Range | PrepareRenamePlaceholder | PrepareRenameDefaultBehavior
else:
    PrepareRenameResult = Annotated[Any, PREPARE_RENAME_RESULT_UNION]
