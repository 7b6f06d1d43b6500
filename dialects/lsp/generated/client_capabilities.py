# Written by tools/protocols from the meta model of LSP 3.17.0. Do not edit.
"""What a client can."""

from __future__ import annotations

from typing import Any, TypeAlias

from ...structs import OpenInt, OpenStr, WireStruct
from .base import DiagnosticTag, MarkupKind
from .enumerations import (
    CodeActionKind,
    CodeActionTag,
    CompletionItemKind,
    CompletionItemTag,
    FoldingRangeKind,
    InsertTextMode,
    PositionEncodingKind,
    SymbolKind,
    SymbolTag,
)

__all__ = [
    "CallHierarchyClientCapabilities",
    "ChangeAnnotationsSupportOptions",
    "ClientCapabilities",
    "ClientCodeActionKindOptions",
    "ClientCodeActionLiteralOptions",
    "ClientCodeActionResolveOptions",
    "ClientCodeLensResolveOptions",
    "ClientCompletionItemInsertTextModeOptions",
    "ClientCompletionItemOptions",
    "ClientCompletionItemOptionsKind",
    "ClientCompletionItemResolveOptions",
    "ClientDiagnosticsTagOptions",
    "ClientFoldingRangeKindOptions",
    "ClientFoldingRangeOptions",
    "ClientInlayHintResolveOptions",
    "ClientSemanticTokensRequestFullDelta",
    "ClientSemanticTokensRequestOptions",
    "ClientShowMessageActionItemOptions",
    "ClientSignatureInformationOptions",
    "ClientSignatureParameterInformationOptions",
    "ClientSymbolKindOptions",
    "ClientSymbolResolveOptions",
    "ClientSymbolTagOptions",
    "CodeActionClientCapabilities",
    "CodeActionTagOptions",
    "CodeLensClientCapabilities",
    "CodeLensWorkspaceClientCapabilities",
    "CompletionClientCapabilities",
    "CompletionItemTagOptions",
    "CompletionListCapabilities",
    "DeclarationClientCapabilities",
    "DefinitionClientCapabilities",
    "DiagnosticClientCapabilities",
    "DiagnosticWorkspaceClientCapabilities",
    "DiagnosticsCapabilities",
    "DidChangeConfigurationClientCapabilities",
    "DidChangeWatchedFilesClientCapabilities",
    "DocumentColorClientCapabilities",
    "DocumentFormattingClientCapabilities",
    "DocumentHighlightClientCapabilities",
    "DocumentLinkClientCapabilities",
    "DocumentOnTypeFormattingClientCapabilities",
    "DocumentRangeFormattingClientCapabilities",
    "DocumentSymbolClientCapabilities",
    "ExecuteCommandClientCapabilities",
    "FailureHandlingKind",
    "FileOperationClientCapabilities",
    "FoldingRangeClientCapabilities",
    "FoldingRangeWorkspaceClientCapabilities",
    "GeneralClientCapabilities",
    "HoverClientCapabilities",
    "ImplementationClientCapabilities",
    "InlayHintClientCapabilities",
    "InlayHintWorkspaceClientCapabilities",
    "InlineCompletionClientCapabilities",
    "InlineValueClientCapabilities",
    "InlineValueWorkspaceClientCapabilities",
    "LinkedEditingRangeClientCapabilities",
    "MarkdownClientCapabilities",
    "MonikerClientCapabilities",
    "NotebookDocumentClientCapabilities",
    "NotebookDocumentSyncClientCapabilities",
    "PrepareSupportDefaultBehavior",
    "PublishDiagnosticsClientCapabilities",
    "ReferenceClientCapabilities",
    "RegularExpressionEngineKind",
    "RegularExpressionsClientCapabilities",
    "RenameClientCapabilities",
    "ResourceOperationKind",
    "SelectionRangeClientCapabilities",
    "SemanticTokensClientCapabilities",
    "SemanticTokensWorkspaceClientCapabilities",
    "ShowDocumentClientCapabilities",
    "ShowMessageRequestClientCapabilities",
    "SignatureHelpClientCapabilities",
    "StaleRequestSupportOptions",
    "TextDocumentClientCapabilities",
    "TextDocumentContentClientCapabilities",
    "TextDocumentFilterClientCapabilities",
    "TextDocumentSyncClientCapabilities",
    "TokenFormat",
    "TypeDefinitionClientCapabilities",
    "TypeHierarchyClientCapabilities",
    "WindowClientCapabilities",
    "WorkspaceClientCapabilities",
    "WorkspaceEditClientCapabilities",
    "WorkspaceSymbolClientCapabilities",
]


class FailureHandlingKind(OpenStr):
    ABORT = "abort"
    TRANSACTIONAL = "transactional"
    TEXT_ONLY_TRANSACTIONAL = "textOnlyTransactional"
    UNDO = "undo"


