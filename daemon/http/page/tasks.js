// Tasks: one as it changes, with its artifacts, messages and events; and the list of them.
const STATES = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((name) => `TASK_STATE_${name}`);
const ACTIVE = new Set(STATES.slice(0, 2)), WAITING = new Set(STATES.slice(2, 4));
const MAX_TEXT = 200000, MAX_BLOCKS = 200;
const wordOf = (state) => state ? state.replace("TASK_STATE_", "").toLowerCase().replace(/_/g, " ") : "unknown";
const classOf = (state) => `state is-${wordOf(state).replace(/ /g, "-")}`;
function when(iso) {
  const time = new Date(iso);
  if (!iso || Number.isNaN(time.getTime())) return "";
  const two = (n) => String(n).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

// Parts as blocks: texts that follow each other are one. Of long ones the end is kept.
function addParts(blocks, parts) {
  for (const part of parts || []) {
    const last = blocks[blocks.length - 1];
    if (typeof part.text === "string" && last && typeof last.text === "string") last.text += part.text;
    else blocks.push({ ...part });
    const now = blocks[blocks.length - 1];
    if (typeof now.text === "string" && now.text.length > MAX_TEXT) Object.assign(now, { text: now.text.slice(-MAX_TEXT), cut: true });
    if (blocks.length > MAX_BLOCKS) blocks.shift();
  }
  return blocks;
}
function blockNode(block) {
  if (typeof block.text === "string") return el("p.text", (block.cut ? "\u2026" : "") + block.text);
  if ("data" in block) return shortened(JSON.stringify(block.data));
  const kind = [block.filename, block.mediaType].filter(Boolean).join(", ");
  if (block.url) return el("p", link(block.url), kind ? ` (${kind})` : "");
  return el("p.muted", `${kind || "a file"}, ${bytes(Math.floor((block.raw || "").length * 3 / 4))}`);
}
// An address as a link where a browser may follow it: nothing but the web's own schemes.
function link(url) {
  let known = false;
  try { known = ["http:", "https:"].includes(new URL(url).protocol); } catch { /* no address */ }
  return known ? el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, url) : el("span", url);
}
function messageNode(message) {
  const agent = message.role === "ROLE_AGENT";
  return el("li", { className: agent ? "by-agent" : "by-user" }, el("h4", agent ? "Agent" : "User"), ...addParts([], message.parts).map(blockNode));
}

