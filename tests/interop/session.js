// A session of VS Code's JSON-RPC library with the daemon.
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const rpc = require("vscode-jsonrpc/node");

const complaints = [];
const logger = { error: (text) => complaints.push(text), warn: (text) => complaints.push(text), info() {}, log() {} };

const daemon = spawn("discreet", ["serve", "./session_app.py:app"], { stdio: ["pipe", "pipe", "inherit"] });
const session = rpc.createMessageConnection(
  new rpc.StreamMessageReader(daemon.stdout), new rpc.StreamMessageWriter(daemon.stdin), logger);
const ended = once(daemon, "exit");
session.listen();

const say = (name, value) => process.stdout.write(`${name}=${value}\n`);
const failure = (method, params) => session.sendRequest(method, params).then(() => "no error", (error) => error);

async function main() {
  const { serverInfo } = await session.sendRequest("initialize", { processId: process.pid, capabilities: {} });
  await session.sendNotification("initialized", {});
  say("initialize", serverInfo.name);
  say("add", await session.sendRequest("session/add", { a: 2, b: 40 }));
  say("text", (await session.sendRequest("session/echo", { text: "é→🙂" })) === "é→🙂" ? "same" : "other");
  const large = "x".repeat(1_000_000) + "→";
  say("large", (await session.sendRequest("session/echo", { text: large })) === large ? "same" : "other");

  say("unknown", (await failure("no/such")).code);
  const { code, data } = await failure("session/add", { a: "é→🙂", b: 1 });
  say("params", `${code} ${data.param}`);

  try {
    await session.sendRequest("session/refuse", { why: "it rains" });
  } catch (error) {
    say("refuse", `${error.data.code} ${error.data.details.why}`);
  }

  const steps = [];
  session.onProgress(new rpc.ProgressType(), "steps", (step) => steps.push(step));
  await session.sendRequest("session/count", { to: 3, workDoneToken: "steps" });
  say("progress", steps.join(" "));

  const patience = new rpc.CancellationTokenSource();
  const waiting = session.sendRequest("session/wait", patience.token);
  patience.cancel();
  await waiting.catch((error) => say("cancel", error.code));

  const told = once(daemon.stdout, "data");
  daemon.stdin.write("this is no frame\r\n\r\n");
  await told;
  const sum = await session.sendRequest("session/add", { a: 2, b: 40 });
  say("garbage", `(${complaints.map((text) => text.match(/"code": (-\d+)/)[1])}) ${sum}`);

  say("shutdown", (await session.sendRequest("shutdown")).message);
  try {
    await session.sendNotification("exit");
  } catch {} // it may have ended by now
  session.dispose();
  const [status] = await ended;
  say("status", status);
}

main();
