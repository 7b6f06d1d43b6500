# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Completion, inline completion too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Struct

from ...structs import OpenInt, StructUnion, WireStruct
from .base import Command, MarkupContent, ProgressToken, Range, TextDocumentPositionParams, TextEdit
from .edits import StringValue

__all__ = [
    "ApplyKind", "CompletionContext", "CompletionItem", "CompletionItemApplyKinds", "CompletionItemDefaults",
    "CompletionItemKind", "CompletionItemLabelDetails", "CompletionItemTag", "CompletionList", "CompletionParams",
    "CompletionTriggerKind", "EditRangeWithInsertReplace", "InlineCompletionContext", "InlineCompletionItem",
    "InlineCompletionList", "InlineCompletionParams", "InlineCompletionTriggerKind", "InsertReplaceEdit",
    "InsertTextFormat", "InsertTextMode", "SelectedCompletionInfo",
]  # fmt: skip


class ApplyKind(OpenInt):
    REPLACE = 1
    MERGE = 2


class CompletionItemKind(OpenInt):
    TEXT = 1
    METHOD = 2
    FUNCTION = 3
    CONSTRUCTOR = 4
    FIELD = 5
    VARIABLE = 6
    CLASS = 7
    INTERFACE = 8
    MODULE = 9
    PROPERTY = 10
    UNIT = 11
    VALUE = 12
    ENUM = 13
    KEYWORD = 14
    SNIPPET = 15
    COLOR = 16
    FILE = 17
    REFERENCE = 18
    FOLDER = 19
    ENUM_MEMBER = 20
    CONSTANT = 21
    STRUCT = 22
    EVENT = 23
    OPERATOR = 24
    TYPE_PARAMETER = 25


class CompletionItemTag(OpenInt):
    DEPRECATED = 1


class CompletionTriggerKind(OpenInt):
    INVOKED = 1
    TRIGGER_CHARACTER = 2
    TRIGGER_FOR_INCOMPLETE_COMPLETIONS = 3


class InlineCompletionTriggerKind(OpenInt):
    INVOKED = 1
    AUTOMATIC = 2


class InsertTextFormat(OpenInt):
    PLAIN_TEXT = 1
    SNIPPET = 2


class InsertTextMode(OpenInt):
    AS_IS = 1
    ADJUST_INDENTATION = 2


class CompletionContext(WireStruct, kw_only=True):
    trigger_kind: CompletionTriggerKind
    trigger_character: str | None = None


class CompletionItem(WireStruct, kw_only=True):
    label: str
    label_details: CompletionItemLabelDetails | None = None
    kind: CompletionItemKind | None = None
    tags: list[CompletionItemTag] | None = None
    detail: str | None = None
    documentation: str | MarkupContent | None = None
    deprecated: bool | None = None
    preselect: bool | None = None
    sort_text: str | None = None
    filter_text: str | None = None
    insert_text: str | None = None
    insert_text_format: InsertTextFormat | None = None
    insert_text_mode: InsertTextMode | None = None
    text_edit: CompletionItemTextEdit | None = None
    text_edit_text: str | None = None
    additional_text_edits: list[TextEdit] | None = None
    commit_characters: list[str] | None = None
    command: Command | None = None
    data: Any = None

    def __post_init__(self) -> None:
        self.text_edit = None if self.text_edit is None else COMPLETION_ITEM_TEXT_EDIT_UNION.read(self.text_edit)


class CompletionItemApplyKinds(WireStruct, kw_only=True):
    commit_characters: ApplyKind | None = None
    data: ApplyKind | None = None


class CompletionItemDefaults(WireStruct, kw_only=True):
    commit_characters: list[str] | None = None
    edit_range: CompletionItemDefaultsEditRange | None = None
    insert_text_format: InsertTextFormat | None = None
    insert_text_mode: InsertTextMode | None = None
    data: Any = None

    def __post_init__(self) -> None:
        self.edit_range = (
            None if self.edit_range is None else COMPLETION_ITEM_DEFAULTS_EDIT_RANGE_UNION.read(self.edit_range)
        )


class EditRangeWithInsertReplace(Struct, rename="camel", frozen=True, order=True):
    insert: Range
    replace: Range


class CompletionItemLabelDetails(WireStruct, kw_only=True):
    detail: str | None = None
    description: str | None = None


class InsertReplaceEdit(WireStruct, kw_only=True):
    new_text: str
    insert: Range
    replace: Range


class CompletionList(WireStruct, kw_only=True):
    is_incomplete: bool
    item_defaults: CompletionItemDefaults | None = None
    apply_kind: CompletionItemApplyKinds | None = None
    items: list[CompletionItem]


class CompletionParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    context: CompletionContext | None = None


class InlineCompletionContext(WireStruct, kw_only=True):
    trigger_kind: InlineCompletionTriggerKind
    selected_completion_info: SelectedCompletionInfo | None = None


class InlineCompletionItem(WireStruct, kw_only=True):
    insert_text: str | StringValue
    filter_text: str | None = None
    range: Range | None = None
    command: Command | None = None


class InlineCompletionList(WireStruct, kw_only=True):
    items: list[InlineCompletionItem]


class InlineCompletionParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    context: InlineCompletionContext


class SelectedCompletionInfo(WireStruct, kw_only=True):
    range: Range
    text: str


COMPLETION_ITEM_DEFAULTS_EDIT_RANGE_UNION = StructUnion(
    (),
    (
        ("end start", Range),
        ("insert replace", EditRangeWithInsertReplace),
    ),
    lists=False,
)
if TYPE_CHECKING:
    CompletionItemDefaultsEditRange: TypeAlias = Range | EditRangeWithInsertReplace
else:
    CompletionItemDefaultsEditRange = Annotated[Any, COMPLETION_ITEM_DEFAULTS_EDIT_RANGE_UNION]


COMPLETION_ITEM_TEXT_EDIT_UNION = StructUnion(
    (),
    (
        ("insert newText replace", InsertReplaceEdit),
        ("newText range", TextEdit),
    ),
    lists=False,
)
if TYPE_CHECKING:
    CompletionItemTextEdit: TypeAlias = TextEdit | InsertReplaceEdit
else:
    CompletionItemTextEdit = Annotated[Any, COMPLETION_ITEM_TEXT_EDIT_UNION]
