// An agent on the official SDK for TypeScript: it reads a file of the client, asks for permission, and says what came of it.
const { Readable, Writable } = require("node:stream");

async function main() {
  const acp = await import(require.resolve("@agentclientprotocol/sdk"));
  const running = new Map();
  acp
    .agent({ name: "reader" })
    .onRequest("initialize", () => ({ protocolVersion: 1, agentCapabilities: { loadSession: false } }))
    .onRequest("session/new", () => ({ sessionId: "one" }))
    .onNotification("session/cancel", ({ params }) => running.get(params.sessionId)?.())
    .onRequest("session/prompt", async ({ params, client }) => {
      const { sessionId, prompt } = params;
      const update = (text) =>
        client.notify("session/update", {
          sessionId,
          update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
        });
      if (prompt[0].text === "wait") {
        await update("waiting");
        await new Promise((resolve) => running.set(sessionId, resolve));
        await update("cancelled");
        return { stopReason: "cancelled" };
      }
      const { content } = await client.request("fs/read_text_file", { sessionId, path: prompt[0].text });
      const { outcome } = await client.request("session/request_permission", {
        sessionId,
        toolCall: { toolCallId: "1", title: "Tell it" },
        options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }],
      });
      await update(`${content} ${outcome.optionId}`);
      return { stopReason: "end_turn" };
    })
    .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}

main();
