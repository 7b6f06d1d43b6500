// The page as a whole: which view the address names, who calls, and what is said to those who do not see it.
const main = $("main"), said = $("status");
let view = new AbortController(), loaded = false, first = true, words = 0;
const viewSignal = () => view.signal;

// Say something to screen readers. What was said last goes, so that the same is said twice.
function announce(text) {
  clearTimeout(words);
  said.textContent = "";
  words = setTimeout(() => { said.textContent = text; }, 50);
}
function show(node) {
  if (main.firstChild !== node) main.replaceChildren(node);
}
// A list beside what is chosen of it. On a phone one of both is there.
function panes(list, detail, chosen) {
  return el("div", { className: `panes${chosen ? " is-chosen" : ""}` }, list, el("div.detail", detail));
}
function notFound(what, href) {
  return el("section.alone", el("h2", { tabindex: "-1" }, "Not here"),
    el("p", `There is no such ${what}, or you may not see it. `, el("a", { href }, "Back")));
}
// Runs what may fail, while the view is there.
async function run(work, failed) {
  const { signal } = view;
  try {
    await work(signal);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof NeedsToken) return askToken();
    (failed || showFailure)(problemOf(error));
  }
}
function showFailure(error) {
  show(el("section.alone", el("h2", { tabindex: "-1" }, "That failed"), failureNode(error),
    el("div.actions", button("primary", "Try again", begin))));
  announce(`${error.code}. ${error.message}`);
}
// Ends what runs for this view, and runs something else for it.
function restart(work) {
  view.abort();
  view = new AbortController();
  return run(work);
}
async function polling(seconds, signal, work) {
  for (;;) {
    if (!document.hidden) await work();
    await pause(seconds * 1000, signal);
  }
}

// The last requests, asked for while they are looked at.
const REQUESTS_SECONDS = 2;
function showRequests(signal) {
  const rows = el("tbody"), facts = el("p.muted.facts", "\u2026");
  const table = el("table.requests", el("caption.hidden", "The last requests"),
    el("thead", el("tr", ...["Time", "Method", "Outcome", "Took"].map((text) => el("th", { scope: "col" }, text)))), rows);
  const none = el("p.muted", { hidden: true }, "There were no requests yet.");
  show(el("section.alone.wide", el("h2", { tabindex: "-1" }, "Last requests"), facts, table, none));
  let shown = "";
  return polling(REQUESTS_SECONDS, signal, async () => {
    const response = await request("page/requests", { signal }), text = await textOf(response);
    if (!response.ok) throw failureOf(text, response);
    if (text === shown) return;
    shown = text;
    const { requests } = parsed(text), failed = requests.filter(({ outcome }) => outcome !== "ok").length;
    const times = requests.map(({ ms }) => ms).sort((a, b) => a - b);
    facts.textContent = [count(requests.length, "request"), `${failed} failed`, times.length && `median ${took(times[times.length >> 1])}`].filter(Boolean).join(" \u00b7 ");
    table.hidden = !requests.length;
    none.hidden = requests.length > 0;
    rows.replaceChildren(...requests.map(({ at, method, outcome, ms }) => el("tr",
      el("td.muted", when(at * 1000)), el("th", { scope: "row" }, el("code", method)),
      el("td", { className: outcome === "ok" ? "muted" : "bad" }, outcome), el("td.number", took(ms)))));
  });
}