class PrepareSupportDefaultBehavior(OpenInt):
    IDENTIFIER = 1


class ResourceOperationKind(OpenStr):
    CREATE = "create"
    RENAME = "rename"
    DELETE = "delete"


class TokenFormat(OpenStr):
    RELATIVE = "relative"


class CallHierarchyClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class ChangeAnnotationsSupportOptions(WireStruct, kw_only=True):
    groups_on_label: bool | None = None


class ClientCapabilities(WireStruct, kw_only=True):
    workspace: WorkspaceClientCapabilities | None = None
    text_document: TextDocumentClientCapabilities | None = None
    notebook_document: NotebookDocumentClientCapabilities | None = None
    window: WindowClientCapabilities | None = None
    general: GeneralClientCapabilities | None = None
    experimental: Any = None


class ClientCodeActionKindOptions(WireStruct, kw_only=True):
    value_set: list[CodeActionKind]


class ClientCodeActionLiteralOptions(WireStruct, kw_only=True):
    code_action_kind: ClientCodeActionKindOptions


class ClientCodeActionResolveOptions(WireStruct, kw_only=True):
    properties: list[str]


class ClientCodeLensResolveOptions(WireStruct, kw_only=True):
    properties: list[str]


class ClientCompletionItemInsertTextModeOptions(WireStruct, kw_only=True):
    value_set: list[InsertTextMode]


class ClientCompletionItemOptions(WireStruct, kw_only=True):
    snippet_support: bool | None = None
    commit_characters_support: bool | None = None
    documentation_format: list[MarkupKind] | None = None
    deprecated_support: bool | None = None
    preselect_support: bool | None = None
    tag_support: CompletionItemTagOptions | None = None
    insert_replace_support: bool | None = None
    resolve_support: ClientCompletionItemResolveOptions | None = None
    insert_text_mode_support: ClientCompletionItemInsertTextModeOptions | None = None
    label_details_support: bool | None = None


class ClientCompletionItemOptionsKind(WireStruct, kw_only=True):
    value_set: list[CompletionItemKind] | None = None


class ClientCompletionItemResolveOptions(WireStruct, kw_only=True):
    properties: list[str]


class ClientDiagnosticsTagOptions(WireStruct, kw_only=True):
    value_set: list[DiagnosticTag]


class ClientFoldingRangeKindOptions(WireStruct, kw_only=True):
    value_set: list[FoldingRangeKind] | None = None


class ClientFoldingRangeOptions(WireStruct, kw_only=True):
    collapsed_text: bool | None = None


class ClientInlayHintResolveOptions(WireStruct, kw_only=True):
    properties: list[str]


class ClientSemanticTokensRequestFullDelta(WireStruct, kw_only=True):
    delta: bool | None = None


class ClientSemanticTokensRequestOptions(WireStruct, kw_only=True):
    range: bool | dict[str, Any] | None = None
    full: bool | ClientSemanticTokensRequestFullDelta | None = None


class ClientShowMessageActionItemOptions(WireStruct, kw_only=True):
    additional_properties_support: bool | None = None


class ClientSignatureInformationOptions(WireStruct, kw_only=True):
    documentation_format: list[MarkupKind] | None = None
    parameter_information: ClientSignatureParameterInformationOptions | None = None
    active_parameter_support: bool | None = None
    no_active_parameter_support: bool | None = None


class ClientSignatureParameterInformationOptions(WireStruct, kw_only=True):
    label_offset_support: bool | None = None


class ClientSymbolKindOptions(WireStruct, kw_only=True):
    value_set: list[SymbolKind] | None = None


class ClientSymbolResolveOptions(WireStruct, kw_only=True):
    properties: list[str]


class ClientSymbolTagOptions(WireStruct, kw_only=True):
    value_set: list[SymbolTag]


class CodeActionClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    code_action_literal_support: ClientCodeActionLiteralOptions | None = None
    is_preferred_support: bool | None = None
    disabled_support: bool | None = None
    data_support: bool | None = None
    resolve_support: ClientCodeActionResolveOptions | None = None
    honors_change_annotations: bool | None = None
    documentation_support: bool | None = None
    tag_support: CodeActionTagOptions | None = None


class CodeActionTagOptions(WireStruct, kw_only=True):
    value_set: list[CodeActionTag]


class CodeLensClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    resolve_support: ClientCodeLensResolveOptions | None = None


class CodeLensWorkspaceClientCapabilities(WireStruct, kw_only=True):
    refresh_support: bool | None = None


class CompletionClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    completion_item: ClientCompletionItemOptions | None = None
    completion_item_kind: ClientCompletionItemOptionsKind | None = None
    insert_text_mode: InsertTextMode | None = None
    context_support: bool | None = None
    completion_list: CompletionListCapabilities | None = None


