// Tasks: one as it changes, with its artifacts, messages and events; and the list of them.
const STATES = ["SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((name) => `TASK_STATE_${name}`);
const MAX_TEXT = 200000, MAX_BLOCKS = 200, TASKS_ON_A_PAGE = 25, LIST_SECONDS = 3, REQUEST_WITHIN = 10; // last messages, among which the first is looked for
const isActive = (task) => STATES.slice(0, 2).includes(task?.status.state), isWaiting = (task) => STATES.slice(2, 4).includes(task?.status.state);
const wordOf = (state) => state.replace("TASK_STATE_", "").toLowerCase().replace(/[_-]/g, " ");
const stateNode = (state) => el(`span.state.is-${wordOf(state).replace(/ /g, "-")}`, wordOf(state));
// Parts as blocks: texts that follow each other are one. Of long ones the end is kept.
function addParts(blocks, parts = []) {
  for (const part of parts) {
    const last = blocks.at(-1);
    if (last?.text !== undefined && part.text !== undefined) last.text += part.text; else blocks.push({ ...part });
    const now = blocks.at(-1);
    if (now.text?.length > MAX_TEXT) now.text = `\u2026${now.text.slice(-MAX_TEXT)}`;
    if (blocks.length > MAX_BLOCKS) blocks.shift();
  }
  return blocks;
}
function blockNode({ text, data, url, raw = "", filename, mediaType }) {
  if (text !== undefined) return el("p.text", String(text));
  if (data !== undefined) return shortened(JSON.stringify(data));
  return el("p", url ? link(url) : null, el("span.muted", ` ${dots(filename, mediaType, !url && bytes(Math.floor(raw.length * 3 / 4)))}`));
}
const messageNode = ({ role, parts }) => el("li", el("h4", role === "ROLE_AGENT" ? "Agent" : "User"), ...addParts([], parts).map(blockNode));

// One task. `take` takes what a stream or a call tells; `watch` follows it. `drawn(task)` is called with what is shown of it.
function taskView(kind, drawn = () => {}) {
  let task = null, planned = 0, lone = null, state = el("span");
  const artifacts = new Map(), changed = new Set(), events = eventList("Events"), title = heading("Task", kind);
  const id = el("code"), facts = el("p.muted.facts"), problem = el("div"), answer = el("textarea", { rows: 2, id: fresh("reply") });
  const cancel = button("plain", "Cancel", () => run(async () => take({ task: await rpc("CancelTask", { id: task.id }) }), fail));
  const submit = (event) => {
    event.preventDefault();
    const parts = [{ text: answer.value }], { id: taskId, contextId } = task;
    if (!answer.value) return answer.focus();
    run((signal) => watch(signal, () => sendMessage(parts, { taskId, contextId }, signal)));
  };
  const question = el("form.reply", { submit }, el("label", { for: answer.id }, "Your answer"), answer, el("div.actions", el("button.primary", "Answer")));
  const results = el("div.artifacts"), history = el("ol.messages");
  const resultsPart = el("section", el("h3", "Artifacts"), results), historyPart = el("section", el("h3", "Messages"), history);
  const log = el("details", el("summary", "Events"), events.total, events.list), whole = el("details", el("summary", "Task as JSON"));
  // The events of a task that has ended, or whose events came before this was opened: once, from the first on.
  let told = 0;
  log.addEventListener("toggle", () => {
    if (!log.open || events.list.children.length || isActive(task) || told++ || !streams()) return;
    const ended = !isWaiting(task), done = new AbortController();
    view.signal.addEventListener("abort", () => done.abort(), { once: true });
    const last = async () => {
      const response = await rpc("SubscribeToTask", { id: task.id }, { last: "0", signal: done.signal });
      if (response instanceof Response) for await (const event of eventsOf(response)) {
        const { result } = parsed(event.text);
        if (result) events.add(JSON.stringify(result), event.id);
        if (!ended && result?.statusUpdate && isWaiting({ status: result.statusUpdate.status })) return done.abort();
      }
    };
    last().catch((error) => {
      if (error.code === "EVENTS_LOST") log.append(el("p.muted", "The log does not hold the events of this task any more."));
      else if (!done.signal.aborted) fail(problemOf(error));
    });
  });
  whole.addEventListener("toggle", () => {
    while (whole.children.length > 1) whole.lastChild.remove();
    if (whole.open) whole.append(shortened(JSON.stringify({ ...task, artifacts: [...artifacts.values()].map(({ about, blocks }) => ({ ...about, parts: blocks })) })));
  });
  const head = el("div.task-head", title, id, state, cancel);
  const node = el("article.task", problem, head, facts, resultsPart, historyPart, question, log, whole);
  draw();

  function fail(error) {
    problem.replaceChildren(failureNode(error));
  }
  function drawArtifact(key) {
    const each = artifacts.get(key), { name, description } = each.about;
    const drawn = el("article", name || description ? el("div.outcome-head", el("h4", name), el("span.muted", description)) : null, ...each.blocks.map(blockNode));
    if (each.node) each.node.replaceWith(drawn); else results.append(drawn);
    each.node = drawn;
  }
  function draw() {
    planned = 0;
    changed.forEach(drawArtifact);
    changed.clear();
    head.hidden = whole.hidden = facts.hidden = !task;
    log.hidden = !task;
    resultsPart.hidden = !artifacts.size;
    const messages = [...(task?.history || []), task?.status.message, lone].filter(Boolean), over = !isActive(task) && !isWaiting(task);
    history.replaceChildren(...messages.map(messageNode));
    historyPart.hidden = !messages.length;
    if (over && document.activeElement === cancel) title.focus();
    cancel.hidden = over;
    question.hidden = !isWaiting(task);
    if (!task) return;
    const now = stateNode(task.status.state);
    if (state.textContent !== now.textContent) announce(`Task ${now.textContent}`);
    state.replaceWith(now);
    state = now;
    id.textContent = task.id;
    drawn(task);
    facts.textContent = dots(`context ${task.contextId}`, when(task.status.timestamp));
  }
  function setArtifact({ artifactId, parts, ...about }, append) {
    const known = artifacts.get(artifactId), old = append && known;
    artifacts.set(artifactId, { about: old ? known.about : { artifactId, ...about }, blocks: addParts(old ? known.blocks : [], parts), node: known?.node });
    changed.add(artifactId);
    const [oldest] = artifacts.keys();
    if (artifacts.size <= MAX_BLOCKS) return;
    artifacts.get(oldest).node?.remove();
    artifacts.delete(oldest);
    changed.delete(oldest);
  }
  // An item of a stream, or the answer to a send: exactly one member is set (A2A 1.0, section 3.2.3).
  function take({ task: found, message, statusUpdate, artifactUpdate }) {
    if (found) {
      const { artifacts: all = [], ...rest } = found;
      task = rest;
      artifacts.clear();
      results.replaceChildren();
      for (const each of all) setArtifact(each);
    } else if (statusUpdate && task) {
      const { status, history: before = [] } = task;
      task = { ...task, status: statusUpdate.status, history: [...before, ...[status.message].filter(Boolean)].slice(-MAX_BLOCKS) };
      answer.value = "";
    } else if (artifactUpdate) setArtifact(artifactUpdate.artifact, artifactUpdate.append);
    else lone = message || lone;
    problem.replaceChildren();
    planned = planned || requestAnimationFrame(draw);
  }
  function takeEvent({ text, id: number }) {
    const { result, error } = parsed(text);
    if (error) throw rpcFailure(error, IN_STREAM);
    events.add(JSON.stringify(result), number);
    take(result);
  }
  const get = async (signal) => ({ task: await rpc("GetTask", { id: task.id }, { signal }) });
  // The task's events behind this one. Where they are lost, or the task has ended: the task as it is.
  async function subscribe(last, signal) {
    try {
      return await rpc("SubscribeToTask", { id: task.id }, { last, signal });
    } catch (error) {
      if (!(error instanceof Failed) || error.transient) throw error;
      return get(signal);
    }
  }
  // Follows the task until it stands still. `send`, where it is given, sends a message first.
  async function watch(signal, send) {
    let sent = null;
    const open = async (last) => {
      const answered = sent || await (streams() ? subscribe(last, signal) : get(signal));
      sent = null;
      if (answered instanceof Response) return answered;
      take(answered);
    };
    try {
      sent = send && await send(); // once: whether a message came that was not answered is not known
      for (;;) {
        await follow(open, takeEvent, signal, () => task);
        if (!isActive(task)) return;
        await pause(1000, signal);
      }
    } catch (error) {
      if (signal.aborted || error instanceof NeedsToken) throw error;
      fail(problemOf(error));
    }
  }
  return { node, take, watch, fail, get task() { return task; } };
}

// Sends a message: the events of its task as they come where the agent streams, else the task as it is now.
function sendMessage(parts, more, signal) {
  const messageId = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const message = { messageId, role: "ROLE_USER", parts, ...more };
  return streams() ? rpc("SendStreamingMessage", { message }, { signal }) : rpc("SendMessage", { message, configuration: { returnImmediately: true } }, { signal });
}

function taskRow({ id, status, history = [] }, chosen, query) {
  const words = (message) => message?.parts.find((part) => part.text)?.text;
  const text = words(history.find(({ role }) => role !== "ROLE_AGENT")) || words(status.message || history.at(-1)) || id;
  return el("li", el("a", { href: `#/tasks/${encodeURIComponent(id)}${query}`, "aria-current": id === chosen && "page" },
    el("span.row-text", text.slice(0, 120)), stateNode(status.state), el("span.muted", when(status.timestamp))));
}
// A list of tasks below its filters: `draw(tasks, words, links)` shows a page of it. What had the focus keeps it.
function taskList(label, head, row) {
  const rows = el("ul"), total = el("span.muted.total"), pager = el("div.pager"), list = el("nav.list.tasks", { "aria-label": label }, head, rows, pager);
  head.append(total);
  let shown = "";
  const draw = (tasks, words, links) => {
    const text = JSON.stringify([tasks, words, Object.values(links), Math.floor(Date.now() / 60000)]); // ages, too
    if (text === shown) return;
    shown = text;
    const focused = list.contains(document.activeElement) && document.activeElement.getAttribute("href");
    rows.replaceChildren(...tasks.map(row));
    total.textContent = words;
    pager.replaceChildren(...Object.entries(links).filter(([, href]) => href).map(([name, href]) => el("a", { href }, name)));
    if (focused) [...list.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
  };
  return { list, draw };
}
const options = (pairs) => pairs.map(([value, text]) => el("option", { value }, text));
let lastTasks = {}; // what the list of this query had last
function showTasks(id, params, signal) {
  const status = params.get("state") || undefined, pageToken = params.get("page") || undefined, query = params.size ? `?${params}` : "";
  const choice = el("select", { "aria-label": "State", change: () => { location.hash = `#/tasks${choice.value && `?state=${choice.value}`}`; } },
    ...options([["", "All states"], ...STATES.map((each) => [each, wordOf(each)])]));
  choice.value = status || "";
  const { list, draw: drawPage } = taskList("Tasks", el("div.list-head", choice), (task) => taskRow(task, id, query));
  const pageLink = (page) => {
    const next = new URLSearchParams({ ...(status && { state: status }), ...(page && { page }) });
    return `#/tasks${next.size ? `?${next}` : ""}`;
  };
  const draw = (found) => {
    lastTasks = { query, found };
    drawPage(found.tasks, count(found.totalSize, "task"), { Newest: pageToken && pageLink(""), Older: found.nextPageToken && pageLink(found.nextPageToken) });
  };
  if (lastTasks.query === query) draw(lastTasks.found);
  let detail = el("p.muted.empty", "Choose a task.");
  if (id) {
    const one = taskView("h2");
    detail = el("div", el("a.back", { href: `#/tasks${query}` }, "\u2190 Tasks"), one.node);
    run(async () => {
      one.take({ task: await rpc("GetTask", { id }, { signal }) });
      if (isActive(one.task)) await one.watch(signal);
    }, one.fail);
  }
  panes(list, detail, id);
  return polling(LIST_SECONDS, signal, async () => draw(await rpc("ListTasks", { pageSize: TASKS_ON_A_PAGE, historyLength: REQUEST_WITHIN, status, pageToken }, { signal })));
}
