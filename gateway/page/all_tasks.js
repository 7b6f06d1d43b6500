// The tasks of all callers, for operators: a list by state, age, caller and operation, and one task as a timeline.
const WORDS = STATES.map((state) => wordOf(state).replace(/ /g, "-"));
const AGES = [["", "Any age"], ["60", "Older than a minute"], ["600", "Older than 10 minutes"], ["3600", "Older than an hour"], ["86400", "Older than a day"]];
let operates = false;
async function loadOperator() {
  const response = await request("page/operator"), text = await textOf(response);
  operates = response.ok && parsed(text).operates;
}
async function ask(path, params, more) {
  const response = await request(`page/${path}?${new URLSearchParams(params)}`, more), text = await textOf(response);
  if (!response.ok) throw failureOf(text, response);
  return parsed(text);
}
const ageOf = (since) => {
  const seconds = Math.max(0, (Date.now() - new Date(since)) / 1000);
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"]].find(([least]) => seconds >= least) || [1, "s"];
  return Number.isNaN(seconds) ? "" : `${Math.floor(seconds / size)} ${unit}`;
};
const ownerOf = ({ owner }) => owner === "queue" ? "in the queue" : owner && `owner ${owner}`;

// One task: what it is, and what has happened to it. It is asked for again while it goes on.
function timelineView(id, query, signal) {
  const title = heading("Task", "h2"), name = el("code", id), facts = el("p.muted.facts"), log = el("p.muted.facts"), problem = el("div");
  const rows = el("ol.timeline"), missing = el("p.muted");
  const act = (what) => () => run(async () => {
    problem.replaceChildren();
    const done = await ask(`task/${what}`, { id }, { method: "POST", signal });
    if (done.id !== id) location.hash = `#/all-tasks/${encodeURIComponent(done.id)}${query}`; else await load();
  }, (error) => problem.replaceChildren(failureNode(error)));
  const cancel = button("plain", "Cancel", act("cancel")), retry = button("plain", "Try again", act("retry"));
  let state = el("span"), shown = "";
  cancel.hidden = retry.hidden = true;
  const entry = ({ number, time, what, who, text }) => el("li", el("span.muted.at", String(number)), el("div", el("div.outcome-head", el("b", what), el("span.muted", dots(who, when(time)))),
    text ? el("p.text", text) : null));
  const load = async () => {
    const found = await ask("task", { id }, { signal }), text = JSON.stringify(found);
    if (text === shown) return;
    shown = text;
    const { task, events } = found, now = stateNode(task.state);
    if (state.textContent && state.textContent !== now.textContent) announce(`Task ${now.textContent}`);
    state.replaceWith(now);
    state = now;
    const place = WORDS.indexOf(task.state), focused = document.activeElement;
    cancel.hidden = place > 3;
    retry.hidden = place < 5;
    if (focused && focused.hidden) title.focus();
    facts.textContent = dots(`caller ${task.caller || "none"}`, task.operation, ownerOf(task), `context ${task.context}`, when(task.since));
    log.textContent = `Log lines: ${found.log}`;
    missing.textContent = found.missing ? `${count(found.missing, "event")} before these are not shown.` : "";
    rows.replaceChildren(...events.map(entry));
  };
  const head = el("div.task-head", title, name, state, el("div.actions", cancel, retry));
  run(() => polling(LIST_SECONDS, signal, load), (error) => problem.replaceChildren(failureNode(error)));
  return el("div", el("a.back", { href: `#/all-tasks${query}` }, "\u2190 All tasks"), el("article.task", head, problem, facts, log, missing, el("section", el("h3", "Timeline"), rows)));
}

let lastAll = {}; // what the list of this query had last
function showAllTasks(id, params, signal) {
  const query = params.size ? `?${params}` : "", given = Object.fromEntries(params);
  const go = (name, value) => {
    const { page, ...next } = given;
    if (value) next[name] = value; else delete next[name];
    const text = new URLSearchParams(next).toString();
    location.hash = `#/all-tasks${text && `?${text}`}`;
  };
  const choice = (name, label, pairs) => {
    const made = el("select", { "aria-label": label, change: () => go(name, made.value) }, ...options(pairs));
    made.value = given[name] || "";
    return made;
  };
  const words = (name, label) => {
    const made = el("input", { type: "search", "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false", value: given[name] || "" });
    made.addEventListener("change", () => go(name, made.value));
    return made;
  };
  const filters = el("div.list-head.filters", choice("state", "State", [["", "All states"], ...WORDS.map((word) => [word, wordOf(word)])]),
    choice("older", "Age", AGES), words("caller", "Caller"), words("operation", "Operation"));
  const row = (task) => el("li", el("a", { href: `#/all-tasks/${encodeURIComponent(task.id)}${query}`, "aria-current": task.id === id && "page" },
    el("span.row-text", dots(task.operation || task.id.slice(0, 8), task.caller && `of ${task.caller}`)), stateNode(task.state),
    el("span.muted", dots(ageOf(task.since), task.owner === "queue" && "in the queue"))));
  const { list, draw: drawPage } = taskList("All tasks", filters, row), next = (page) => `#/all-tasks?${new URLSearchParams({ ...given, page })}`;
  const draw = (found) => {
    lastAll = { query, found };
    const words = count(found.total, "task") + (given.older || given.operation ? ", of which the filters leave these" : "");
    drawPage(found.tasks, found.tasks.length ? words : "No task here.", { Newest: given.page && next(""), Older: found.next && next(found.next) });
  };
  if (lastAll.query === query) draw(lastAll.found);
  panes(list, id ? timelineView(id, query, signal) : el("p.muted.empty", "Choose a task."), id);
  return polling(LIST_SECONDS, signal, async () => draw(await ask("tasks", given, { signal })));
}
