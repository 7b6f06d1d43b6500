// The client library of VS Code with a language server: every feature in turn, or a request that is at work until the end.
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const lsp = require("vscode-languageserver-protocol/node");

const server = spawn("discreet", ["serve", "./garden_server.py:garden"], { stdio: ["pipe", "pipe", "inherit"] });
const session = lsp.createProtocolConnection(
  new lsp.StreamMessageReader(server.stdout), new lsp.StreamMessageWriter(server.stdin), console);
const ended = once(server, "exit");
const say = (name, value) => process.stdout.write(`${name}=${value}\n`);

const folder = pathToFileURL(process.cwd()).href;
const uri = `${folder}/notes.txt`;
let text = "# water rose\nwater 🌹 rose";
let version = 1;

// Applies edits as VS Code does: the last one in the text comes first, in units of UTF-16, which are those of JavaScript.
function apply(edits) {
  const starts = text.split("\n").map((line, at, lines) => lines.slice(0, at).join("\n").length + (at && 1));
  const offset = ({ line, character }) => starts[line] + character;
  for (const { range, newText } of [...edits].reverse())
    text = text.slice(0, offset(range.start)) + newText + text.slice(offset(range.end));
  const textDocument = lsp.VersionedTextDocumentIdentifier.create(uri, ++version);
  return session.sendNotification(lsp.DidChangeTextDocumentNotification.type, { textDocument, contentChanges: [{ text }] });
}

// Waits for the next message of a kind that is told by the server.
const waiting = {};
const next = (kind) => new Promise((resolve) => { waiting[kind] = resolve; });
const tell = (kind, value) => { waiting[kind]?.(value); delete waiting[kind]; };

const steps = [];
const registered = [];
let pushed = "none pushed";
session.onNotification(lsp.PublishDiagnosticsNotification.type, () => { pushed = "pushed as well"; });
session.onNotification(lsp.ShowMessageNotification.type, ({ message }) => tell("message", message));
session.onRequest(lsp.RegistrationRequest.type, ({ registrations }) => {
  registered.push(...registrations.map((each) => each.method));
  tell("registered");
});
session.onRequest(lsp.WorkDoneProgressCreateRequest.type, ({ token }) => {
  session.onProgress(lsp.WorkDoneProgress.type, token, (value) => steps.push(value.kind));
});
session.listen();

const capabilities = {
  workspace: { didChangeWatchedFiles: { dynamicRegistration: true }, inlayHint: {} },
  window: { workDoneProgress: true },
  textDocument: {
    publishDiagnostics: { versionSupport: true }, diagnostic: {}, inlayHint: {}, rename: {},
    codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix"] } } },
    semanticTokens: { requests: { full: true }, tokenTypes: ["keyword"], tokenModifiers: [], formats: ["relative"] },
  },
};

async function main() {
  const here = { uri: folder, name: "garden" };
  const hello = { processId: process.pid, rootUri: folder, workspaceFolders: [here], capabilities };
  const registration = next("registered");
  await session.sendRequest(lsp.InitializeRequest.type, hello);
  await session.sendNotification(lsp.InitializedNotification.type, {});
  const item = lsp.TextDocumentItem.create(uri, "plaintext", version, text);
  await session.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument: item });
  const textDocument = { uri };
  const { items: diagnostics } = await session.sendRequest(lsp.DocumentDiagnosticRequest.type, { textDocument });
  if (process.env.GARDEN_REST) return session.sendRequest(lsp.ExecuteCommandRequest.type, { command: "garden.rest" });
  const [modules] = require.resolve("vscode-languageserver-protocol/node").split("vscode-languageserver-protocol");
  say("version", require(path.join(modules, "vscode-languageserver-protocol", "package.json")).version);
  say("diagnostics", diagnostics.map((each) => `${each.range.start.line} ${each.message}`).join(", "));

  const rose = lsp.Position.create(1, 9);
  say("hover", (await session.sendRequest(lsp.HoverRequest.type, { textDocument, position: rose })).contents);
  const items = await session.sendRequest(lsp.CompletionRequest.type, { textDocument, position: lsp.Position.create(0, 0) });
  say("completion", items.map((each) => each.label).join(" "));

  const { data } = await session.sendRequest(lsp.SemanticTokensRequest.type, { textDocument });
  say("semantic tokens", data.join(" "));
  const range = lsp.Range.create(0, 0, 2, 0);
  const hints = await session.sendRequest(lsp.InlayHintRequest.type, { textDocument, range });
  say("inlay hints", hints.map(({ position, label }) => `${position.line} ${position.character}${label}`).join(", "));

  const renamed = await session.sendRequest(lsp.RenameRequest.type, { textDocument, position: rose, newName: "tulip" });
  await apply(renamed.changes[uri]);
  say("rename", text.replace("\n", "|"));
  const context = { diagnostics: [diagnostics[1]], only: [lsp.CodeActionKind.QuickFix] };
  const actions = { textDocument, range: diagnostics[1].range, context };
  const [action] = await session.sendRequest(lsp.CodeActionRequest.type, actions);
  await apply(action.edit.changes[uri]);
  say("code action", text.replace("\n", "|"));

  await session.sendRequest(lsp.ExecuteCommandRequest.type, { command: "garden.grow" });
  say("progress", steps.join(" "));
  say("pulled diagnostics", pushed);
  await registration;
  const message = next("message");
  if (registered.includes("workspace/didChangeWatchedFiles")) {
    const changes = [{ uri: `${folder}/oak.seed`, type: lsp.FileChangeType.Created }];
    await session.sendNotification(lsp.DidChangeWatchedFilesNotification.type, { changes });
    say("file watching", await message);
  }
  await session.sendRequest(lsp.ShutdownRequest.type);
  await session.sendNotification(lsp.ExitNotification.type);
  session.dispose();
  say("status", (await ended)[0]);
}

main().catch((error) => { console.error(error); process.exit(1); });
