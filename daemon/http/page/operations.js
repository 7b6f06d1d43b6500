// The operations: those of openapi.json that this caller may call, their forms, what comes back, and the events of subscriptions.
const PREFIX = "/operations/", MAX_SHOWN = 100000, MAX_EVENTS = 200;
const VERBS = { subscription: "Start", notification: "Send" };
let api = null, operations = new Map();
const pages = new Map(); // what was opened stays as it was left

async function loadOperations() {
  if (!HAS_OPERATIONS) return;
  const response = await request("openapi.json"), text = await textOf(response);
  if (!response.ok) throw failureOf(text, response);
  api = parsed(text);
  operations = new Map();
  pages.clear();
  for (const [path, { post }] of Object.entries(api?.paths || {})) {
    if (post && path.startsWith(PREFIX)) operations.set(path.slice(PREFIX.length), { ...post, name: path.slice(PREFIX.length), kind: post["x-kind"] });
  }
}
const deref = (value) => value?.$ref ? plain(value, api) : value;
const pathOf = (name) => name.split("/").map(encodeURIComponent).join("/");

// What a response may be: the errors by their codes, from the schemas with a constant code.
function errorsOf(operation) {
  const found = [];
  for (const [status, reference] of Object.entries(operation.responses || {})) {
    if (status < 400) continue;
    const response = deref(reference), schema = deref(response?.content?.["application/json"]?.schema) || {};
    const meanings = new Map((response?.description || "").split("\n").map((line) => line.split(/: (.*)/s)).filter((each) => each[1]));
    for (const each of (schema.oneOf || [schema]).map(deref)) {
      const { code, retryable, details } = each?.properties || {};
      if (code?.const) found.push({ status, code: code.const, meaning: meanings.get(code.const) || response.description, retryable: retryable?.const, details });
    }
  }
  return found;
}
function errorTable(errors) {
  const head = el("tr", ...["Status", "Code", "Meaning", "Retry"].map((text) => el("th", { scope: "col" }, text)));
  return el("table.errors", el("thead", head), el("tbody", ...errors.map((error) => el("tr",
    el("td", error.status), el("th", { scope: "row" }, el("code", error.code)), el("td", error.meaning),
    el("td", error.retryable ? "yes" : "no")))));
}
// A schema, and every type that it refers to.
function schemaText(schema) {
  const types = {}, look = (value) => {
    if (!value || typeof value !== "object") return;
    const name = typeof value.$ref === "string" && value.$ref.startsWith("#/components/schemas/") && value.$ref.slice(21);
    if (name && !(name in types)) look(types[name] = api.components?.schemas?.[name] ?? true);
    Object.values(value).forEach(look);
  };
  look(schema);
  return JSON.stringify(Object.keys(types).length ? { ...schema, $types: types } : schema);
}
function outputOf(operation) {
  const content = deref(operation.responses?.["200"])?.content || {};
  return content["text/event-stream"]?.["x-event"] ?? content["application/json"]?.schema;
}

// What is shown of an answer and of a failure.
const shortened = (text) => json(text.slice(0, MAX_SHOWN), text.length > MAX_SHOWN);
function outcomeHead(title, ...facts) {
  return el("div.outcome-head", el("h3", title), el("span.muted", facts.filter(Boolean).join(" \u00b7 ")));
}
function failureNode(error, ms) {
  const wait = error.retryAfter && `after ${error.retryAfter} s`;
  const facts = [error.status && `HTTP ${error.status}`, error.retryable && ["may be tried again", wait].filter(Boolean).join(" "), took(ms)];
  return el("div.failure", outcomeHead(error.code, ...facts), el("p", error.message),
    error.details === undefined ? null : shortened(JSON.stringify(error.details)));
}
function problemOf(error) {
  if (error instanceof Failed) return error;
  console.error(error);
  return new Failed("PAGE", "This page failed. Its console says more.");
}

