// What the page shows: the session that stands in #data, and how its values read. The scripts are one, in one block.
const { facts, rows: raw } = JSON.parse(document.getElementById("data").textContent);
const all = raw.map(([kind, from, ms, name, id, end, status, note, value, answer, events, more], index) =>
  ({ index, kind, from, ms, name, id, end, status, note, value, answer, events, more }));
const list = $("list"), filter = $("filter"), canvas = $("canvas");
const lasts = (row) => row.kind === "request" ? Math.max(row.ms, row.end ?? whole) : row.ms;
const whole = facts.further ? all.reduce((last, row) => Math.max(last, row.ms, row.end ?? 0), 1e-3) : Math.max(facts.duration, 1e-3);
const KINDS = [
  ["all", "All", () => true],
  ["requests", "Requests", (row) => row.kind === "request"],
  ["problems", "Problems", (row) => ["error", "cancelled", "waiting"].includes(row.status) || row.kind === "omitted"],
  ["notifications", "Notifications", (row) => row.kind === "notification"],
  ["server", "From the server", (row) => row.from === "server" && ["request", "notification"].includes(row.kind)],
  ["stderr", "stderr", (row) => row.kind === "stderr"],
];
const MAX_TICKS = 120, MAX_METHODS = 200;
let kind = "all", span = [0, whole];

const unit = whole < 10000 ? "ms" : whole < 3600000 ? "s" : "h:mm:ss";
function at(ms) {
  if (unit === "ms") return ms.toFixed(1);
  if (unit === "s") return (ms / 1000).toFixed(3);
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return `${Math.floor(ms / 3600000)}:${two(ms / 60000 % 60)}:${two(ms / 1000 % 60)}`;
}

// The requests of each side for each method, the most frequent first, and how long their answers took, sorted.
function latencies() {
  const methods = new Map();
  for (const row of all) {
    if (row.kind !== "request") continue;
    const key = `${row.from} ${row.name}`;
    if (!methods.has(key)) methods.set(key, { from: row.from, name: row.name, requests: 0, errors: 0, times: [] });
    const method = methods.get(key);
    method.requests++;
    if (row.status === "error") method.errors++;
    if (row.end !== null) method.times.push(Math.max(0, row.end - row.ms));
  }
  for (const method of methods.values()) method.times.sort((a, b) => a - b);
  return [...methods.values()].sort((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1)).slice(0, MAX_METHODS);
}
// The smallest time that so many percent do not exceed (nearest rank).
const rank = (times, percent) => times.length ? times[Math.max(0, Math.ceil(times.length * percent / 100) - 1)] : null;
