// A session of vscode-languageserver-protocol 3.18 with what 3.18 added: as a client that has every capability, or none.
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const lsp = require("vscode-languageserver-protocol/node");

const all = {
  workspace: {
    applyEdit: true,
    workspaceEdit: { documentChanges: true, snippetEditSupport: true, metadataSupport: true },
    foldingRange: { refreshSupport: true },
    textDocumentContent: {},
  },
  textDocument: {
    inlineCompletion: {},
    rangeFormatting: { rangesSupport: true },
    diagnostic: { markupMessageSupport: true },
    completion: { completionList: { itemDefaults: ["data"], applyKindSupport: true } },
  },
};
const capabilities = process.argv[2] === "all" ? all : { workspace: { applyEdit: true } };

const server = spawn("discreet", ["serve", "./server_lsp_3_18.py:app"], { stdio: ["pipe", "pipe", "inherit"] });
const session = lsp.createProtocolConnection(
  new lsp.StreamMessageReader(server.stdout), new lsp.StreamMessageWriter(server.stdin), console);
const ended = once(server, "exit");
const say = (name, value) => process.stdout.write(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}\n`);

const uri = "file:///a.txt";
const textDocument = { uri };
const position = lsp.Position.create(0, 0);
const range = lsp.Range.create(position, position);
const first = (edit) => edit.documentChanges[0].edits[0];

session.onRequest(lsp.FoldingRangeRefreshRequest.type, () => void say("refresh", "folding"));
session.onRequest(lsp.TextDocumentContentRefreshRequest.type, (params) => void say("content refresh", params.uri));
session.onNotification(lsp.LogMessageNotification.type, ({ type }) => say("log", type));
session.onRequest(lsp.ApplyWorkspaceEditRequest.type, ({ edit, metadata }) => {
  say("apply", [lsp.SnippetTextEdit.is(first(edit)), metadata ?? null]);
  return { applied: true };
});
session.listen();

async function main() {
  const hello = { processId: process.pid, rootUri: null, capabilities };
  const { capabilities: told } = await session.sendRequest(lsp.InitializeRequest.type, hello);
  await session.sendNotification(lsp.InitializedNotification.type, {});
  say("announced", [told.inlineCompletionProvider, told.workspace.textDocumentContent, told.documentRangeFormattingProvider]);
  const at = { textDocument, position };
  if (told.inlineCompletionProvider) {
    const context = { triggerKind: lsp.InlineCompletionTriggerKind.Automatic };
    const { items } = await session.sendRequest(lsp.InlineCompletionRequest.type, { ...at, context });
    say("inline", lsp.StringValue.isSnippet(items[0].insertText));
    say("content", (await session.sendRequest(lsp.TextDocumentContentRequest.type, { uri: "made:1" })).text);
    const options = lsp.FormattingOptions.create(2, true);
    const ranges = { textDocument, ranges: [range, range], options };
    say("ranges", (await session.sendRequest(lsp.DocumentRangesFormattingRequest.type, ranges)).length);
  }
  const renamed = first(await session.sendRequest(lsp.RenameRequest.type, { ...at, newName: "x" }));
  say("rename", lsp.SnippetTextEdit.is(renamed) ? "a snippet" : renamed.newText);
  const { items: [found] } = await session.sendRequest(lsp.DocumentDiagnosticRequest.type, { textDocument });
  say("diagnostic", lsp.MarkupContent.is(found.message) ? "markup" : found.message);
  const list = await session.sendRequest(lsp.CompletionRequest.type, at);
  say("completion", [list.items[0].data, list.itemDefaults ?? null, list.applyKind ?? null]);
  await session.sendRequest(lsp.ExecuteCommandRequest.type, { command: "new.ask", arguments: [uri] });
  await session.sendRequest(lsp.ShutdownRequest.type);
  await session.sendNotification(lsp.ExitNotification.type);
  session.dispose();
  say("status", (await ended)[0]);
}

main().catch((error) => { console.error(error); process.exit(1); });
