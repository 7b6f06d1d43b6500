// A server made with vscode-jsonrpc, for test_client_peers.py.
const fs = require("node:fs");
const rpc = require("vscode-jsonrpc/node");

const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(process.stdin), new rpc.StreamMessageWriter(process.stdout));
let cancelled = 0;
let ready = false;

function on(method, handler) {
  connection.onRequest(method, (params, token) => {
    if (!ready) throw new rpc.ResponseError(-32002, "server not initialized");
    return handler(params, token);
  });
}

connection.onRequest("initialize", () => ({ capabilities: {}, serverInfo: { name: "peer" } }));
connection.onNotification("initialized", () => { ready = true; });
on("echo", (params) => params);
on("refuse", () => { throw new rpc.ResponseError(-32050, "it rains", { since: "noon" }); });
on("ask", async (params) => {
  await connection.sendNotification("client/told", { text: "psst" });
  return { answer: (await connection.sendRequest("client/answer", params)).text };
});
on("wait", (_, token) => new Promise((resolve, reject) => {
  token.onCancellationRequested(() => {
    cancelled += 1;
    reject(new rpc.ResponseError(-32800, "cancelled"));
  });
}));
on("cancelled", () => ({ count: cancelled }));
on("chatter", ({ lines }) => new Promise((resolve) => process.stderr.write("chatter\n".repeat(lines), () => resolve({}))));
on("junk", () => { fs.writeSync(1, "Traceback (most recent call last):\r\n\r\n"); return {}; });
on("die", () => process.exit(7));
connection.onClose(() => process.exit(0));
connection.listen();