// One task. `take` takes what a stream or a call tells; `reply(text)` is called with the answer to a question.
function taskView(heading, reply) {
  let task = null, planned = 0, lone = null;
  const artifacts = new Map(), changed = new Set(), events = eventList("Events");
  const state = el("span.state"), id = el("code"), facts = el("p.muted.facts");
  const cancel = button("plain", "Cancel", () => run(cancelTask)), problem = el("div"), answer = el("textarea", { rows: 2, id: fresh("reply") });
  const question = el("form.reply", { hidden: true, submit: (event) => {
    event.preventDefault();
    if (answer.value) { const text = answer.value; answer.value = ""; reply(text); }
  } }, el("label", { for: answer.id }, "Your answer"), answer, el("div.actions", el("button.primary", "Answer")));
  const results = el("div.artifacts"), history = el("ol.messages");
  const resultsPart = el("section", { hidden: true }, el("h3", "Artifacts"), results);
  const historyPart = el("section", { hidden: true }, el("h3", "Messages"), history);
  const log = el("details", el("summary", "Events"), events.total, events.list);
  const whole = el("details", el("summary", "Task as JSON"));
  whole.addEventListener("toggle", () => {
    while (whole.children.length > 1) whole.lastChild.remove();
    if (whole.open && task) whole.append(shortened(JSON.stringify({ ...task, artifacts: [...artifacts.values()].map((each) => ({ ...each.about, parts: each.blocks })) })));
  });
  const head = el("div.task-head", el(heading, { tabindex: "-1" }, "Task"), id, state, cancel);
  const node = el("article.task", { hidden: true }, head, facts, problem, resultsPart, historyPart, question, log, whole);

  async function cancelTask() {
    try {
      take({ task: await rpc("CancelTask", { id: task.id }) });
    } catch (error) {
      if (error instanceof NeedsToken) throw error;
      fail(problemOf(error));
    }
  }
  function fail(error) {
    problem.replaceChildren(failureNode(error));
    node.hidden = false;
    announce(`${error.code}. ${error.message}`);
  }
  function drawArtifact(key) {
    const each = artifacts.get(key), { name, description } = each.about;
    const title = el("div.outcome-head", el("h4", name || "Artifact"), el("span.muted", description || ""));
    const drawn = el("article", name || description || artifacts.size > 1 ? title : null, ...each.blocks.map(blockNode));
    if (each.node) each.node.replaceWith(drawn); else results.append(drawn);
    each.node = drawn;
  }
  function draw() {
    planned = 0;
    node.hidden = false;
    for (const key of changed) drawArtifact(key);
    changed.clear();
    resultsPart.hidden = !artifacts.size;
    head.hidden = log.hidden = whole.hidden = facts.hidden = !task;
    const messages = lone ? [lone] : [...(task.history || []), ...(task.status.message ? [task.status.message] : [])];
    history.replaceChildren(...messages.map(messageNode));
    historyPart.hidden = !messages.length;
    if (!task) return;
    const now = task.status?.state;
    id.textContent = task.id;
    state.className = classOf(now);
    if (state.textContent !== wordOf(now)) announce(`Task ${wordOf(now)}`);
    state.textContent = wordOf(now);
    if (document.activeElement === cancel && !(ACTIVE.has(now) || WAITING.has(now))) head.firstChild.focus();
    cancel.hidden = !(ACTIVE.has(now) || WAITING.has(now));
    question.hidden = !WAITING.has(now);
    facts.textContent = [`context ${task.contextId}`, when(task.status?.timestamp)].filter(Boolean).join(" \u00b7 ");
  }
  function setArtifact({ artifactId, parts, ...about }, append) {
    const known = artifacts.get(artifactId);
    artifacts.set(artifactId, { about: append && known ? known.about : { artifactId, ...about }, blocks: addParts(append && known ? known.blocks : [], parts), node: known?.node });
    changed.add(artifactId);
  }
  // An item of a stream, or the answer to a send: exactly one member is set (A2A 1.0, section 3.2.3).
  function take({ task: found, message, statusUpdate, artifactUpdate }) {
    if (found) {
      const { artifacts: all, ...rest } = found;
      task = rest;
      artifacts.clear();
      results.replaceChildren();
      for (const each of all || []) setArtifact(each, false);
    } else if (statusUpdate && task) {
      const before = task.status?.message;
      task = { ...task, status: statusUpdate.status, history: before ? [...(task.history || []), before] : task.history };
    } else if (artifactUpdate) setArtifact(artifactUpdate.artifact, artifactUpdate.append);
    else if (message) lone = message;
    problem.replaceChildren();
    planned = planned || requestAnimationFrame(draw);
  }
  function takeEvent({ text, id: number }) {
    const { result, error } = parsed(text);
    if (error) throw rpcFailure(error, { status: 0, headers: new Headers() });
    events.add(text.length > 2000 ? text.slice(0, 2000) : JSON.stringify(result), number);
    take(result);
  }
  // Asks for the task's events behind this one. Nothing where the task does not change any more.
  async function subscribe(last, signal) {
    try {
      return await rpc("SubscribeToTask", { id: task.id }, { last, signal });
    } catch (error) {
      if (!(error instanceof Failed) || error.retryable) throw error;
      take({ task: await rpc("GetTask", { id: task.id }, { signal }) });
      return ACTIVE.has(task.status.state) && last !== undefined ? rpc("SubscribeToTask", { id: task.id }, { signal }) : null;
    }
  }
  // Follows the task until it stands still. `send(signal)`, where it is given, sends a message and returns what it is answered with.
  async function watch(signal, send) {
    const open = async (last) => {
      const begin = send;
      send = null;
      const answer = await (begin ? begin(signal) : streams() ? subscribe(last, signal) : rpc("GetTask", { id: task.id }, { signal }).then((found) => ({ task: found })));
      if (!answer || answer instanceof Response) return answer;
      take(answer);
      return null;
    };
    try {
      do {
        await follow(open, takeEvent, signal, () => Boolean(task));
        if (task && ACTIVE.has(task.status.state)) await pause(1000, signal);
      } while (task && ACTIVE.has(task.status.state));
    } catch (error) {
      if (signal.aborted || error instanceof NeedsToken) throw error;
      fail(problemOf(error));
    }
  }
  return { node, take, watch, fail, get task() { return task; } };
}