// Who calls. The token stays in this tab, and goes with each request to the daemon and nowhere else.
const schemes = () => {
  const kinds = Object.values(card?.securitySchemes || {});
  return [...(kinds.some((kind) => kind.apiKeySecurityScheme) ? ["ApiKey"] : []), ...(kinds.some((kind) => !kind.apiKeySecurityScheme) || !kinds.length ? ["Bearer"] : [])].reverse();
};
function askToken() {
  view.abort();
  view = new AbortController();
  const refused = token !== null, id = fresh("token"), all = schemes();
  keep(null);
  const input = el("input", { type: "password", id, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-problem`, "aria-invalid": refused ? "true" : undefined });
  const problem = el("p.problem", { id: `${id}-problem`, hidden: !refused }, refused ? "This was not accepted." : "Write a token.");
  const scheme = el("select", { id: `${id}-scheme` }, ...all.map((value) => el("option", { value }, value === "ApiKey" ? "API key" : "Bearer token")));
  const submit = (event) => {
    event.preventDefault();
    if (!input.value) { problem.hidden = false; return input.focus(); }
    keep(`${scheme.value} ${input.value}`);
    begin();
  };
  show(el("section.alone", el("h2", { tabindex: "-1" }, "Who are you?"),
    el("p.muted", "This daemon answers callers that it knows. What you write here stays in this tab until you sign out or close it."),
    el("form", { novalidate: true, submit },
      all.length > 1 ? el("div.field", el("label", { for: scheme.id }, "Kind"), scheme) : null,
      el("div.field", el("label", { for: id }, all[0] === "ApiKey" && all.length === 1 ? "API key" : "Token"), input, problem),
      el("div.actions", el("button.primary", "Sign in")))));
  showIdentity();
  input.focus();
  announce(refused ? "The token was not accepted." : "A token is needed.");
}
function showIdentity() {
  $("identity").hidden = !token && !Object.keys(card?.securitySchemes || {}).length;
  $("identity").textContent = token ? "Sign out" : "Sign in";
}

// From the address to a view: #/operations/NAME, #/agent, #/tasks/ID?state=..., #/requests.
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?"), [name, ...rest] = path.split("/");
  let id = rest.join("/");
  try { id = rest.map(decodeURIComponent).join("/"); } catch { /* as it stands there */ }
  const params = new URLSearchParams(query);
  const before = document.activeElement?.closest?.("a")?.getAttribute("href"), left = lastHash;
  lastHash = location.hash;
  for (const each of $("views").children) {
    const here = each.getAttribute("href") === `#/${name}`;
    if (here) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  }
  document.title = [id, VIEWS[name], card.name].filter(Boolean).join(" \u2013 ");
  const views = { operations: () => showOperations(id), agent: showAgent, tasks: (signal) => showTasks(id, params, signal), requests: showRequests };
  const known = Object.hasOwn(views, name) && (name === "operations" || name === "tasks" || !id);
  restart(known ? views[name] : () => show(notFound("view", "#/agent")));
  if (!first) focusView(left);
  first = false;
}
let lastHash = "";
const VIEWS = { operations: "Operations", agent: "Agent", tasks: "Tasks", requests: "Requests" };
// After a change of the view the focus is where it begins; after a way back, where it was.
function focusView(left) {
  const link = main.querySelector(`.panes:not(.is-chosen) .list a[href="${CSS.escape(left)}"]`);
  const heading = link || main.querySelector(".detail h2, .detail h3") || main.querySelector(".detail .task") || main.querySelector("h2[tabindex]") || main;
  heading.focus();
  if (!link) scrollTo(0, 0);
}

// Asks for what all views need, then shows one.
async function begin() {
  try {
    if (!card) await loadCard().catch((error) => { if (!(error instanceof NeedsToken)) throw error; });
    await Promise.all([loadCard(), loadOperations()]);
  } catch (error) {
    if (error instanceof NeedsToken) return askToken();
    return showFailure(problemOf(error));
  }
  conversation = null;
  $("name").textContent = card.name;
  $("version").textContent = card.version || "";
  $("views").hidden = false;
  showIdentity();
  loaded = true;
  if (!location.hash) history.replaceState(null, "", operations.size ? "#/operations" : "#/agent");
  route();
}
$("identity").addEventListener("click", () => { const out = token !== null; keep(null); if (out) begin(); else askToken(); });
$("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => loaded && route());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const filter = $("filter");
  if (!filter?.offsetParent) return;
  event.preventDefault();
  filter.focus();
  filter.select();
});
begin();
