# Written by tools/protocols from the meta model of LSP 3.17.0. Do not edit.
"""What a server offers, and the options of registrations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import OpenInt, OpenStr, StructUnion, WireStruct
from .base import Command, WorkspaceFolder
from .enumerations import CodeActionKind, PositionEncodingKind

__all__ = [
    "CallHierarchyOptions",
    "CallHierarchyRegistrationOptions",
    "CodeActionKindDocumentation",
    "CodeActionOptions",
    "CodeActionRegistrationOptions",
    "CodeLensOptions",
    "CodeLensRegistrationOptions",
    "CompletionOptions",
    "CompletionRegistrationOptions",
    "DeclarationOptions",
    "DeclarationRegistrationOptions",
    "DefinitionOptions",
    "DefinitionRegistrationOptions",
    "DiagnosticOptions",
    "DiagnosticRegistrationOptions",
    "DidChangeConfigurationRegistrationOptions",
    "DidChangeWatchedFilesRegistrationOptions",
    "DocumentColorOptions",
    "DocumentColorRegistrationOptions",
    "DocumentFilter",
    "DocumentFormattingOptions",
    "DocumentFormattingRegistrationOptions",
    "DocumentHighlightOptions",
    "DocumentHighlightRegistrationOptions",
    "DocumentLinkOptions",
    "DocumentLinkRegistrationOptions",
    "DocumentOnTypeFormattingOptions",
    "DocumentOnTypeFormattingRegistrationOptions",
    "DocumentRangeFormattingOptions",
    "DocumentRangeFormattingRegistrationOptions",
    "DocumentSelector",
    "DocumentSymbolOptions",
    "DocumentSymbolRegistrationOptions",
    "ExecuteCommandOptions",
    "ExecuteCommandRegistrationOptions",
    "FileOperationFilter",
    "FileOperationOptions",
    "FileOperationPattern",
    "FileOperationPatternKind",
    "FileOperationPatternOptions",
    "FileOperationRegistrationOptions",
    "FileSystemWatcher",
    "FoldingRangeOptions",
    "FoldingRangeRegistrationOptions",
    "GlobPattern",
    "HoverOptions",
    "HoverRegistrationOptions",
    "ImplementationOptions",
    "ImplementationRegistrationOptions",
    "InlayHintOptions",
    "InlayHintRegistrationOptions",
    "InlineCompletionOptions",
    "InlineCompletionRegistrationOptions",
    "InlineValueOptions",
    "InlineValueRegistrationOptions",
    "LinkedEditingRangeOptions",
    "LinkedEditingRangeRegistrationOptions",
    "MonikerOptions",
    "MonikerRegistrationOptions",
    "NotebookCellLanguage",
    "NotebookCellTextDocumentFilter",
    "NotebookDocumentFilter",
    "NotebookDocumentFilterNotebookType",
    "NotebookDocumentFilterPattern",
    "NotebookDocumentFilterScheme",
    "NotebookDocumentFilterWithCells",
    "NotebookDocumentFilterWithNotebook",
    "NotebookDocumentSyncOptions",
    "NotebookDocumentSyncRegistrationOptions",
    "Pattern",
    "ReferenceOptions",
    "ReferenceRegistrationOptions",
    "RelativePattern",
    "RenameOptions",
    "RenameRegistrationOptions",
    "SaveOptions",
    "SelectionRangeOptions",
    "SelectionRangeRegistrationOptions",
    "SemanticTokensFullDelta",
    "SemanticTokensLegend",
    "SemanticTokensOptions",
    "SemanticTokensRegistrationOptions",
    "ServerCapabilities",
    "ServerCompletionItemOptions",
    "SignatureHelpOptions",
    "SignatureHelpRegistrationOptions",
    "StaticRegistrationOptions",
    "TextDocumentChangeRegistrationOptions",
    "TextDocumentContentOptions",
    "TextDocumentContentRegistrationOptions",
    "TextDocumentFilter",
    "TextDocumentFilterLanguage",
    "TextDocumentFilterPattern",
    "TextDocumentFilterScheme",
    "TextDocumentRegistrationOptions",
    "TextDocumentSaveRegistrationOptions",
    "TextDocumentSyncKind",
    "TextDocumentSyncOptions",
    "TypeDefinitionOptions",
    "TypeDefinitionRegistrationOptions",
    "TypeHierarchyOptions",
    "TypeHierarchyRegistrationOptions",
    "WatchKind",
    "WorkDoneProgressOptions",
    "WorkspaceFoldersServerCapabilities",
    "WorkspaceOptions",
    "WorkspaceSymbolOptions",
    "WorkspaceSymbolRegistrationOptions",
]


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


class CallHierarchyRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class CodeActionKindDocumentation(WireStruct, kw_only=True):
    kind: CodeActionKind
    command: Command


class CodeActionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    code_action_kinds: list[CodeActionKind] | None = None
    documentation: list[CodeActionKindDocumentation] | None = None
    resolve_provider: bool | None = None


class CodeActionRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    code_action_kinds: list[CodeActionKind] | None = None
    documentation: list[CodeActionKindDocumentation] | None = None
    resolve_provider: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class CodeLensOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class CodeLensRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class CompletionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    trigger_characters: list[str] | None = None
    all_commit_characters: list[str] | None = None
    resolve_provider: bool | None = None
    completion_item: ServerCompletionItemOptions | None = None


class CompletionRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    trigger_characters: list[str] | None = None
    all_commit_characters: list[str] | None = None
    resolve_provider: bool | None = None
    completion_item: ServerCompletionItemOptions | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DeclarationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DeclarationRegistrationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    document_selector: DocumentSelector | None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DefinitionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DefinitionRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DiagnosticOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    identifier: str | None = None
    inter_file_dependencies: bool
    workspace_diagnostics: bool


class DiagnosticRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    identifier: str | None = None
    inter_file_dependencies: bool
    workspace_diagnostics: bool
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DidChangeConfigurationRegistrationOptions(WireStruct, kw_only=True):
    section: str | list[str] | None = None


class DidChangeWatchedFilesRegistrationOptions(WireStruct, kw_only=True):
    watchers: list[FileSystemWatcher]


class DocumentColorOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DocumentColorRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


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


class DocumentFormattingRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DocumentHighlightOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class DocumentHighlightRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DocumentLinkOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class DocumentLinkRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DocumentOnTypeFormattingOptions(WireStruct, kw_only=True):
    first_trigger_character: str
    more_trigger_character: list[str] | None = None


class DocumentOnTypeFormattingRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    first_trigger_character: str
    more_trigger_character: list[str] | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DocumentRangeFormattingOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    ranges_support: bool | None = None


class DocumentRangeFormattingRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    ranges_support: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class DocumentSymbolOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    label: str | None = None


class DocumentSymbolRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class ExecuteCommandOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    commands: list[str]


class ExecuteCommandRegistrationOptions(ExecuteCommandOptions, kw_only=True):
    pass


class FileOperationFilter(WireStruct, kw_only=True):
    scheme: str | None = None
    pattern: FileOperationPattern


class FileOperationOptions(WireStruct, kw_only=True):
    did_create: FileOperationRegistrationOptions | None = None
    will_create: FileOperationRegistrationOptions | None = None
    did_rename: FileOperationRegistrationOptions | None = None
    will_rename: FileOperationRegistrationOptions | None = None
    did_delete: FileOperationRegistrationOptions | None = None
    will_delete: FileOperationRegistrationOptions | None = None


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


class FoldingRangeRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class RelativePattern(WireStruct, kw_only=True):
    base_uri: WorkspaceFolder | str
    pattern: Pattern


class HoverOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class HoverRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class ImplementationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class ImplementationRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class InlayHintOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class InlayHintRegistrationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None
    document_selector: DocumentSelector | None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class InlineCompletionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class InlineCompletionRegistrationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    document_selector: DocumentSelector | None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class InlineValueOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class InlineValueRegistrationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    document_selector: DocumentSelector | None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class LinkedEditingRangeOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class LinkedEditingRangeRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class MonikerOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class MonikerRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


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


class ReferenceRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class RenameOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    prepare_provider: bool | None = None


class RenameRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    prepare_provider: bool | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class SaveOptions(WireStruct, kw_only=True):
    include_text: bool | None = None


class SelectionRangeOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class SelectionRangeRegistrationOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    document_selector: DocumentSelector | None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


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


class SemanticTokensRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    legend: SemanticTokensLegend
    range: bool | dict[str, Any] | None = None
    full: bool | SemanticTokensFullDelta | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class ServerCapabilities(WireStruct, kw_only=True):
    position_encoding: PositionEncodingKind | None = None
    text_document_sync: TextDocumentSyncOptions | TextDocumentSyncKind | None = None
    notebook_document_sync: ServerCapabilitiesNotebookDocumentSync | None = None
    completion_provider: CompletionOptions | None = None
    hover_provider: bool | HoverOptions | None = None
    signature_help_provider: SignatureHelpOptions | None = None
    declaration_provider: ServerCapabilitiesDeclarationProvider | None = None
    definition_provider: bool | DefinitionOptions | None = None
    type_definition_provider: ServerCapabilitiesTypeDefinitionProvider | None = None
    implementation_provider: ServerCapabilitiesImplementationProvider | None = None
    references_provider: bool | ReferenceOptions | None = None
    document_highlight_provider: bool | DocumentHighlightOptions | None = None
    document_symbol_provider: bool | DocumentSymbolOptions | None = None
    code_action_provider: bool | CodeActionOptions | None = None
    code_lens_provider: CodeLensOptions | None = None
    document_link_provider: DocumentLinkOptions | None = None
    color_provider: ServerCapabilitiesColorProvider | None = None
    workspace_symbol_provider: bool | WorkspaceSymbolOptions | None = None
    document_formatting_provider: bool | DocumentFormattingOptions | None = None
    document_range_formatting_provider: bool | DocumentRangeFormattingOptions | None = None
    document_on_type_formatting_provider: DocumentOnTypeFormattingOptions | None = None
    rename_provider: bool | RenameOptions | None = None
    folding_range_provider: ServerCapabilitiesFoldingRangeProvider | None = None
    selection_range_provider: ServerCapabilitiesSelectionRangeProvider | None = None
    execute_command_provider: ExecuteCommandOptions | None = None
    call_hierarchy_provider: ServerCapabilitiesCallHierarchyProvider | None = None
    linked_editing_range_provider: ServerCapabilitiesLinkedEditingRangeProvider | None = None
    semantic_tokens_provider: ServerCapabilitiesSemanticTokensProvider | None = None
    moniker_provider: ServerCapabilitiesMonikerProvider | None = None
    type_hierarchy_provider: ServerCapabilitiesTypeHierarchyProvider | None = None
    inline_value_provider: ServerCapabilitiesInlineValueProvider | None = None
    inlay_hint_provider: ServerCapabilitiesInlayHintProvider | None = None
    diagnostic_provider: ServerCapabilitiesDiagnosticProvider | None = None
    inline_completion_provider: bool | InlineCompletionOptions | None = None
    workspace: WorkspaceOptions | None = None
    experimental: Any = None

    def __post_init__(self) -> None:
        self.notebook_document_sync = (
            None
            if self.notebook_document_sync is None
            else SERVER_CAPABILITIES_NOTEBOOK_DOCUMENT_SYNC_UNION.read(self.notebook_document_sync)
        )
        self.declaration_provider = (
            None
            if self.declaration_provider is None
            else SERVER_CAPABILITIES_DECLARATION_PROVIDER_UNION.read(self.declaration_provider)
        )
        self.type_definition_provider = (
            None
            if self.type_definition_provider is None
            else SERVER_CAPABILITIES_TYPE_DEFINITION_PROVIDER_UNION.read(self.type_definition_provider)
        )
        self.implementation_provider = (
            None
            if self.implementation_provider is None
            else SERVER_CAPABILITIES_IMPLEMENTATION_PROVIDER_UNION.read(self.implementation_provider)
        )
        self.color_provider = (
            None if self.color_provider is None else SERVER_CAPABILITIES_COLOR_PROVIDER_UNION.read(self.color_provider)
        )
        self.folding_range_provider = (
            None
            if self.folding_range_provider is None
            else SERVER_CAPABILITIES_FOLDING_RANGE_PROVIDER_UNION.read(self.folding_range_provider)
        )
        self.selection_range_provider = (
            None
            if self.selection_range_provider is None
            else SERVER_CAPABILITIES_SELECTION_RANGE_PROVIDER_UNION.read(self.selection_range_provider)
        )
        self.call_hierarchy_provider = (
            None
            if self.call_hierarchy_provider is None
            else SERVER_CAPABILITIES_CALL_HIERARCHY_PROVIDER_UNION.read(self.call_hierarchy_provider)
        )
        self.linked_editing_range_provider = (
            None
            if self.linked_editing_range_provider is None
            else SERVER_CAPABILITIES_LINKED_EDITING_RANGE_PROVIDER_UNION.read(self.linked_editing_range_provider)
        )
        self.semantic_tokens_provider = (
            None
            if self.semantic_tokens_provider is None
            else SERVER_CAPABILITIES_SEMANTIC_TOKENS_PROVIDER_UNION.read(self.semantic_tokens_provider)
        )
        self.moniker_provider = (
            None
            if self.moniker_provider is None
            else SERVER_CAPABILITIES_MONIKER_PROVIDER_UNION.read(self.moniker_provider)
        )
        self.type_hierarchy_provider = (
            None
            if self.type_hierarchy_provider is None
            else SERVER_CAPABILITIES_TYPE_HIERARCHY_PROVIDER_UNION.read(self.type_hierarchy_provider)
        )
        self.inline_value_provider = (
            None
            if self.inline_value_provider is None
            else SERVER_CAPABILITIES_INLINE_VALUE_PROVIDER_UNION.read(self.inline_value_provider)
        )
        self.inlay_hint_provider = (
            None
            if self.inlay_hint_provider is None
            else SERVER_CAPABILITIES_INLAY_HINT_PROVIDER_UNION.read(self.inlay_hint_provider)
        )
        self.diagnostic_provider = (
            None
            if self.diagnostic_provider is None
            else SERVER_CAPABILITIES_DIAGNOSTIC_PROVIDER_UNION.read(self.diagnostic_provider)
        )


class TypeDefinitionOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class TypeDefinitionRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class TypeHierarchyOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class TypeHierarchyRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class ServerCompletionItemOptions(WireStruct, kw_only=True):
    label_details_support: bool | None = None


class SignatureHelpOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    trigger_characters: list[str] | None = None
    retrigger_characters: list[str] | None = None


class SignatureHelpRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    work_done_progress: bool | None = None
    trigger_characters: list[str] | None = None
    retrigger_characters: list[str] | None = None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class StaticRegistrationOptions(WireStruct, kw_only=True):
    id: str | None = None


class TextDocumentRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None

    def __post_init__(self) -> None:
        self.document_selector = (
            None
            if self.document_selector is None
            else [DOCUMENT_FILTER_UNION.read(item) for item in self.document_selector]
        )


class TextDocumentChangeRegistrationOptions(TextDocumentRegistrationOptions, kw_only=True):
    sync_kind: TextDocumentSyncKind


class TextDocumentContentOptions(WireStruct, kw_only=True):
    schemes: list[str]


class TextDocumentContentRegistrationOptions(TextDocumentContentOptions, kw_only=True):
    id: str | None = None


class TextDocumentSaveRegistrationOptions(WireStruct, kw_only=True):
    document_selector: DocumentSelector | None
    include_text: bool | None = None

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


class WorkDoneProgressOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None


class WorkspaceFoldersServerCapabilities(WireStruct, kw_only=True):
    supported: bool | None = None
    change_notifications: str | bool | None = None


class WorkspaceOptions(WireStruct, kw_only=True):
    workspace_folders: WorkspaceFoldersServerCapabilities | None = None
    file_operations: FileOperationOptions | None = None
    text_document_content: WorkspaceOptionsTextDocumentContent | None = None

    def __post_init__(self) -> None:
        self.text_document_content = (
            None
            if self.text_document_content is None
            else WORKSPACE_OPTIONS_TEXT_DOCUMENT_CONTENT_UNION.read(self.text_document_content)
        )


class WorkspaceSymbolOptions(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    resolve_provider: bool | None = None


class WorkspaceSymbolRegistrationOptions(WorkspaceSymbolOptions, kw_only=True):
    pass


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


SERVER_CAPABILITIES_CALL_HIERARCHY_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", CallHierarchyRegistrationOptions),
        ("", CallHierarchyOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesCallHierarchyProvider: TypeAlias = bool | CallHierarchyOptions | CallHierarchyRegistrationOptions
else:
    ServerCapabilitiesCallHierarchyProvider = Annotated[Any, SERVER_CAPABILITIES_CALL_HIERARCHY_PROVIDER_UNION]


SERVER_CAPABILITIES_COLOR_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", DocumentColorRegistrationOptions),
        ("", DocumentColorOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesColorProvider: TypeAlias = bool | DocumentColorOptions | DocumentColorRegistrationOptions
else:
    ServerCapabilitiesColorProvider = Annotated[Any, SERVER_CAPABILITIES_COLOR_PROVIDER_UNION]


SERVER_CAPABILITIES_DECLARATION_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", DeclarationRegistrationOptions),
        ("", DeclarationOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesDeclarationProvider: TypeAlias = bool | DeclarationOptions | DeclarationRegistrationOptions
else:
    ServerCapabilitiesDeclarationProvider = Annotated[Any, SERVER_CAPABILITIES_DECLARATION_PROVIDER_UNION]


SERVER_CAPABILITIES_DIAGNOSTIC_PROVIDER_UNION = StructUnion(
    (),
    (
        ("documentSelector interFileDependencies workspaceDiagnostics", DiagnosticRegistrationOptions),
        ("interFileDependencies workspaceDiagnostics", DiagnosticOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesDiagnosticProvider: TypeAlias = DiagnosticOptions | DiagnosticRegistrationOptions
else:
    ServerCapabilitiesDiagnosticProvider = Annotated[Any, SERVER_CAPABILITIES_DIAGNOSTIC_PROVIDER_UNION]


SERVER_CAPABILITIES_FOLDING_RANGE_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", FoldingRangeRegistrationOptions),
        ("", FoldingRangeOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesFoldingRangeProvider: TypeAlias = bool | FoldingRangeOptions | FoldingRangeRegistrationOptions
else:
    ServerCapabilitiesFoldingRangeProvider = Annotated[Any, SERVER_CAPABILITIES_FOLDING_RANGE_PROVIDER_UNION]


SERVER_CAPABILITIES_IMPLEMENTATION_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", ImplementationRegistrationOptions),
        ("", ImplementationOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesImplementationProvider: TypeAlias = (
        bool | ImplementationOptions | ImplementationRegistrationOptions
    )
else:
    ServerCapabilitiesImplementationProvider = Annotated[Any, SERVER_CAPABILITIES_IMPLEMENTATION_PROVIDER_UNION]


SERVER_CAPABILITIES_INLAY_HINT_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", InlayHintRegistrationOptions),
        ("", InlayHintOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesInlayHintProvider: TypeAlias = bool | InlayHintOptions | InlayHintRegistrationOptions
else:
    ServerCapabilitiesInlayHintProvider = Annotated[Any, SERVER_CAPABILITIES_INLAY_HINT_PROVIDER_UNION]


SERVER_CAPABILITIES_INLINE_VALUE_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", InlineValueRegistrationOptions),
        ("", InlineValueOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesInlineValueProvider: TypeAlias = bool | InlineValueOptions | InlineValueRegistrationOptions
else:
    ServerCapabilitiesInlineValueProvider = Annotated[Any, SERVER_CAPABILITIES_INLINE_VALUE_PROVIDER_UNION]


SERVER_CAPABILITIES_LINKED_EDITING_RANGE_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", LinkedEditingRangeRegistrationOptions),
        ("", LinkedEditingRangeOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesLinkedEditingRangeProvider: TypeAlias = (
        bool | LinkedEditingRangeOptions | LinkedEditingRangeRegistrationOptions
    )
else:
    ServerCapabilitiesLinkedEditingRangeProvider = Annotated[
        Any, SERVER_CAPABILITIES_LINKED_EDITING_RANGE_PROVIDER_UNION
    ]


SERVER_CAPABILITIES_MONIKER_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", MonikerRegistrationOptions),
        ("", MonikerOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesMonikerProvider: TypeAlias = bool | MonikerOptions | MonikerRegistrationOptions
else:
    ServerCapabilitiesMonikerProvider = Annotated[Any, SERVER_CAPABILITIES_MONIKER_PROVIDER_UNION]


SERVER_CAPABILITIES_NOTEBOOK_DOCUMENT_SYNC_UNION = StructUnion(
    (),
    (
        ("notebookSelector", NotebookDocumentSyncOptions),
        ("notebookSelector", NotebookDocumentSyncRegistrationOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesNotebookDocumentSync: TypeAlias = (
        NotebookDocumentSyncOptions | NotebookDocumentSyncRegistrationOptions
    )
else:
    ServerCapabilitiesNotebookDocumentSync = Annotated[Any, SERVER_CAPABILITIES_NOTEBOOK_DOCUMENT_SYNC_UNION]


SERVER_CAPABILITIES_SELECTION_RANGE_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", SelectionRangeRegistrationOptions),
        ("", SelectionRangeOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesSelectionRangeProvider: TypeAlias = (
        bool | SelectionRangeOptions | SelectionRangeRegistrationOptions
    )
else:
    ServerCapabilitiesSelectionRangeProvider = Annotated[Any, SERVER_CAPABILITIES_SELECTION_RANGE_PROVIDER_UNION]


SERVER_CAPABILITIES_SEMANTIC_TOKENS_PROVIDER_UNION = StructUnion(
    (),
    (
        ("documentSelector legend", SemanticTokensRegistrationOptions),
        ("legend", SemanticTokensOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesSemanticTokensProvider: TypeAlias = SemanticTokensOptions | SemanticTokensRegistrationOptions
else:
    ServerCapabilitiesSemanticTokensProvider = Annotated[Any, SERVER_CAPABILITIES_SEMANTIC_TOKENS_PROVIDER_UNION]


SERVER_CAPABILITIES_TYPE_DEFINITION_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", TypeDefinitionRegistrationOptions),
        ("", TypeDefinitionOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesTypeDefinitionProvider: TypeAlias = (
        bool | TypeDefinitionOptions | TypeDefinitionRegistrationOptions
    )
else:
    ServerCapabilitiesTypeDefinitionProvider = Annotated[Any, SERVER_CAPABILITIES_TYPE_DEFINITION_PROVIDER_UNION]


SERVER_CAPABILITIES_TYPE_HIERARCHY_PROVIDER_UNION = StructUnion(
    (bool,),
    (
        ("documentSelector", TypeHierarchyRegistrationOptions),
        ("", TypeHierarchyOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ServerCapabilitiesTypeHierarchyProvider: TypeAlias = bool | TypeHierarchyOptions | TypeHierarchyRegistrationOptions
else:
    ServerCapabilitiesTypeHierarchyProvider = Annotated[Any, SERVER_CAPABILITIES_TYPE_HIERARCHY_PROVIDER_UNION]


WORKSPACE_OPTIONS_TEXT_DOCUMENT_CONTENT_UNION = StructUnion(
    (),
    (
        ("schemes", TextDocumentContentOptions),
        ("schemes", TextDocumentContentRegistrationOptions),
    ),
    lists=False,
)
if TYPE_CHECKING:
    WorkspaceOptionsTextDocumentContent: TypeAlias = TextDocumentContentOptions | TextDocumentContentRegistrationOptions
else:
    WorkspaceOptionsTextDocumentContent = Annotated[Any, WORKSPACE_OPTIONS_TEXT_DOCUMENT_CONTENT_UNION]
