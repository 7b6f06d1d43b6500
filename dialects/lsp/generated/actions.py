# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Code actions, code lenses and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import OpenInt, OpenStr, StructUnion, WireStruct
from .base import Command, Diagnostic, ProgressToken, Range, TextDocumentIdentifier
from .edits import WorkspaceEdit

__all__ = [
    "CodeAction", "CodeActionContext", "CodeActionDisabled", "CodeActionKind", "CodeActionParams",
    "CodeActionResult", "CodeActionTag", "CodeActionTriggerKind", "CodeLens", "CodeLensParams",
    "ExecuteCommandParams",
]  # fmt: skip


class CodeActionKind(OpenStr):
    EMPTY = ""
    QUICK_FIX = "quickfix"
    REFACTOR = "refactor"
    REFACTOR_EXTRACT = "refactor.extract"
    REFACTOR_INLINE = "refactor.inline"
    REFACTOR_MOVE = "refactor.move"
    REFACTOR_REWRITE = "refactor.rewrite"
    SOURCE = "source"
    SOURCE_ORGANIZE_IMPORTS = "source.organizeImports"
    SOURCE_FIX_ALL = "source.fixAll"
    NOTEBOOK = "notebook"


class CodeActionTag(OpenInt):
    LLM_GENERATED = 1


class CodeActionTriggerKind(OpenInt):
    INVOKED = 1
    AUTOMATIC = 2


class CodeAction(WireStruct, kw_only=True):
    title: str
    kind: CodeActionKind | None = None
    diagnostics: list[Diagnostic] | None = None
    is_preferred: bool | None = None
    disabled: CodeActionDisabled | None = None
    edit: WorkspaceEdit | None = None
    command: Command | None = None
    data: Any = None
    tags: list[CodeActionTag] | None = None


class CodeActionContext(WireStruct, kw_only=True):
    diagnostics: list[Diagnostic]
    only: list[CodeActionKind] | None = None
    trigger_kind: CodeActionTriggerKind | None = None


class CodeActionDisabled(WireStruct, kw_only=True):
    reason: str


class CodeActionParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    range: Range
    context: CodeActionContext


class CodeLens(WireStruct, kw_only=True):
    range: Range
    command: Command | None = None
    data: Any = None


class CodeLensParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier


class ExecuteCommandParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    command: str
    arguments: list[Any] | None = None


CODE_ACTION_RESULT_ITEM_UNION = StructUnion(
    (),
    (
        ("command title", Command),
        ("title", CodeAction),
    ),
    lists=False,
)
if TYPE_CHECKING:
    CodeActionResultItem: TypeAlias = Command | CodeAction
else:
    CodeActionResultItem = Annotated[Any, CODE_ACTION_RESULT_ITEM_UNION]


CodeActionResult: TypeAlias = list[CodeActionResultItem]
