# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""The options of methods, as declarations have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import OpenInt, OpenStr, StructUnion, WireStruct
from .actions import CodeActionKind
from .base import Command, WorkspaceFolder

__all__ = [
    "CallHierarchyOptions", "CodeActionKindDocumentation", "CodeActionOptions", "CodeLensOptions",
    "CompletionOptions", "DeclarationOptions", "DefinitionOptions", "DiagnosticOptions",
    "DidChangeConfigurationRegistrationOptions", "DidChangeWatchedFilesRegistrationOptions", "DocumentColorOptions",
    "DocumentFilter", "DocumentFormattingOptions", "DocumentHighlightOptions", "DocumentLinkOptions",
    "DocumentOnTypeFormattingOptions", "DocumentRangeFormattingOptions", "DocumentSelector",
    "DocumentSymbolOptions", "ExecuteCommandOptions", "FileOperationFilter", "FileOperationPattern",
    "FileOperationPatternKind", "FileOperationPatternOptions", "FileOperationRegistrationOptions",
    "FileSystemWatcher", "FoldingRangeOptions", "GlobPattern", "HoverOptions", "ImplementationOptions",
    "InlayHintOptions", "InlineCompletionOptions", "InlineValueOptions", "LinkedEditingRangeOptions",
    "MonikerOptions", "NotebookCellLanguage", "NotebookCellTextDocumentFilter", "NotebookDocumentFilter",
    "NotebookDocumentFilterNotebookType", "NotebookDocumentFilterPattern", "NotebookDocumentFilterScheme",
    "NotebookDocumentFilterWithCells", "NotebookDocumentFilterWithNotebook", "NotebookDocumentSyncOptions",
    "NotebookDocumentSyncRegistrationOptions", "Pattern", "ReferenceOptions", "RelativePattern", "RenameOptions",
    "SaveOptions", "SelectionRangeOptions", "SemanticTokensFullDelta", "SemanticTokensLegend",
    "SemanticTokensOptions", "ServerCompletionItemOptions", "SignatureHelpOptions", "TextDocumentContentOptions",
    "TextDocumentFilter", "TextDocumentFilterLanguage", "TextDocumentFilterPattern", "TextDocumentFilterScheme",
    "TextDocumentRegistrationOptions", "TextDocumentSyncKind", "TextDocumentSyncOptions", "TypeDefinitionOptions",
    "TypeHierarchyOptions", "WatchKind", "WorkDoneProgressOptions", "WorkspaceFoldersServerCapabilities",
    "WorkspaceSymbolOptions",
]  # fmt: skip


class FileOperationPatternKind(OpenStr):
    FILE = "file"
    FOLDER = "folder"


class TextDocumentSyncKind(OpenInt):
    NONE = 0
    FULL = 1
    INCREMENTAL = 2


class WatchKind(OpenInt):
    CREATE = 1
    CHANGE = 2
    DELETE = 4


class CallHierarchyOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class CodeActionKindDocumentation(WireStruct, kw_only=True):
    kind: CodeActionKind
    command: Command


class CodeActionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    code_action_kinds: list[CodeActionKind] | None = None
    documentation: list[CodeActionKindDocumentation] | None = None
    resolve_provider: bool | None = None


class CodeLensOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class CompletionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    trigger_characters: list[str] | None = None
    all_commit_characters: list[str] | None = None
    resolve_provider: bool | None = None
    completion_item: ServerCompletionItemOptions | None = None


class DeclarationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DefinitionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DiagnosticOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    identifier: str | None = None
    inter_file_dependencies: bool
    workspace_diagnostics: bool


class DidChangeConfigurationRegistrationOptions(WireStruct, kw_only=True):
    section: str | list[str] | None = None


class DidChangeWatchedFilesRegistrationOptions(WireStruct, kw_only=True):
    watchers: list[FileSystemWatcher]


class DocumentColorOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class NotebookCellTextDocumentFilter(WireStruct, kw_only=True):
    notebook: NotebookCellTextDocumentFilterNotebook
    language: str | None = None

    def __post_init__(self) -> None:
        self.notebook = NOTEBOOK_CELL_TEXT_DOCUMENT_FILTER_NOTEBOOK_UNION.read(self.notebook)


class TextDocumentFilterLanguage(WireStruct, kw_only=True):
    language: str
    scheme: str | None = None
    pattern: GlobPattern | None = None


class TextDocumentFilterPattern(WireStruct, kw_only=True):
    language: str | None = None
    scheme: str | None = None
    pattern: GlobPattern


class TextDocumentFilterScheme(WireStruct, kw_only=True):
    language: str | None = None
    scheme: str
    pattern: GlobPattern | None = None


class DocumentFormattingOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DocumentHighlightOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DocumentLinkOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class DocumentOnTypeFormattingOptions(WireStruct, kw_only=True):
    first_trigger_character: str
    more_trigger_character: list[str] | None = None


class DocumentRangeFormattingOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    ranges_support: bool | None = None


class DocumentSymbolOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    label: str | None = None


class ExecuteCommandOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    commands: list[str]


class FileOperationFilter(WireStruct, kw_only=True):
    scheme: str | None = None
    pattern: FileOperationPattern


class FileOperationPattern(WireStruct, kw_only=True):
    glob: str
    matches: FileOperationPatternKind | None = None
    options: FileOperationPatternOptions | None = None


class FileOperationPatternOptions(WireStruct, kw_only=True):
    ignore_case: bool | None = None


class FileOperationRegistrationOptions(WireStruct, kw_only=True):
    filters: list[FileOperationFilter]


class FileSystemWatcher(WireStruct, kw_only=True):
    glob_pattern: GlobPattern
    kind: WatchKind | None = None


class FoldingRangeOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class RelativePattern(WireStruct, kw_only=True):
    base_uri: WorkspaceFolder | str
    pattern: Pattern


class HoverOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class ImplementationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class InlayHintOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class InlineCompletionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class InlineValueOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class LinkedEditingRangeOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class MonikerOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class NotebookCellLanguage(WireStruct, kw_only=True):
    language: str


class NotebookDocumentFilterNotebookType(WireStruct, kw_only=True):
    notebook_type: str
    scheme: str | None = None
    pattern: GlobPattern | None = None


class NotebookDocumentFilterPattern(WireStruct, kw_only=True):
    notebook_type: str | None = None
    scheme: str | None = None
    pattern: GlobPattern


class NotebookDocumentFilterScheme(WireStruct, kw_only=True):
    notebook_type: str | None = None
    scheme: str
    pattern: GlobPattern | None = None


class NotebookDocumentFilterWithCells(WireStruct, kw_only=True):
    notebook: NotebookDocumentFilterWithCellsNotebook | None = None
    cells: list[NotebookCellLanguage]

    def __post_init__(self) -> None:
        self.notebook = (
            None if self.notebook is None else NOTEBOOK_DOCUMENT_FILTER_WITH_CELLS_NOTEBOOK_UNION.read(self.notebook)
        )


class NotebookDocumentFilterWithNotebook(WireStruct, kw_only=True):
    notebook: NotebookDocumentFilterWithNotebookNotebook
    cells: list[NotebookCellLanguage] | None = None

    def __post_init__(self) -> None:
        self.notebook = NOTEBOOK_DOCUMENT_FILTER_WITH_NOTEBOOK_NOTEBOOK_UNION.read(self.notebook)


class NotebookDocumentSyncOptions(WireStruct, kw_only=True):
    notebook_selector: list[NotebookDocumentSyncOptionsNotebookSelectorItem]
    save: bool | None = None

    def __post_init__(self) -> None:
        self.notebook_selector = [
            NOTEBOOK_DOCUMENT_SYNC_OPTIONS_NOTEBOOK_SELECTOR_ITEM_UNION.read(item) for item in self.notebook_selector
        ]


class NotebookDocumentSyncRegistrationOptions(NotebookDocumentSyncOptions, kw_only=True):
    id: str | None = None


class ReferenceOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class RenameOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    prepare_provider: bool | None = None


class SaveOptions(WireStruct, kw_only=True):
    include_text: bool | None = None


class SelectionRangeOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class SemanticTokensFullDelta(WireStruct, kw_only=True):
    delta: bool | None = None


class SemanticTokensLegend(WireStruct, kw_only=True):
    token_types: list[str]
    token_modifiers: list[str]


class SemanticTokensOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    legend: SemanticTokensLegend
    range: bool | dict[str, Any] | None = None
    full: bool | SemanticTokensFullDelta | None = None


class ServerCompletionItemOptions(WireStruct, kw_only=True):
    label_details_support: bool | None = None


class SignatureHelpOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    trigger_characters: list[str] | None = None
    retrigger_characters: list[str] | None = None


class TextDocumentContentOptions(WireStruct, kw_only=True):
    schemes: list[str]


class TextDocumentRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class TextDocumentSyncOptions(WireStruct, kw_only=True):
    open_close: bool | None = None
    change: TextDocumentSyncKind | None = None
    will_save: bool | None = None
    will_save_wait_until: bool | None = None
    save: bool | SaveOptions | None = None


class TypeDefinitionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class TypeHierarchyOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class WorkDoneProgressOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class WorkspaceFoldersServerCapabilities(WireStruct, kw_only=True):
    supported: bool | None = None
    change_notifications: str | bool | None = None


class WorkspaceSymbolOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