class CompletionItemTagOptions(WireStruct, kw_only=True):
    value_set: list[CompletionItemTag]


class CompletionListCapabilities(WireStruct, kw_only=True):
    item_defaults: list[str] | None = None
    apply_kind_support: bool | None = None


class DeclarationClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    link_support: bool | None = None


class DefinitionClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    link_support: bool | None = None


class DiagnosticsCapabilities(WireStruct, kw_only=True):
    related_information: bool | None = None
    tag_support: ClientDiagnosticsTagOptions | None = None
    code_description_support: bool | None = None
    data_support: bool | None = None


class DiagnosticClientCapabilities(DiagnosticsCapabilities, kw_only=True):
    dynamic_registration: bool | None = None
    related_document_support: bool | None = None


class DiagnosticWorkspaceClientCapabilities(WireStruct, kw_only=True):
    refresh_support: bool | None = None


class DidChangeConfigurationClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class DidChangeWatchedFilesClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    relative_pattern_support: bool | None = None


class DocumentColorClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class DocumentFormattingClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class DocumentHighlightClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class DocumentLinkClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    tooltip_support: bool | None = None


class DocumentOnTypeFormattingClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class DocumentRangeFormattingClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    ranges_support: bool | None = None


class DocumentSymbolClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    symbol_kind: ClientSymbolKindOptions | None = None
    hierarchical_document_symbol_support: bool | None = None
    tag_support: ClientSymbolTagOptions | None = None
    label_support: bool | None = None


class ExecuteCommandClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class FileOperationClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    did_create: bool | None = None
    will_create: bool | None = None
    did_rename: bool | None = None
    will_rename: bool | None = None
    did_delete: bool | None = None
    will_delete: bool | None = None


class FoldingRangeClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    range_limit: int | None = None
    line_folding_only: bool | None = None
    folding_range_kind: ClientFoldingRangeKindOptions | None = None
    folding_range: ClientFoldingRangeOptions | None = None


class FoldingRangeWorkspaceClientCapabilities(WireStruct, kw_only=True):
    refresh_support: bool | None = None


class GeneralClientCapabilities(WireStruct, kw_only=True):
    stale_request_support: StaleRequestSupportOptions | None = None
    regular_expressions: RegularExpressionsClientCapabilities | None = None
    markdown: MarkdownClientCapabilities | None = None
    position_encodings: list[PositionEncodingKind] | None = None


class HoverClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    content_format: list[MarkupKind] | None = None


class ImplementationClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    link_support: bool | None = None


class InlayHintClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    resolve_support: ClientInlayHintResolveOptions | None = None


class InlayHintWorkspaceClientCapabilities(WireStruct, kw_only=True):
    refresh_support: bool | None = None


class InlineCompletionClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class InlineValueClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class InlineValueWorkspaceClientCapabilities(WireStruct, kw_only=True):
    refresh_support: bool | None = None


class LinkedEditingRangeClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class MarkdownClientCapabilities(WireStruct, kw_only=True):
    parser: str
    version: str | None = None
    allowed_tags: list[str] | None = None


class MonikerClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class NotebookDocumentClientCapabilities(WireStruct, kw_only=True):
    synchronization: NotebookDocumentSyncClientCapabilities


class NotebookDocumentSyncClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    execution_summary_support: bool | None = None


class PublishDiagnosticsClientCapabilities(DiagnosticsCapabilities, kw_only=True):
    version_support: bool | None = None


class ReferenceClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class RegularExpressionsClientCapabilities(WireStruct, kw_only=True):
    engine: RegularExpressionEngineKind
    version: str | None = None


class RenameClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    prepare_support: bool | None = None
    prepare_support_default_behavior: PrepareSupportDefaultBehavior | None = None
    honors_change_annotations: bool | None = None


class SelectionRangeClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class SemanticTokensClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    requests: ClientSemanticTokensRequestOptions
    token_types: list[str]
    token_modifiers: list[str]
    formats: list[TokenFormat]
    overlapping_token_support: bool | None = None
    multiline_token_support: bool | None = None
    server_cancel_support: bool | None = None
    augments_syntax_tokens: bool | None = None


class SemanticTokensWorkspaceClientCapabilities(WireStruct, kw_only=True):
    refresh_support: bool | None = None


class ShowDocumentClientCapabilities(WireStruct, kw_only=True):
    support: bool


class ShowMessageRequestClientCapabilities(WireStruct, kw_only=True):
    message_action_item: ClientShowMessageActionItemOptions | None = None


class SignatureHelpClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    signature_information: ClientSignatureInformationOptions | None = None
    context_support: bool | None = None