// Events as they come: the last of them, with the time since the start.
function eventList(label) {
  const list = el("ol.events", { tabindex: "0", "aria-label": label });
  const total = el("span.muted"), waiting = [];
  let all = 0, since = performance.now(), planned = 0;
  const draw = () => {
    planned = 0;
    const below = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    for (const [ms, name, text] of waiting.splice(0)) {
      list.append(el("li", el("span.muted.at", `+${took(ms)}`), name ? el("b", name) : null, el("code", text.slice(0, 2000))));
    }
    while (list.children.length > MAX_EVENTS) list.firstChild.remove();
    total.textContent = count(all, "event") + (all > MAX_EVENTS ? `, the last ${MAX_EVENTS} are shown` : "");
    if (below) list.scrollTop = list.scrollHeight;
  };
  return {
    list, total, draw,
    add(text, name) {
      all++;
      waiting.push([performance.now() - since, name, text]);
      if (waiting.length > MAX_EVENTS) waiting.shift();
      planned = planned || requestAnimationFrame(draw);
    },
    get count() { return all; },
    get ms() { return performance.now() - since; },
  };
}

function operationPage(operation) {
  const body = deref(operation.requestBody)?.content?.["application/json"] || {};
  const form = schemaForm(body.schema, api, body.example), live = operation.kind === "subscription";
  const result = el("section.outcome", { "aria-label": "Outcome", hidden: true });
  const send = el("button.primary", VERBS[operation.kind] || "Call");
  const stop = el("button.plain", { type: "button", hidden: true }, "Stop");
  const errors = errorsOf(operation), own = errors.filter(({ code }) => !PROTOCOL_CODES.includes(code)), common = errors.filter((each) => !own.includes(each));
  let running = null;
  const show = (...nodes) => { result.replaceChildren(...nodes); result.hidden = false; };
  const failed = (error, ms) => {
    show(failureNode(error, ms));
    announce(`${error.code}. ${error.message}`);
    if (error.details?.param && error.details.expected) form.fail(error.details.param, `Expected ${error.details.expected}, not ${error.details.received}.`);
  };
  const open = async (text, signal, last) => {
    const response = await request(`operations/${pathOf(operation.name)}`, { method: "POST", body: text, signal, headers: last ? { "Last-Event-ID": last } : {} });
    if (!response.ok) throw failureOf(await textOf(response), response);
    return response;
  };
  const call = async (text, signal) => {
    const since = performance.now(), response = await open(text, signal), answer = await textOf(response), ms = performance.now() - since;
    const facts = [response.status, took(ms), answer && bytes(new Blob([answer]).size)];
    show(outcomeHead("Result", ...facts), answer ? shortened(answer) : el("p", "Done. There is no result."));
    if (answer.length > MAX_SHOWN) result.append(el("p.muted", `The first ${bytes(MAX_SHOWN)} are shown.`));
    announce(`Done, after ${took(ms)}`);
  };
  const listen = async (text, signal) => {
    const events = eventList("Events"), state = el("span.state.is-working", "live");
    show(el("div.outcome-head", el("h3", "Events"), state, events.total), events.list);
    events.draw();
    const ended = (word) => {
      events.draw();
      state.className = "state";
      state.textContent = word;
      announce(`${word}, after ${count(events.count, "event")}`);
    };
    let word = "ended";
    try {
      await follow((last) => open(text, signal, last), (event) => {
        if (event.name === "error") throw failureOf(event.text, { status: 0, headers: new Headers() });
        if (event.name === "completed") word = "completed";
        else events.add(event.text, event.id);
      }, signal);
      ended(word);
    } catch (error) {
      ended(signal.aborted ? "stopped" : "failed");
      if (signal.aborted || error instanceof NeedsToken) throw error;
      const failure = problemOf(error);
      result.append(failureNode(failure, events.ms));
      announce(`${failure.code}. ${failure.message}`);
    }
  };
  const submit = async (event) => {
    event.preventDefault();
    const text = form.read();
    if (text === null || running) return;
    running = new AbortController();
    const { signal } = running, since = performance.now();
    viewSignal().addEventListener("abort", () => running?.abort(), { once: true });
    send.setAttribute("aria-disabled", "true");
    stop.hidden = false;
    announce(live ? "Live" : "Calling");
    try {
      await (live ? listen(text, signal) : call(text, signal));
    } catch (error) {
      if (error instanceof NeedsToken) return askToken();
      if (signal.aborted) { if (!live) { show(outcomeHead("Stopped", took(performance.now() - since))); announce("Stopped"); } }
      else failed(problemOf(error), performance.now() - since);
    } finally {
      running = null;
      send.removeAttribute("aria-disabled");
      if (document.activeElement === stop) send.focus();
      stop.hidden = true;
    }
  };
  stop.addEventListener("click", () => running?.abort());
  const schemas = el("details", el("summary", "Schemas"));
  schemas.addEventListener("toggle", () => {
    if (!schemas.open || schemas.children.length > 1) return;
    const add = (title, schema) => schema !== undefined && schemas.append(el("h4", title), json(schemaText(schema)));
    add("Input", body.schema);
    add(live ? "Each event" : "Output", outputOf(operation));
    for (const error of own) add(`Details of ${error.code}`, error.details);
  });
  const scopes = operation["x-scopes"] || {};
  const needs = [...(scopes.all || []), scopes.any ? `one of ${scopes.any.join(", ")}` : ""].filter(Boolean).join(", ");
  return el("article",
    el("a.back", { href: "#/operations" }, "\u2190 Operations"),
    el("h2.code", { tabindex: "-1" }, operation.name),
    el("p.muted.facts", [operation.kind, needs && `needs ${needs}`].filter(Boolean).join(" \u00b7 ")),
    operation.description ? el("p.description", operation.description) : null,
    el("form", { novalidate: true, submit },
      el("div.section-head", el("h3", "Params"), form.modes), form.node,
      el("div.actions", send, stop)),
    result,
    own.length ? el("section", el("h3", "Errors"), errorTable(own)) : null,
    common.length ? el("details", el("summary", "Errors of every operation"), errorTable(common)) : null,
    schemas);
}

