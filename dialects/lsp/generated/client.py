# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""The methods of servers, and the handlers of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ...client import Answer, Listener, Notification, Request, Taken

if TYPE_CHECKING:
    from .actions import CodeAction, CodeActionParams, CodeActionResult, CodeLens, CodeLensParams, ExecuteCommandParams
    from .base import Location, TextEdit, WorkspaceFolder
    from .completion import (
        CompletionItem,
        CompletionList,
        CompletionParams,
        InlineCompletionItem,
        InlineCompletionList,
        InlineCompletionParams,
    )
    from .decorations import (
        ColorInformation,
        ColorPresentation,
        ColorPresentationParams,
        DocumentColorParams,
        DocumentLink,
        DocumentLinkParams,
        InlayHint,
        InlayHintParams,
        InlineValue,
        InlineValueParams,
        SemanticTokens,
        SemanticTokensDeltaParams,
        SemanticTokensDeltaResult,
        SemanticTokensParams,
        SemanticTokensRangeParams,
    )
    from .diagnostics import (
        DocumentDiagnosticParams,
        DocumentDiagnosticReport,
        PublishDiagnosticsParams,
        WorkspaceDiagnosticParams,
        WorkspaceDiagnosticReport,
    )
    from .documents import (
        DidChangeTextDocumentParams,
        DidCloseTextDocumentParams,
        DidOpenTextDocumentParams,
        DidSaveTextDocumentParams,
        WillSaveTextDocumentParams,
    )
    from .edits import WorkspaceEdit
    from .formatting import (
        DocumentFormattingParams,
        DocumentOnTypeFormattingParams,
        DocumentRangeFormattingParams,
        DocumentRangesFormattingParams,
        PrepareRenameParams,
        PrepareRenameResult,
        RenameParams,
    )
    from .hover import Hover, HoverParams, SignatureHelp, SignatureHelpParams
    from .navigation import (
        DeclarationParams,
        DeclarationResult,
        DefinitionParams,
        DefinitionResult,
        DocumentHighlight,
        DocumentHighlightParams,
        FoldingRange,
        FoldingRangeParams,
        ImplementationParams,
        ImplementationResult,
        LinkedEditingRangeParams,
        LinkedEditingRanges,
        Moniker,
        MonikerParams,
        ReferenceParams,
        SelectionRange,
        SelectionRangeParams,
        TypeDefinitionParams,
        TypeDefinitionResult,
    )
    from .notebooks import (
        DidChangeNotebookDocumentParams,
        DidCloseNotebookDocumentParams,
        DidOpenNotebookDocumentParams,
        DidSaveNotebookDocumentParams,
    )
    from .symbols import (
        CallHierarchyIncomingCall,
        CallHierarchyIncomingCallsParams,
        CallHierarchyItem,
        CallHierarchyOutgoingCall,
        CallHierarchyOutgoingCallsParams,
        CallHierarchyPrepareParams,
        DocumentSymbolParams,
        DocumentSymbolResult,
        TypeHierarchyItem,
        TypeHierarchyPrepareParams,
        TypeHierarchySubtypesParams,
        TypeHierarchySupertypesParams,
        WorkspaceSymbol,
        WorkspaceSymbolParams,
        WorkspaceSymbolResult,
    )
    from .workspace import (
        ApplyWorkspaceEditParams,
        ApplyWorkspaceEditResult,
        ConfigurationParams,
        CreateFilesParams,
        DeleteFilesParams,
        DidChangeConfigurationParams,
        DidChangeWatchedFilesParams,
        DidChangeWorkspaceFoldersParams,
        LogMessageParams,
        LogTraceParams,
        MessageActionItem,
        ProgressParams,
        RegistrationParams,
        RenameFilesParams,
        SetTraceParams,
        ShowDocumentParams,
        ShowDocumentResult,
        ShowMessageParams,
        ShowMessageRequestParams,
        TextDocumentContentParams,
        TextDocumentContentRefreshParams,
        TextDocumentContentResult,
        UnregistrationParams,
        WorkDoneProgressCancelParams,
        WorkDoneProgressCreateParams,
    )


