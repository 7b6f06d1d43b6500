"""Sends the editor requests and notifications of a handler. Asks nothing of a client that has not advertised it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, final
from uuid import uuid4

from ...awaited import refuses_bool
from ...daemon.operations.context import ClientRefused, is_answered, shown_progress
from ...lazy import anyio
from .capabilities import has_capability
from .generated.base import Diagnostic, MarkupContent, Range
from .generated.diagnostics import PublishDiagnosticsParams
from .generated.edits import SnippetTextEdit, TextDocumentEdit, WorkspaceEdit
from .generated.tables import CLIENT_CAPABILITIES_3_18
from .generated.workspace import (
    ApplyWorkspaceEditParams,
    ApplyWorkspaceEditResult,
    ConfigurationItem,
    ConfigurationParams,
    LogMessageParams,
    MessageActionItem,
    MessageType,
    ShowDocumentParams,
    ShowDocumentResult,
    ShowMessageParams,
    ShowMessageRequestParams,
    TextDocumentContentRefreshParams,
    WorkDoneProgressBegin,
    WorkDoneProgressEnd,
    WorkDoneProgressReport,
    WorkspaceEditMetadata,
)

if TYPE_CHECKING:
    from ...daemon.operations.context import Context
    from ...daemon.operations.request import Sending

ANSWER_SECONDS: Final = 30.0
"""How long the editor has for requests that need no person."""

PERSON_SECONDS: Final = 3600.0
"""How long a person has to answer a question."""


@final
class Progress:
    """A progress that the editor shows. `cancelled` is true once the user has cancelled it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._token: str | int | None = None
        self.cancelled = False

    async def report(self, message: str | None = None, percentage: int | None = None) -> None:
        """Tell the user how far the work is. `percentage` is 0 to 100. Does nothing if the editor shows no progress."""
        await self._send(WorkDoneProgressReport(message=message, percentage=percentage))

    async def _send(self, value: object) -> None:
        if self._token is not None:
            await self._ctx.notify("$/progress", {"token": self._token, "value": value})


