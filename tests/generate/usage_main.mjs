// Starts the daemon for usage.ts: node usage_main.mjs PYTHON
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { Session } from "./out/kinds_client.js";
import { lose, run } from "./out/usage.js";

const { StreamMessageReader, StreamMessageWriter } = createRequire(import.meta.url)("vscode-jsonrpc/node");
const say = (name, value) => process.stdout.write(`${name}=${JSON.stringify(value)}\n`);

function start() {
  const command = ["-P", "-m", "discreet", "serve", "./kinds_app.py:app", "./kinds_app.py:bare"];
  const daemon = spawn(process.argv[2], command, { stdio: ["pipe", "pipe", "inherit"] });
  const session = new Session(new StreamMessageReader(daemon.stdout), new StreamMessageWriter(daemon.stdin));
  return { daemon, session, ended: once(daemon, "exit") };
}

const first = start();
await run(first.session, say);
first.daemon.stdin.end();
say("status", (await first.ended)[0]);

const second = start();
await lose(second.session, () => second.daemon.kill("SIGKILL"), say);
await second.ended;