class Methods:
    """The methods of a server, each with the struct of its params."""

    progress: Notification[ProgressParams] = Notification("$/progress")
    set_trace: Notification[SetTraceParams] = Notification("$/setTrace")
    call_hierarchy_incoming_calls: Request[CallHierarchyIncomingCallsParams, list[CallHierarchyIncomingCall] | None] = (
        Request("callHierarchy/incomingCalls", "list[CallHierarchyIncomingCall] | None")
    )
    call_hierarchy_outgoing_calls: Request[CallHierarchyOutgoingCallsParams, list[CallHierarchyOutgoingCall] | None] = (
        Request("callHierarchy/outgoingCalls", "list[CallHierarchyOutgoingCall] | None")
    )
    code_action_resolve: Request[CodeAction, CodeAction] = Request("codeAction/resolve", "CodeAction")
    code_lens_resolve: Request[CodeLens, CodeLens] = Request("codeLens/resolve", "CodeLens")
    completion_item_resolve: Request[CompletionItem, CompletionItem] = Request(
        "completionItem/resolve", "CompletionItem"
    )
    document_link_resolve: Request[DocumentLink, DocumentLink] = Request("documentLink/resolve", "DocumentLink")
    inlay_hint_resolve: Request[InlayHint, InlayHint] = Request("inlayHint/resolve", "InlayHint")
    notebook_document_did_change: Notification[DidChangeNotebookDocumentParams] = Notification(
        "notebookDocument/didChange"
    )
    notebook_document_did_close: Notification[DidCloseNotebookDocumentParams] = Notification(
        "notebookDocument/didClose"
    )
    notebook_document_did_open: Notification[DidOpenNotebookDocumentParams] = Notification("notebookDocument/didOpen")
    notebook_document_did_save: Notification[DidSaveNotebookDocumentParams] = Notification("notebookDocument/didSave")
    text_document_code_action: Request[CodeActionParams, CodeActionResult | None] = Request(
        "textDocument/codeAction", "CodeActionResult | None"
    )
    text_document_code_lens: Request[CodeLensParams, list[CodeLens] | None] = Request(
        "textDocument/codeLens", "list[CodeLens] | None"
    )
    text_document_color_presentation: Request[ColorPresentationParams, list[ColorPresentation]] = Request(
        "textDocument/colorPresentation", "list[ColorPresentation]"
    )
    text_document_completion: Request[CompletionParams, list[CompletionItem] | CompletionList | None] = Request(
        "textDocument/completion", "list[CompletionItem] | CompletionList | None"
    )
    text_document_declaration: Request[DeclarationParams, DeclarationResult | None] = Request(
        "textDocument/declaration", "DeclarationResult | None"
    )
    text_document_definition: Request[DefinitionParams, DefinitionResult | None] = Request(
        "textDocument/definition", "DefinitionResult | None"
    )
    text_document_diagnostic: Request[DocumentDiagnosticParams, DocumentDiagnosticReport] = Request(
        "textDocument/diagnostic", "DocumentDiagnosticReport"
    )
    text_document_did_change: Notification[DidChangeTextDocumentParams] = Notification("textDocument/didChange")
    text_document_did_close: Notification[DidCloseTextDocumentParams] = Notification("textDocument/didClose")
    text_document_did_open: Notification[DidOpenTextDocumentParams] = Notification("textDocument/didOpen")
    text_document_did_save: Notification[DidSaveTextDocumentParams] = Notification("textDocument/didSave")
    text_document_document_color: Request[DocumentColorParams, list[ColorInformation]] = Request(
        "textDocument/documentColor", "list[ColorInformation]"
    )
    text_document_document_highlight: Request[DocumentHighlightParams, list[DocumentHighlight] | None] = Request(
        "textDocument/documentHighlight", "list[DocumentHighlight] | None"
    )
    text_document_document_link: Request[DocumentLinkParams, list[DocumentLink] | None] = Request(
        "textDocument/documentLink", "list[DocumentLink] | None"
    )
    text_document_document_symbol: Request[DocumentSymbolParams, DocumentSymbolResult | None] = Request(
        "textDocument/documentSymbol", "DocumentSymbolResult | None"
    )
    text_document_folding_range: Request[FoldingRangeParams, list[FoldingRange] | None] = Request(
        "textDocument/foldingRange", "list[FoldingRange] | None"
    )
    text_document_formatting: Request[DocumentFormattingParams, list[TextEdit] | None] = Request(
        "textDocument/formatting", "list[TextEdit] | None"
    )
    text_document_hover: Request[HoverParams, Hover | None] = Request("textDocument/hover", "Hover | None")
    text_document_implementation: Request[ImplementationParams, ImplementationResult | None] = Request(
        "textDocument/implementation", "ImplementationResult | None"
    )
    text_document_inlay_hint: Request[InlayHintParams, list[InlayHint] | None] = Request(
        "textDocument/inlayHint", "list[InlayHint] | None"
    )
    text_document_inline_completion: Request[
        InlineCompletionParams, InlineCompletionList | list[InlineCompletionItem] | None
    ] = Request("textDocument/inlineCompletion", "InlineCompletionList | list[InlineCompletionItem] | None")
    text_document_inline_value: Request[InlineValueParams, list[InlineValue] | None] = Request(
        "textDocument/inlineValue", "list[InlineValue] | None"
    )
    text_document_linked_editing_range: Request[LinkedEditingRangeParams, LinkedEditingRanges | None] = Request(
        "textDocument/linkedEditingRange", "LinkedEditingRanges | None"
    )
    text_document_moniker: Request[MonikerParams, list[Moniker] | None] = Request(
        "textDocument/moniker", "list[Moniker] | None"
    )
    text_document_on_type_formatting: Request[DocumentOnTypeFormattingParams, list[TextEdit] | None] = Request(
        "textDocument/onTypeFormatting", "list[TextEdit] | None"
    )
    text_document_prepare_call_hierarchy: Request[CallHierarchyPrepareParams, list[CallHierarchyItem] | None] = Request(
        "textDocument/prepareCallHierarchy", "list[CallHierarchyItem] | None"
    )
    text_document_prepare_rename: Request[PrepareRenameParams, PrepareRenameResult | None] = Request(
        "textDocument/prepareRename", "PrepareRenameResult | None"
    )
    text_document_prepare_type_hierarchy: Request[TypeHierarchyPrepareParams, list[TypeHierarchyItem] | None] = Request(
        "textDocument/prepareTypeHierarchy", "list[TypeHierarchyItem] | None"
    )
    text_document_range_formatting: Request[DocumentRangeFormattingParams, list[TextEdit] | None] = Request(
        "textDocument/rangeFormatting", "list[TextEdit] | None"
    )
    text_document_ranges_formatting: Request[DocumentRangesFormattingParams, list[TextEdit] | None] = Request(
        "textDocument/rangesFormatting", "list[TextEdit] | None"
    )
    text_document_references: Request[ReferenceParams, list[Location] | None] = Request(
        "textDocument/references", "list[Location] | None"
    )
    text_document_rename: Request[RenameParams, WorkspaceEdit | None] = Request(
        "textDocument/rename", "WorkspaceEdit | None"
    )
    text_document_selection_range: Request[SelectionRangeParams, list[SelectionRange] | None] = Request(
        "textDocument/selectionRange", "list[SelectionRange] | None"
    )
    text_document_semantic_tokens_full: Request[SemanticTokensParams, SemanticTokens | None] = Request(
        "textDocument/semanticTokens/full", "SemanticTokens | None"
    )
    text_document_semantic_tokens_full_delta: Request[SemanticTokensDeltaParams, SemanticTokensDeltaResult | None] = (
        Request("textDocument/semanticTokens/full/delta", "SemanticTokensDeltaResult | None")
    )
    text_document_semantic_tokens_range: Request[SemanticTokensRangeParams, SemanticTokens | None] = Request(
        "textDocument/semanticTokens/range", "SemanticTokens | None"
    )
    text_document_signature_help: Request[SignatureHelpParams, SignatureHelp | None] = Request(
        "textDocument/signatureHelp", "SignatureHelp | None"
    )
    text_document_type_definition: Request[TypeDefinitionParams, TypeDefinitionResult | None] = Request(
        "textDocument/typeDefinition", "TypeDefinitionResult | None"
    )
    text_document_will_save: Notification[WillSaveTextDocumentParams] = Notification("textDocument/willSave")
    text_document_will_save_wait_until: Request[WillSaveTextDocumentParams, list[TextEdit] | None] = Request(
        "textDocument/willSaveWaitUntil", "list[TextEdit] | None"
    )
    type_hierarchy_subtypes: Request[TypeHierarchySubtypesParams, list[TypeHierarchyItem] | None] = Request(
        "typeHierarchy/subtypes", "list[TypeHierarchyItem] | None"
    )
    type_hierarchy_supertypes: Request[TypeHierarchySupertypesParams, list[TypeHierarchyItem] | None] = Request(
        "typeHierarchy/supertypes", "list[TypeHierarchyItem] | None"
    )
    window_work_done_progress_cancel: Notification[WorkDoneProgressCancelParams] = Notification(
        "window/workDoneProgress/cancel"
    )
    workspace_diagnostic: Request[WorkspaceDiagnosticParams, WorkspaceDiagnosticReport] = Request(
        "workspace/diagnostic", "WorkspaceDiagnosticReport"
    )
    workspace_did_change_configuration: Notification[DidChangeConfigurationParams] = Notification(
        "workspace/didChangeConfiguration"
    )
    workspace_did_change_watched_files: Notification[DidChangeWatchedFilesParams] = Notification(
        "workspace/didChangeWatchedFiles"
    )
    workspace_did_change_workspace_folders: Notification[DidChangeWorkspaceFoldersParams] = Notification(
        "workspace/didChangeWorkspaceFolders"
    )
    workspace_did_create_files: Notification[CreateFilesParams] = Notification("workspace/didCreateFiles")
    workspace_did_delete_files: Notification[DeleteFilesParams] = Notification("workspace/didDeleteFiles")
    workspace_did_rename_files: Notification[RenameFilesParams] = Notification("workspace/didRenameFiles")
    workspace_execute_command: Request[ExecuteCommandParams, Any] = Request("workspace/executeCommand", "Any")
    workspace_symbol: Request[WorkspaceSymbolParams, WorkspaceSymbolResult | None] = Request(
        "workspace/symbol", "WorkspaceSymbolResult | None"
    )
    workspace_text_document_content: Request[TextDocumentContentParams, TextDocumentContentResult] = Request(
        "workspace/textDocumentContent", "TextDocumentContentResult"
    )
    workspace_will_create_files: Request[CreateFilesParams, WorkspaceEdit | None] = Request(
        "workspace/willCreateFiles", "WorkspaceEdit | None"
    )
    workspace_will_delete_files: Request[DeleteFilesParams, WorkspaceEdit | None] = Request(
        "workspace/willDeleteFiles", "WorkspaceEdit | None"
    )
    workspace_will_rename_files: Request[RenameFilesParams, WorkspaceEdit | None] = Request(
        "workspace/willRenameFiles", "WorkspaceEdit | None"
    )
    workspace_symbol_resolve: Request[WorkspaceSymbol, WorkspaceSymbol] = Request(
        "workspaceSymbol/resolve", "WorkspaceSymbol"
    )


