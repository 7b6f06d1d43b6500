# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""The module of each name."""

from __future__ import annotations

from typing import Final

_NAMES: Final = {
    "base": (
        "CodeDescription Command Diagnostic DiagnosticRelatedInformation DiagnosticSeverity DiagnosticTag LSPAny LSPArray "
        "LSPObject Location MarkupContent MarkupKind PartialResultParams Position ProgressToken Range "
        "TextDocumentIdentifier TextDocumentPositionParams TextEdit VersionedTextDocumentIdentifier "
        "WorkDoneProgressParams WorkspaceFolder "
    ),
    "edits": (
        "AnnotatedTextEdit ChangeAnnotation ChangeAnnotationIdentifier CreateFile CreateFileOptions DeleteFile "
        "DeleteFileOptions OptionalVersionedTextDocumentIdentifier RenameFile RenameFileOptions ResourceOperation "
        "SnippetTextEdit StringValue TextDocumentEdit WorkspaceEdit "
    ),
    "documents": (
        "DidChangeTextDocumentParams DidCloseTextDocumentParams DidOpenTextDocumentParams DidSaveTextDocumentParams "
        "LanguageKind TextDocumentContentChangeEvent TextDocumentContentChangePartial "
        "TextDocumentContentChangeWholeDocument TextDocumentItem TextDocumentSaveReason WillSaveTextDocumentParams "
    ),
    "completion": (
        "ApplyKind CompletionContext CompletionItem CompletionItemApplyKinds CompletionItemDefaults CompletionItemKind "
        "CompletionItemLabelDetails CompletionItemTag CompletionList CompletionParams CompletionTriggerKind "
        "EditRangeWithInsertReplace InlineCompletionContext InlineCompletionItem InlineCompletionList "
        "InlineCompletionParams InlineCompletionTriggerKind InsertReplaceEdit InsertTextFormat InsertTextMode "
        "SelectedCompletionInfo "
    ),
    "hover": (
        "Hover HoverParams MarkedString MarkedStringWithLanguage ParameterInformation SignatureHelp SignatureHelpContext "
        "SignatureHelpParams SignatureHelpTriggerKind SignatureInformation "
    ),
    "navigation": (
        "Declaration DeclarationLink DeclarationParams DeclarationResult Definition DefinitionLink DefinitionParams "
        "DefinitionResult DocumentHighlight DocumentHighlightKind DocumentHighlightParams FoldingRange FoldingRangeKind "
        "FoldingRangeParams ImplementationParams ImplementationResult LinkedEditingRangeParams LinkedEditingRanges "
        "LocationLink Moniker MonikerKind MonikerParams ReferenceContext ReferenceParams SelectionRange "
        "SelectionRangeParams TypeDefinitionParams TypeDefinitionResult UniquenessLevel "
    ),
    "symbols": (
        "BaseSymbolInformation CallHierarchyIncomingCall CallHierarchyIncomingCallsParams CallHierarchyItem "
        "CallHierarchyOutgoingCall CallHierarchyOutgoingCallsParams CallHierarchyPrepareParams DocumentSymbol "
        "DocumentSymbolParams DocumentSymbolResult LocationUriOnly SymbolInformation SymbolKind SymbolTag "
        "TypeHierarchyItem TypeHierarchyPrepareParams TypeHierarchySubtypesParams TypeHierarchySupertypesParams "
        "WorkspaceSymbol WorkspaceSymbolParams WorkspaceSymbolResult "
    ),
    "actions": (
        "CodeAction CodeActionContext CodeActionDisabled CodeActionKind CodeActionParams CodeActionResult CodeActionTag "
        "CodeActionTriggerKind CodeLens CodeLensParams ExecuteCommandParams "
    ),
    "decorations": (
        "Color ColorInformation ColorPresentation ColorPresentationParams DocumentColorParams DocumentLink "
        "DocumentLinkParams InlayHint InlayHintKind InlayHintLabelPart InlayHintParams InlineValue InlineValueContext "
        "InlineValueEvaluatableExpression InlineValueParams InlineValueText InlineValueVariableLookup "
        "SemanticTokenModifiers SemanticTokenTypes SemanticTokens SemanticTokensDelta SemanticTokensDeltaParams "
        "SemanticTokensDeltaPartialResult SemanticTokensDeltaResult SemanticTokensEdit SemanticTokensParams "
        "SemanticTokensPartialResult SemanticTokensRangeParams "
    ),
    "formatting": (
        "DocumentFormattingParams DocumentOnTypeFormattingParams DocumentRangeFormattingParams "
        "DocumentRangesFormattingParams FormattingOptions PrepareRenameDefaultBehavior PrepareRenameParams "
        "PrepareRenamePlaceholder PrepareRenameResult RenameParams "
    ),
    "diagnostics": (
        "DocumentDiagnosticParams DocumentDiagnosticReport DocumentDiagnosticReportKind "
        "DocumentDiagnosticReportPartialResult FullDocumentDiagnosticReport PreviousResultId PublishDiagnosticsParams "
        "RelatedFullDocumentDiagnosticReport RelatedUnchangedDocumentDiagnosticReport UnchangedDocumentDiagnosticReport "
        "WorkspaceDiagnosticParams WorkspaceDiagnosticReport WorkspaceDiagnosticReportPartialResult "
        "WorkspaceDocumentDiagnosticReport WorkspaceFullDocumentDiagnosticReport "
        "WorkspaceUnchangedDocumentDiagnosticReport "
    ),
    "options": (
        "CallHierarchyOptions CodeActionKindDocumentation CodeActionOptions CodeLensOptions CompletionOptions "
        "DeclarationOptions DefinitionOptions DiagnosticOptions DidChangeConfigurationRegistrationOptions "
        "DidChangeWatchedFilesRegistrationOptions DocumentColorOptions DocumentFilter DocumentFormattingOptions "
        "DocumentHighlightOptions DocumentLinkOptions DocumentOnTypeFormattingOptions DocumentRangeFormattingOptions "
        "DocumentSelector DocumentSymbolOptions ExecuteCommandOptions FileOperationFilter FileOperationPattern "
        "FileOperationPatternKind FileOperationPatternOptions FileOperationRegistrationOptions FileSystemWatcher "
        "FoldingRangeOptions GlobPattern HoverOptions ImplementationOptions InlayHintOptions InlineCompletionOptions "
        "InlineValueOptions LinkedEditingRangeOptions MonikerOptions NotebookCellLanguage NotebookCellTextDocumentFilter "
        "NotebookDocumentFilter NotebookDocumentFilterNotebookType NotebookDocumentFilterPattern "
        "NotebookDocumentFilterScheme NotebookDocumentFilterWithCells NotebookDocumentFilterWithNotebook "
        "NotebookDocumentSyncOptions NotebookDocumentSyncRegistrationOptions Pattern ReferenceOptions RelativePattern "
        "RenameOptions SaveOptions SelectionRangeOptions SemanticTokensFullDelta SemanticTokensLegend "
        "SemanticTokensOptions ServerCompletionItemOptions SignatureHelpOptions TextDocumentContentOptions "
        "TextDocumentFilter TextDocumentFilterLanguage TextDocumentFilterPattern TextDocumentFilterScheme "
        "TextDocumentRegistrationOptions TextDocumentSyncKind TextDocumentSyncOptions TypeDefinitionOptions "
        "TypeHierarchyOptions WatchKind WorkDoneProgressOptions WorkspaceFoldersServerCapabilities WorkspaceSymbolOptions "
    ),
    "notebooks": (
        "DidChangeNotebookDocumentParams DidCloseNotebookDocumentParams DidOpenNotebookDocumentParams "
        "DidSaveNotebookDocumentParams ExecutionSummary NotebookCell NotebookCellArrayChange NotebookCellKind "
        "NotebookDocument NotebookDocumentCellChangeStructure NotebookDocumentCellChanges "
        "NotebookDocumentCellContentChanges NotebookDocumentChangeEvent NotebookDocumentIdentifier "
        "VersionedNotebookDocumentIdentifier "
    ),
    "workspace": (
        "ApplyWorkspaceEditParams ApplyWorkspaceEditResult CancelParams ClientInfo ConfigurationItem ConfigurationParams "
        "CreateFilesParams DeleteFilesParams DidChangeConfigurationParams DidChangeWatchedFilesParams "
        "DidChangeWorkspaceFoldersParams ErrorCodes FileChangeType FileCreate FileDelete FileEvent FileRename "
        "InitializeParams InitializedParams LSPErrorCodes LogMessageParams LogTraceParams MessageActionItem MessageType "
        "ProgressParams Registration RegistrationParams RenameFilesParams SetTraceParams ShowDocumentParams "
        "ShowDocumentResult ShowMessageParams ShowMessageRequestParams TextDocumentContentParams "
        "TextDocumentContentRefreshParams TextDocumentContentResult TraceValue Unregistration UnregistrationParams "
        "WorkDoneProgressBegin WorkDoneProgressCancelParams WorkDoneProgressCreateParams WorkDoneProgressEnd "
        "WorkDoneProgressReport WorkspaceEditMetadata WorkspaceFoldersChangeEvent WorkspaceFoldersInitializeParams "
    ),
}
HOMES: Final = {name: module for module, names in _NAMES.items() for name in names.split()}