TEXT_DOCUMENT_FILTER_UNION = StructUnion(
    (),
    (
        ("language", TextDocumentFilterLanguage),
        ("scheme", TextDocumentFilterScheme),
        ("pattern", TextDocumentFilterPattern),
    ),
    lists=False,
)
if TYPE_CHECKING:
    TextDocumentFilter: TypeAlias = TextDocumentFilterLanguage | TextDocumentFilterScheme | TextDocumentFilterPattern
else:
    TextDocumentFilter = Annotated[Any, TEXT_DOCUMENT_FILTER_UNION]


DOCUMENT_FILTER_UNION = StructUnion(
    (),
    (
        ("language", TextDocumentFilterLanguage),
        ("scheme", TextDocumentFilterScheme),
        ("pattern", TextDocumentFilterPattern),
        ("notebook", NotebookCellTextDocumentFilter),
    ),
    lists=False,
)
if TYPE_CHECKING:
    DocumentFilter: TypeAlias = TextDocumentFilter | NotebookCellTextDocumentFilter
else:
    DocumentFilter = Annotated[Any, DOCUMENT_FILTER_UNION]


DocumentSelector: TypeAlias = list[DocumentFilter]

Pattern: TypeAlias = str

GlobPattern: TypeAlias = Pattern | RelativePattern

NOTEBOOK_DOCUMENT_FILTER_UNION = StructUnion(
    (),
    (
        ("notebookType", NotebookDocumentFilterNotebookType),
        ("scheme", NotebookDocumentFilterScheme),
        ("pattern", NotebookDocumentFilterPattern),
    ),
    lists=False,
)
if TYPE_CHECKING:
    NotebookDocumentFilter: TypeAlias = (
        NotebookDocumentFilterNotebookType | NotebookDocumentFilterScheme | NotebookDocumentFilterPattern
    )
else:
    NotebookDocumentFilter = Annotated[Any, NOTEBOOK_DOCUMENT_FILTER_UNION]


NOTEBOOK_CELL_TEXT_DOCUMENT_FILTER_NOTEBOOK_UNION = StructUnion(
    (str,),
    (
        ("notebookType", NotebookDocumentFilterNotebookType),
        ("scheme", NotebookDocumentFilterScheme),
        ("pattern", NotebookDocumentFilterPattern),
    ),
    lists=False,
)
if TYPE_CHECKING:
    NotebookCellTextDocumentFilterNotebook: TypeAlias = str | NotebookDocumentFilter
else:
    NotebookCellTextDocumentFilterNotebook = Annotated[Any, NOTEBOOK_CELL_TEXT_DOCUMENT_FILTER_NOTEBOOK_UNION]


NOTEBOOK_DOCUMENT_FILTER_WITH_CELLS_NOTEBOOK_UNION = StructUnion(
    (str,),
    (
        ("notebookType", NotebookDocumentFilterNotebookType),
        ("scheme", NotebookDocumentFilterScheme),
        ("pattern", NotebookDocumentFilterPattern),
    ),
    lists=False,
)
if TYPE_CHECKING:
    NotebookDocumentFilterWithCellsNotebook: TypeAlias = str | NotebookDocumentFilter
else:
    NotebookDocumentFilterWithCellsNotebook = Annotated[Any, NOTEBOOK_DOCUMENT_FILTER_WITH_CELLS_NOTEBOOK_UNION]


NOTEBOOK_DOCUMENT_FILTER_WITH_NOTEBOOK_NOTEBOOK_UNION = StructUnion(
    (str,),
    (
        ("notebookType", NotebookDocumentFilterNotebookType),
        ("scheme", NotebookDocumentFilterScheme),
        ("pattern", NotebookDocumentFilterPattern),
    ),
    lists=False,
)
if TYPE_CHECKING:
    NotebookDocumentFilterWithNotebookNotebook: TypeAlias = str | NotebookDocumentFilter
else:
    NotebookDocumentFilterWithNotebookNotebook = Annotated[Any, NOTEBOOK_DOCUMENT_FILTER_WITH_NOTEBOOK_NOTEBOOK_UNION]


NOTEBOOK_DOCUMENT_SYNC_OPTIONS_NOTEBOOK_SELECTOR_ITEM_UNION = StructUnion(
    (),
    (
        ("notebook", NotebookDocumentFilterWithNotebook),
        ("cells", NotebookDocumentFilterWithCells),
    ),
    lists=False,
)
if TYPE_CHECKING:
    NotebookDocumentSyncOptionsNotebookSelectorItem: TypeAlias = (
        NotebookDocumentFilterWithNotebook | NotebookDocumentFilterWithCells
    )
else:
    NotebookDocumentSyncOptionsNotebookSelectorItem = Annotated[
        Any, NOTEBOOK_DOCUMENT_SYNC_OPTIONS_NOTEBOOK_SELECTOR_ITEM_UNION
    ]