class Handlers(Struct, frozen=True, kw_only=True):
    """Handlers of what a server sends, each called with the struct of the params."""

    log_trace: Listener[LogTraceParams] | None = None
    progress: Listener[ProgressParams] | None = None
    client_register_capability: Answer[RegistrationParams, None] | None = None
    client_unregister_capability: Answer[UnregistrationParams, None] | None = None
    telemetry_event: Listener[Any] | None = None
    text_document_publish_diagnostics: Listener[PublishDiagnosticsParams] | None = None
    window_log_message: Listener[LogMessageParams] | None = None
    window_show_document: Answer[ShowDocumentParams, ShowDocumentResult] | None = None
    window_show_message: Listener[ShowMessageParams] | None = None
    window_show_message_request: Answer[ShowMessageRequestParams, MessageActionItem | None] | None = None
    window_work_done_progress_create: Answer[WorkDoneProgressCreateParams, None] | None = None
    workspace_apply_edit: Answer[ApplyWorkspaceEditParams, ApplyWorkspaceEditResult] | None = None
    workspace_code_lens_refresh: Answer[None, None] | None = None
    workspace_configuration: Answer[ConfigurationParams, list[Any]] | None = None
    workspace_diagnostic_refresh: Answer[None, None] | None = None
    workspace_folding_range_refresh: Answer[None, None] | None = None
    workspace_inlay_hint_refresh: Answer[None, None] | None = None
    workspace_inline_value_refresh: Answer[None, None] | None = None
    workspace_semantic_tokens_refresh: Answer[None, None] | None = None
    workspace_text_document_content_refresh: Answer[TextDocumentContentRefreshParams, None] | None = None
    workspace_workspace_folders: Answer[None, list[WorkspaceFolder] | None] | None = None