class StaleRequestSupportOptions(WireStruct, kw_only=True):
    cancel: bool
    retry_on_content_modified: list[str]


class TextDocumentClientCapabilities(WireStruct, kw_only=True):
    synchronization: TextDocumentSyncClientCapabilities | None = None
    filters: TextDocumentFilterClientCapabilities | None = None
    completion: CompletionClientCapabilities | None = None
    hover: HoverClientCapabilities | None = None
    signature_help: SignatureHelpClientCapabilities | None = None
    declaration: DeclarationClientCapabilities | None = None
    definition: DefinitionClientCapabilities | None = None
    type_definition: TypeDefinitionClientCapabilities | None = None
    implementation: ImplementationClientCapabilities | None = None
    references: ReferenceClientCapabilities | None = None
    document_highlight: DocumentHighlightClientCapabilities | None = None
    document_symbol: DocumentSymbolClientCapabilities | None = None
    code_action: CodeActionClientCapabilities | None = None
    code_lens: CodeLensClientCapabilities | None = None
    document_link: DocumentLinkClientCapabilities | None = None
    color_provider: DocumentColorClientCapabilities | None = None
    formatting: DocumentFormattingClientCapabilities | None = None
    range_formatting: DocumentRangeFormattingClientCapabilities | None = None
    on_type_formatting: DocumentOnTypeFormattingClientCapabilities | None = None
    rename: RenameClientCapabilities | None = None
    folding_range: FoldingRangeClientCapabilities | None = None
    selection_range: SelectionRangeClientCapabilities | None = None
    publish_diagnostics: PublishDiagnosticsClientCapabilities | None = None
    call_hierarchy: CallHierarchyClientCapabilities | None = None
    semantic_tokens: SemanticTokensClientCapabilities | None = None
    linked_editing_range: LinkedEditingRangeClientCapabilities | None = None
    moniker: MonikerClientCapabilities | None = None
    type_hierarchy: TypeHierarchyClientCapabilities | None = None
    inline_value: InlineValueClientCapabilities | None = None
    inlay_hint: InlayHintClientCapabilities | None = None
    diagnostic: DiagnosticClientCapabilities | None = None
    inline_completion: InlineCompletionClientCapabilities | None = None


class TextDocumentContentClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class TextDocumentFilterClientCapabilities(WireStruct, kw_only=True):
    relative_pattern_support: bool | None = None


class TextDocumentSyncClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    will_save: bool | None = None
    will_save_wait_until: bool | None = None
    did_save: bool | None = None


class TypeDefinitionClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    link_support: bool | None = None


class TypeHierarchyClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None


class WindowClientCapabilities(WireStruct, kw_only=True):
    work_done_progress: bool | None = None
    show_message: ShowMessageRequestClientCapabilities | None = None
    show_document: ShowDocumentClientCapabilities | None = None


class WorkspaceClientCapabilities(WireStruct, kw_only=True):
    apply_edit: bool | None = None
    workspace_edit: WorkspaceEditClientCapabilities | None = None
    did_change_configuration: DidChangeConfigurationClientCapabilities | None = None
    did_change_watched_files: DidChangeWatchedFilesClientCapabilities | None = None
    symbol: WorkspaceSymbolClientCapabilities | None = None
    execute_command: ExecuteCommandClientCapabilities | None = None
    workspace_folders: bool | None = None
    configuration: bool | None = None
    semantic_tokens: SemanticTokensWorkspaceClientCapabilities | None = None
    code_lens: CodeLensWorkspaceClientCapabilities | None = None
    file_operations: FileOperationClientCapabilities | None = None
    inline_value: InlineValueWorkspaceClientCapabilities | None = None
    inlay_hint: InlayHintWorkspaceClientCapabilities | None = None
    diagnostics: DiagnosticWorkspaceClientCapabilities | None = None
    folding_range: FoldingRangeWorkspaceClientCapabilities | None = None
    text_document_content: TextDocumentContentClientCapabilities | None = None


class WorkspaceEditClientCapabilities(WireStruct, kw_only=True):
    document_changes: bool | None = None
    resource_operations: list[ResourceOperationKind] | None = None
    failure_handling: FailureHandlingKind | None = None
    normalizes_line_endings: bool | None = None
    change_annotation_support: ChangeAnnotationsSupportOptions | None = None
    metadata_support: bool | None = None
    snippet_edit_support: bool | None = None


class WorkspaceSymbolClientCapabilities(WireStruct, kw_only=True):
    dynamic_registration: bool | None = None
    symbol_kind: ClientSymbolKindOptions | None = None
    tag_support: ClientSymbolTagOptions | None = None
    resolve_support: ClientSymbolResolveOptions | None = None


RegularExpressionEngineKind: TypeAlias = str
