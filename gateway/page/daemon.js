// The page of a daemon: its operations, its agent, its tasks, and the last requests.
const REQUESTS_SECONDS = 2;
const VIEWS = {
  operations: { title: "Operations", show: showOperations, takesId: true, hidden: !HAS_OPERATIONS },
  agent: { title: "Agent", show: showAgent },
  tasks: { title: "Tasks", show: showTasks, takesId: true },
  "all-tasks": { title: "All tasks", show: showAllTasks, takesId: true, isHidden: () => !operates },
  requests: { title: "Requests", show: showRequests },
};
const firstView = () => operations.size ? "operations" : "agent";
const about = () => ({ name: card?.name, version: card?.version, schemes: card?.securitySchemes });
async function load() {
  try {
    if (token) await request("page/requests"); // is the token accepted?
    await Promise.all([loadCard(), loadOperations(), loadOperator()]);
  } catch (error) {
    if (!card && error instanceof NeedsToken) await loadCard().catch(() => {}); // it names the schemes
    throw error;
  }
}
function leave() {}
function forget() {
  opened.clear();
  conversation = null;
  lastTasks = lastAll = {};
}

// The last requests, asked for while they are looked at.
function showRequests(signal) {
  const rows = el("tbody"), facts = el("p.muted.facts", "\u2026");
  const table = el("table.requests", { hidden: true }, el("caption.hidden", "The last requests"),
    el("thead", el("tr", ...["Time", "Method", "Outcome", "Took"].map((text) => el("th", { scope: "col" }, text)))), rows);
  alone("Last requests", facts, table);
  let shown = "";
  return polling(REQUESTS_SECONDS, signal, async () => {
    const response = await request("page/requests", { signal }), text = await textOf(response);
    if (!response.ok) throw failureOf(text, response);
    if (text === shown) return;
    shown = text;
    const { requests } = parsed(text), failed = requests.filter(({ outcome }) => outcome !== "ok").length;
    const times = requests.map(({ ms }) => ms).sort((a, b) => a - b);
    facts.textContent = requests.length ? dots(count(requests.length, "request"), `${failed} failed`, `median ${took(times[times.length >> 1])}`) : "There were none yet.";
    table.hidden = !requests.length;
    rows.replaceChildren(...requests.map(({ at, method, outcome, ms }) => el("tr", el("td.muted", when(at * 1000)),
      el("th", { scope: "row" }, el("code", method)), el(`td.${outcome === "ok" ? "muted" : "bad"}`, outcome), el("td.number", took(ms)))));
  });
}