TAKEN: Final = {
    "log_trace": Taken("$/logTrace", "LogTraceParams", answers=False),
    "progress": Taken("$/progress", "ProgressParams", answers=False),
    "client_register_capability": Taken("client/registerCapability", "RegistrationParams", answers=True),
    "client_unregister_capability": Taken("client/unregisterCapability", "UnregistrationParams", answers=True),
    "telemetry_event": Taken("telemetry/event", "Any", answers=False),
    "text_document_publish_diagnostics": Taken(
        "textDocument/publishDiagnostics",
        "PublishDiagnosticsParams",
        answers=False,
        capabilities=(
            "textDocument.publishDiagnostics.relatedInformation",
            "textDocument.publishDiagnostics.codeDescriptionSupport",
            "textDocument.publishDiagnostics.dataSupport",
            "textDocument.publishDiagnostics.versionSupport",
        ),
    ),
    "window_log_message": Taken("window/logMessage", "LogMessageParams", answers=False),
    "window_show_document": Taken(
        "window/showDocument", "ShowDocumentParams", answers=True, capabilities=("window.showDocument.support",)
    ),
    "window_show_message": Taken("window/showMessage", "ShowMessageParams", answers=False),
    "window_show_message_request": Taken("window/showMessageRequest", "ShowMessageRequestParams", answers=True),
    "window_work_done_progress_create": Taken(
        "window/workDoneProgress/create",
        "WorkDoneProgressCreateParams",
        answers=True,
        capabilities=("window.workDoneProgress",),
    ),
    "workspace_apply_edit": Taken(
        "workspace/applyEdit", "ApplyWorkspaceEditParams", answers=True, capabilities=("workspace.applyEdit",)
    ),
    "workspace_code_lens_refresh": Taken(
        "workspace/codeLens/refresh", "None", answers=True, capabilities=("workspace.codeLens.refreshSupport",)
    ),
    "workspace_configuration": Taken(
        "workspace/configuration", "ConfigurationParams", answers=True, capabilities=("workspace.configuration",)
    ),
    "workspace_diagnostic_refresh": Taken(
        "workspace/diagnostic/refresh", "None", answers=True, capabilities=("workspace.diagnostics.refreshSupport",)
    ),
    "workspace_folding_range_refresh": Taken(
        "workspace/foldingRange/refresh", "None", answers=True, capabilities=("workspace.foldingRange.refreshSupport",)
    ),
    "workspace_inlay_hint_refresh": Taken(
        "workspace/inlayHint/refresh", "None", answers=True, capabilities=("workspace.inlayHint.refreshSupport",)
    ),
    "workspace_inline_value_refresh": Taken(
        "workspace/inlineValue/refresh", "None", answers=True, capabilities=("workspace.inlineValue.refreshSupport",)
    ),
    "workspace_semantic_tokens_refresh": Taken(
        "workspace/semanticTokens/refresh",
        "None",
        answers=True,
        capabilities=("workspace.semanticTokens.refreshSupport",),
    ),
    "workspace_text_document_content_refresh": Taken(
        "workspace/textDocumentContent/refresh", "TextDocumentContentRefreshParams", answers=True
    ),
    "workspace_workspace_folders": Taken(
        "workspace/workspaceFolders", "None", answers=True, capabilities=("workspace.workspaceFolders",)
    ),
}
"""The message of each handler."""