function operationList(chosen) {
  const groups = new Map();
  for (const operation of operations.values()) {
    const group = operation.tags?.[0] || "";
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(operation);
  }
  const filter = el("input", { type: "search", id: "filter", placeholder: "Filter", autocomplete: "off", spellcheck: "false", "aria-label": "Filter operations", "aria-keyshortcuts": "/", value: filterText });
  const none = el("p.muted.empty", { hidden: true }, "Nothing matches."), sections = [];
  for (const [group, members] of groups) {
    const list = el("ul", ...members.map((operation) => el("li", { "data-text": `${operation.name} ${operation.kind} ${operation.description || ""}`.toLowerCase() },
      el("a", { href: `#/operations/${pathOf(operation.name)}`, "aria-current": operation.name === chosen ? "page" : undefined },
        el("code", operation.name), el("span.muted", operation.kind)))));
    sections.push(el("section", group && groups.size > 1 ? el("h3", group) : null, list));
  }
  const apply = () => {
    filterText = filter.value;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const section of sections) {
      const items = [...section.querySelectorAll("li")];
      for (const item of items) item.hidden = !words.every((word) => item.dataset.text.includes(word));
      section.hidden = items.every((item) => item.hidden);
      shown += items.filter((item) => !item.hidden).length;
    }
    none.hidden = shown > 0;
    return shown;
  };
  filter.addEventListener("input", () => announce(count(apply(), "operation")));
  filter.addEventListener("keydown", (event) => {
    const first = sections.flatMap((section) => [...section.querySelectorAll("li:not([hidden]) a")])[0];
    if (!first || !["Enter", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Enter") first.click(); else first.focus();
  });
  apply();
  return el("nav.list", { "aria-label": "Operations" }, el("div.list-head", filter, el("kbd", { "aria-hidden": "true" }, "/")), ...sections, none);
}
let filterText = "";

function showOperations(path) {
  if (!operations.size) {
    const text = api ? "There is no operation that you may call." : "This daemon serves no operations by HTTP. It does with --http-operations.";
    return show(el("section.alone", el("h2", { tabindex: "-1" }, "Operations"), el("p.muted", text)));
  }
  const operation = operations.get(path);
  if (path && !operation) return show(notFound("operation", "#/operations"));
  if (operation && !pages.has(path)) pages.set(path, operationPage(operation));
  const empty = el("p.muted.empty", "Choose an operation.");
  show(panes(operationList(path), operation ? pages.get(path) : empty, Boolean(operation)));
}
