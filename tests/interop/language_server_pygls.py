"""pygls' own language client with the language server of the examples: its types must accept whatever is answered."""

import asyncio

from lsprotocol import types as t
from pygls.lsp.client import LanguageClient

URI = "file:///notes.txt"


def say(name: str, value: object) -> None:
    print(f"{name}={value}")


async def main() -> None:
    client = LanguageClient("session", "1")
    told: asyncio.Future[t.PublishDiagnosticsParams] = asyncio.get_running_loop().create_future()

    @client.feature(t.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def publish(params: t.PublishDiagnosticsParams) -> None:
        if not told.done():
            told.set_result(params)

    @client.feature(t.WORKSPACE_APPLY_EDIT)
    def apply(params: t.ApplyWorkspaceEditParams) -> t.ApplyWorkspaceEditResult:
        say("edits", len(params.edit.changes[URI]))
        return t.ApplyWorkspaceEditResult(applied=True)

    @client.feature(t.WORKSPACE_CONFIGURATION)
    def configuration(params: t.ConfigurationParams) -> list[object]:
        return [None for _ in params.items]

    await client.start_io("discreet", "serve", "./todo_server.py:todo")
    capabilities = t.ClientCapabilities(
        general=t.GeneralClientCapabilities(position_encodings=[t.PositionEncodingKind.Utf32]),
        workspace=t.WorkspaceClientCapabilities(apply_edit=True, configuration=True),
    )
    result = await client.initialize_async(t.InitializeParams(capabilities=capabilities))
    say("encoding", result.capabilities.position_encoding)
    client.initialized(t.InitializedParams())
    item = t.TextDocumentItem(uri=URI, language_id="plaintext", version=1, text="# TODO rose\nTODO 🌹 rose DONE")
    client.text_document_did_open(t.DidOpenTextDocumentParams(item))
    say("diagnostics", len((await told).diagnostics))
    document = t.TextDocumentIdentifier(URI)
    hover = await client.text_document_hover_async(t.HoverParams(document, t.Position(1, 7)))
    say("hover", hover.contents)
    renamed = await client.text_document_rename_async(
        t.RenameParams(text_document=document, position=t.Position(1, 7), new_name="tulip")
    )
    say("renamed", renamed.changes[URI][1].range)
    pulled = await client.text_document_diagnostic_async(t.DocumentDiagnosticParams(document))
    say("pulled", len(pulled.items))
    done = await client.workspace_execute_command_async(t.ExecuteCommandParams("todo.finish_all", [URI]))
    say("command", done)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


asyncio.run(main())
