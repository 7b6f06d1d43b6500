// What the page shows: the session that stands in #data, and how its values read. The three scripts are one, in one block.
// Everything from the session is written as text, never as markup.
const { facts, rows: raw } = JSON.parse(document.getElementById("data").textContent);
const all = raw.map(([kind, from, ms, name, id, end, status, note, value, answer, events, more], index) =>
  ({ index, kind, from, ms, name, id, end, status, note, value, answer, events, more }));
const $ = (id) => document.getElementById(id);
const list = $("list"), holder = $("rows"), filter = $("filter"), detail = $("detail"), canvas = $("canvas");
const lasts = (row) => row.kind === "request" ? Math.max(row.ms, row.end ?? whole) : row.ms;
const whole = facts.further ? all.reduce((last, row) => Math.max(last, row.ms, row.end ?? 0), 1e-3) : Math.max(facts.duration, 1e-3);
const WORDS = { ok: "ok", error: "error", cancelled: "cancelled", waiting: "no answer", "": "" };
const KINDS = [
  ["all", "All", () => true],
  ["requests", "Requests", (row) => row.kind === "request"],
  ["problems", "Problems", (row) => ["error", "cancelled", "waiting"].includes(row.status) || row.kind === "omitted"],
  ["notifications", "Notifications", (row) => row.kind === "notification"],
  ["server", "From the server", (row) => row.from === "server" && ["request", "notification"].includes(row.kind)],
  ["stderr", "stderr", (row) => row.kind === "stderr"],
];
const MAX_TICKS = 120, EVENTS_AT_ONCE = 100, OVERSCAN = 8;
let shown = all, chosen = -1, kind = "all", span = [0, whole], opened = null;

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
function took(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${ms.toFixed(1)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(2)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.floor(ms / 1000 % 60)} s`;
}
const unit = whole < 10000 ? "ms" : whole < 3600000 ? "s" : "h:mm:ss";
function at(ms) {
  if (unit === "ms") return ms.toFixed(1);
  if (unit === "s") return (ms / 1000).toFixed(3);
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return `${Math.floor(ms / 3600000)}:${two(ms / 60000 % 60)}:${two(ms / 1000 % 60)}`;
}
const bytes = (n) => n < 1000 ? `${n} bytes` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
const arrow = (from) => from === "client" ? "\u2192" : "\u2190";
const heading = (row) => row.name || { stderr: "stderr", omitted: "not a message", closed: "end of the stream", end: "end", answer: "answer to an unknown request", other: "message" }[row.kind] || row.kind;

// JSON, indented. It works on the text, so numbers keep their digits and a cut text is shown as far as it goes.
function* pretty(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g) || [];
  let depth = 0;
  const line = () => "\n" + "\t".repeat(Math.min(depth, 40));
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i], next = tokens[i + 1];
    if (token === "{" || token === "[") {
      if (next === "}" || next === "]") { yield ["mark", token + next]; i++; continue; }
      depth++;
      yield ["mark", token + line()];
    } else if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      yield ["mark", line() + token];
    } else if (token === ",") yield ["mark", "," + line()];
    else if (token === ":") yield ["mark", ": "];
    else yield [token[0] !== '"' ? "other" : next === ":" ? "key" : "string", token];
  }
}
function json(value) {
  const pre = make("pre");
  for (const [className, text] of pretty(value[0])) pre.append(make("span", className, text));
  if (value[2]) pre.append(make("span", "mark", "\u2026"));
  return pre;
}
function section(title, value) {
  const head = make("h3", "", title);
  head.append(make("small", "", value[2] ? `the first ${bytes(value[0].length)} of ${bytes(value[1])}` : bytes(value[1])));
  return [head, json(value)];
}