const messageOf = (parts, more) => ({ messageId: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, role: "ROLE_USER", parts, ...more });
// Sends a message: the events of its task as they come where the agent streams, else the task as it is now.
function sendMessage(message, signal) {
  if (streams()) return rpc("SendStreamingMessage", { message }, { signal });
  return rpc("SendMessage", { message, configuration: { returnImmediately: true } }, { signal });
}
function answering(view) {
  return (text) => {
    const { id: taskId, contextId } = view().task;
    run((signal) => view().watch(signal, () => sendMessage(messageOf([{ text }], { taskId, contextId }), signal)));
  };
}

const TASKS_ON_A_PAGE = 25, LIST_SECONDS = 3;
function taskRow(task, chosen, query) {
  const last = task.status?.message || task.history?.[task.history.length - 1], text = last?.parts?.find((part) => part.text)?.text || "";
  return el("li", el("a", { href: `#/tasks/${encodeURIComponent(task.id)}${query}`, "aria-current": task.id === chosen ? "page" : undefined },
    el("span.row-text", text.slice(0, 120) || task.id), el("span", { className: classOf(task.status?.state) }, wordOf(task.status?.state)),
    el("span.muted", when(task.status?.timestamp))));
}
function showTasks(id, params, signal) {
  const status = params.get("state") || "", pageToken = params.get("page") || "", query = params.size ? `?${params}` : "";
  const choice = el("select", { "aria-label": "State" }, el("option", { value: "" }, "All states"), ...STATES.map((each) => el("option", { value: each }, wordOf(each))));
  choice.value = status;
  choice.addEventListener("change", () => { location.hash = `#/tasks${choice.value ? `?state=${choice.value}` : ""}`; });
  const rows = el("ul"), none = el("p.muted.empty", { hidden: true }, "There are no tasks."), total = el("span.muted");
  const pager = el("div.pager");
  let shown = "";
  const list = el("nav.list.tasks", { "aria-label": "Tasks" }, el("div.list-head", choice, total), rows, none, pager);
  const load = async () => {
    const found = await rpc("ListTasks", { pageSize: TASKS_ON_A_PAGE, historyLength: 1, ...(status ? { status } : {}), ...(pageToken ? { pageToken } : {}) }, { signal });
    const text = JSON.stringify(found);
    if (text === shown) return;
    shown = text;
    const focused = list.contains(document.activeElement) && document.activeElement.getAttribute("href");
    rows.replaceChildren(...found.tasks.map((task) => taskRow(task, id, query)));
    none.hidden = found.tasks.length > 0;
    total.textContent = count(found.totalSize, "task");
    const to = (text, token) => {
      const next = new URLSearchParams({ ...(status ? { state: status } : {}), ...(token ? { page: token } : {}) });
      return el("a", { href: `#/tasks${next.size ? `?${next}` : ""}` }, text);
    };
    pager.replaceChildren(...[pageToken ? to("Newest", "") : null, found.nextPageToken ? to("Older", found.nextPageToken) : null].filter(Boolean));
    if (focused) [...list.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
  };
  let detail = el("p.muted.empty", "Choose a task.");
  if (id) {
    const view = taskView("h2", answering(() => view));
    detail = el("div", el("a.back", { href: `#/tasks${query}` }, "\u2190 Tasks"), view.node);
    run(async () => {
      view.take({ task: await rpc("GetTask", { id }, { signal }) });
      if (ACTIVE.has(view.task.status.state)) await view.watch(signal);
    }, view.fail);
  }
  show(panes(list, detail, Boolean(id)), id ? "" : "Tasks");
  return polling(LIST_SECONDS, signal, load);
}