@final
class Editor:
    """The editor that sent the request of `ctx`.

    Its coroutines raise `ClientRefused` and `TimeoutError`, as `ctx.request` does. A handler in a worker thread uses
    `ctx.request_blocking` instead.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def can(self, path: str) -> bool:
        """Tell whether the editor has a capability, by its name in the specification: `workspace.applyEdit`."""
        return has_capability(self._ctx.client.capabilities, path)

    # -- telling -----------------------------------------------------------------------------------------------

    def publish_diagnostics(
        self, uri: str, diagnostics: Sequence[Diagnostic], *, version: int | None = None
    ) -> Sending:
        """Replace the diagnostics of a document. `version` defaults to the version that is open now.

        Messages in markup are sent as text to an editor without `textDocument.diagnostic.markupMessageSupport`.
        """
        document = self._ctx.documents.get(uri)
        if version is None and document is not None:
            version = document.version
        params: Any = PublishDiagnosticsParams(  # Any: also JSON
            uri=uri,
            version=version if self.can("textDocument.publishDiagnostics.versionSupport") else None,
            diagnostics=list(diagnostics),
        )
        if any(isinstance(one.message, MarkupContent) for one in params.diagnostics):
            from .guards import MARKUP, plain_for  # late: few servers write markup

            params = plain_for(MARKUP, self._ctx.client.capabilities, params)
        return self._ctx.notify("textDocument/publishDiagnostics", params)

    def show_message(self, message: str, type: MessageType = MessageType.INFO) -> Sending:
        """Show a message to the user. `MessageType.DEBUG` is sent as `LOG` to an editor that says nothing of LSP 3.18."""
        return self._ctx.notify("window/showMessage", ShowMessageParams(type=self._known(type), message=message))

    def log_message(self, message: str, type: MessageType = MessageType.LOG) -> Sending:
        """Write a message into the editor's log of this server. `MessageType.DEBUG` is treated as in `show_message`."""
        return self._ctx.notify("window/logMessage", LogMessageParams(type=self._known(type), message=message))

    def _known(self, type: MessageType) -> MessageType:
        if type != MessageType.DEBUG:
            return type
        return type if any(map(self.can, CLIENT_CAPABILITIES_3_18)) else MessageType.LOG

    # -- asking ------------------------------------------------------------------------------------------------

    @refuses_bool
    async def choose(
        self,
        message: str,
        actions: Sequence[str],
        type: MessageType = MessageType.INFO,
        timeout: float = PERSON_SECONDS,
    ) -> str | None:
        """Ask the user to choose an action. Returns None if the user closed the question."""
        params = ShowMessageRequestParams(
            type=type, message=message, actions=[MessageActionItem(title=title) for title in actions]
        )
        chosen = await self._ctx.request(
            "window/showMessageRequest", params, type=MessageActionItem | None, timeout=timeout
        )
        return None if chosen is None else chosen.title

    @refuses_bool
    async def show_document(
        self, uri: str, *, external: bool = False, take_focus: bool = False, selection: Range | None = None
    ) -> bool:
        """Show a document or a web page. Returns False if the editor can't, or did not."""
        if not self.can("window.showDocument.support"):
            return False
        params = ShowDocumentParams(uri=uri, external=external, take_focus=take_focus, selection=selection)
        shown = await self._ctx.request("window/showDocument", params, type=ShowDocumentResult, timeout=ANSWER_SECONDS)
        return shown.success

    @refuses_bool
    async def apply_edit(
        self, edit: WorkspaceEdit, label: str | None = None, *, metadata: WorkspaceEditMetadata | None = None
    ) -> ApplyWorkspaceEditResult:
        """Change documents of the workspace. The result says whether the editor applied the edit, and if not, why.

        Snippets are sent as text to an editor without `workspace.workspaceEdit.snippetEditSupport`, and metadata is left out
        for one without `workspace.workspaceEdit.metadataSupport`.
        """
        if not self.can("workspace.applyEdit"):
            return ApplyWorkspaceEditResult(applied=False, failure_reason="the editor does not support it")
        if not self.can("workspace.workspaceEdit.metadataSupport"):
            metadata = None
        params: Any = ApplyWorkspaceEditParams(label=label, edit=edit, metadata=metadata)  # Any: also JSON
        if _has_snippet(edit):
            from .guards import SNIPPETS, plain_for  # late: few servers edit by snippets

            params = plain_for(SNIPPETS, self._ctx.client.capabilities, params)
        return await self._ctx.request(
            "workspace/applyEdit", params, type=ApplyWorkspaceEditResult, timeout=ANSWER_SECONDS
        )

    @refuses_bool
    async def configuration(
        self, *sections: str, scope_uri: str | None = None, anyway: bool = False
    ) -> list[Any]:  # Any: JSON
        """Return these sections of the user's settings, in the same order; None for a section that is not available.

        An editor that has not advertised `workspace.configuration` is asked only with `anyway`. It may answer, or the call
        raises `ClientRefused` or `TimeoutError`.
        """
        if not (anyway or self.can("workspace.configuration")):
            return [None] * len(sections)
        items = [ConfigurationItem(section=section, scope_uri=scope_uri) for section in sections]
        return await self._ctx.request(
            "workspace/configuration", ConfigurationParams(items=items), type=list[Any], timeout=ANSWER_SECONDS
        )

    async def refresh(self, what: str, uri: str | None = None) -> None:
        """Ask the editor to request `semanticTokens`, `inlayHint`, `codeLens`, `foldingRange`, `diagnostics` or the like again.

        `textDocumentContent` needs the `uri` of the document whose content has changed. With `diagnostics`, the functions under
        `@lsp.diagnostics` run again for all open documents, also where the editor does not pull them.
        """
        if what == "diagnostics":
            self._ctx.documents.refresh()
        if uri is not None:
            if self.can(f"workspace.{what}"):
                content = TextDocumentContentRefreshParams(uri=uri)
                await self._ctx.request(f"workspace/{what}/refresh", content, timeout=ANSWER_SECONDS)
        elif self.can(f"workspace.{what}.refreshSupport"):
            method = "workspace/diagnostic/refresh" if what == "diagnostics" else f"workspace/{what}/refresh"
            await self._ctx.request(method, timeout=ANSWER_SECONDS)

    # -- progress ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def progress(
        self, title: str, *, message: str | None = None, percentage: int | None = None, cancellable: bool = False
    ) -> AsyncIterator[Progress]:
        """Show progress during the block. It ends with the block.

        The first progress of a request uses the token that the caller sent with the request, if it sent one. Every other one
        is created with `window/workDoneProgress/create`. With `cancellable`, the user can cancel the block; the code after the
        block then runs.
        """
        progress, scope = Progress(self._ctx), anyio.CancelScope()

        def cancel() -> None:
            if cancellable:
                progress.cancelled = True
                scope.cancel()

        own = str(uuid4()) if self.can("window.workDoneProgress") else None
        with shown_progress(self._ctx, own, cancel) as token:
            if token != own or (own is not None and await self._create(own)):
                progress._token = token
            begin = WorkDoneProgressBegin(title=title, message=message, percentage=percentage, cancellable=cancellable)
            await progress._send(begin)
            with scope:
                try:
                    yield progress
                finally:
                    with anyio.CancelScope(shield=True):
                        if token == own or not is_answered(self._ctx):  # else the answer has ended it
                            await progress._send(WorkDoneProgressEnd())

    async def _create(self, token: str) -> bool:
        try:
            await self._ctx.request("window/workDoneProgress/create", {"token": token}, timeout=ANSWER_SECONDS)
        except (ClientRefused, TimeoutError):
            return False
        return True


def _has_snippet(edit: WorkspaceEdit) -> bool:
    return any(
        isinstance(one, SnippetTextEdit)
        for change in edit.document_changes or ()
        if isinstance(change, TextDocumentEdit)
        for one in change.edits
    )
