// The operations: those of openapi.json that this caller may call, their forms, what comes back, and the events of subscriptions.
const PREFIX = "/operations/", MAX_OPENED = 20;
const VERBS = { subscription: "Start", notification: "Send" };
let api = null, apiText = "", operations = new Map();
const opened = new Map(); // what was opened stays as it was left

async function loadOperations() {
  if (!HAS_OPERATIONS) return;
  const response = await request("openapi.json"), text = await textOf(response);
  if (!response.ok) throw failureOf(text, response);
  if (text === apiText) return;
  apiText = text;
  api = parsed(text);
  operations = new Map();
  opened.clear();
  for (const [path, { post }] of Object.entries(api.paths)) {
    if (post) operations.set(path.slice(PREFIX.length), { ...post, name: path.slice(PREFIX.length), kind: post["x-kind"] });
  }
}
const deref = (value) => value?.$ref ? plain(value, api) : value;
const pathOf = (name) => name.split("/").map(encodeURIComponent).join("/");

// What a call may fail with: the schemas with a constant code.
function errorsOf(operation) {
  const found = [];
  for (const [status, reference] of Object.entries(operation.responses).filter(([each]) => each >= 400)) {
    const { description = "", content } = deref(reference), schema = deref(content?.["application/json"]?.schema) || {};
    const meanings = new Map(description.split("\n").map((line) => line.split(/: (.*)/s)));
    for (const each of (schema.oneOf || [schema]).map(deref)) {
      const { code, retryable, details } = each?.properties || {};
      if (code?.const) found.push({ status, code: code.const, meaning: meanings.get(code.const) || description, retryable: retryable?.const, details });
    }
  }
  return found;
}
const errorTable = (errors) => el("table.errors",
  el("thead", el("tr", ...["Status", "Code", "Meaning", "Retry"].map((text) => el("th", { scope: "col" }, text)))),
  el("tbody", ...errors.map(({ status, code, meaning, retryable }) => el("tr",
    el("td", status), el("th", { scope: "row" }, el("code", code)), el("td", meaning), el("td", retryable ? "yes" : "no")))));

// A schema, and every type that it refers to.
function schemaText(schema) {
  const types = {}, look = (value) => {
    if (!value || typeof value !== "object") return;
    const name = typeof value.$ref === "string" && value.$ref.split("/").pop();
    if (name && !(name in types)) look(types[name] = api.components?.schemas?.[name] ?? true);
    Object.values(value).forEach(look);
  };
  look(schema);
  return JSON.stringify(Object.keys(types).length ? { ...schema, $types: types } : schema);
}
function outputOf(operation) {
  const content = deref(operation.responses["200"])?.content || {};
  return content["text/event-stream"]?.["x-event"] ?? content["application/json"]?.schema;
}

function operationPage(operation) {
  const body = deref(operation.requestBody)?.content?.["application/json"] || {};
  const form = schemaForm(body.schema, api, body.example), live = operation.kind === "subscription";
  const result = el("section.outcome", { "aria-label": "Outcome", hidden: true });
  const send = el("button.primary", VERBS[operation.kind] || "Call"), stop = button("plain", "Stop", () => running?.abort());
  const errors = errorsOf(operation), own = errors.filter(({ code }) => !PROTOCOL_CODES.includes(code)), common = errors.filter((each) => !own.includes(each));
  let running = null;
  stop.hidden = true;
  const tell = (...nodes) => { result.replaceChildren(...nodes); result.hidden = false; result.scrollIntoView({ block: "nearest" }); };
  const open = async (text, signal, last) => {
    const response = await request(`operations/${pathOf(operation.name)}`, { method: "POST", body: text, signal, headers: last ? { "Last-Event-ID": last } : {} });
    if (!response.ok) throw failureOf(await textOf(response), response);
    return response;
  };
  const call = async (text, signal) => {
    const since = performance.now(), response = await open(text, signal), answer = await textOf(response), ms = performance.now() - since;
    tell(outcomeHead("Result", response.status, took(ms), answer && bytes(new Blob([answer]).size)), answer ? shortened(answer) : el("p", "Done. There is no result."));
    result.append(el("details", el("summary", "Headers"), el("pre.code", [...response.headers].map((each) => each.join(": ")).join("\n"))));
    if (answer.length > MAX_SHOWN) result.append(el("p.muted", `The first ${bytes(MAX_SHOWN)} are shown.`));
    announce(`Done, after ${took(ms)}`);
  };
  const listen = async (text, signal) => {
    const { list, total, draw, add } = eventList("Events"), state = el("span.state.is-working", "live");
    const end = (word) => {
      draw();
      state.className = "state";
      state.textContent = word;
      announce(`${word}, ${total.textContent}`);
    };
    let word = "ended";
    tell(el("div.outcome-head", el("h3", "Events"), state, total), list);
    try {
      await follow((last) => open(text, signal, last), ({ name, text: data, id }) => {
        if (name === "error") throw failureOf(data, IN_STREAM);
        if (name === "completed") word = "completed"; else add(data, id);
      }, signal);
      end(word);
    } catch (error) {
      end(signal.aborted ? "stopped" : "failed");
      if (signal.aborted || error instanceof NeedsToken) throw error;
      result.append(failureNode(problemOf(error)));
    }
  };
  const submit = async (event) => {
    event.preventDefault();
    const text = running ? null : form.read();
    if (text === null) return;
    running = new AbortController();
    const { signal } = running, since = performance.now();
    view.signal.addEventListener("abort", () => running?.abort(), { once: true });
    send.setAttribute("aria-disabled", "true");
    stop.hidden = false;
    announce(live ? "Live" : "Calling");
    try {
      await (live ? listen : call)(text, signal);
    } catch (error) {
      if (error instanceof NeedsToken) askToken();
      else if (signal.aborted) {
        if (!live) tell(outcomeHead("Stopped", took(performance.now() - since)));
        announce("Stopped");
      } else {
        const failure = problemOf(error), { param, expected } = failure.details || {};
        tell(failureNode(failure, performance.now() - since));
        if (param && expected) form.fail(param, `Expected ${expected}.`);
      }
    } finally {
      running = null;
      send.removeAttribute("aria-disabled");
      if (document.activeElement === stop) send.focus();
      stop.hidden = true;
    }
  };
  const schemas = el("details", el("summary", "Schemas"));
  schemas.addEventListener("toggle", () => {
    if (schemas.children.length > 1) return;
    const all = { Input: body.schema, [live ? "Each event" : "Output"]: outputOf(operation) };
    for (const { code, details } of own) all[`Details of ${code}`] = details;
    for (const [title, schema] of Object.entries(all)) if (schema !== undefined) schemas.append(el("h4", title), json(schemaText(schema)));
  });
  // The same call from a shell. The token stays out of it: what is shown may be copied anywhere.
  const curl = el("details", el("summary", "curl")), quoted = (text) => `'${text.replace(/'/g, "'\\''")}'`;
  curl.addEventListener("toggle", () => {
    while (curl.children.length > 1) curl.lastChild.remove();
    const text = curl.open ? form.read() : null;
    if (text === null) { curl.open = false; return; }
    const url = new URL(`operations/${pathOf(operation.name)}`, location.href.replace(/[#?].*/, "")).href;
    curl.append(el("pre.code", { tabindex: "0" }, [`curl ${live ? "-N " : ""}${quoted(url)}`, "-H 'Content-Type: application/json'", token && '-H "Authorization: $AUTHORIZATION"', `-d ${quoted(text)}`].filter(Boolean).join(" \\\n  ")));
  });
  const { all = [], any } = operation["x-scopes"] || {}, needs = [...all, any && `one of ${any.join(", ")}`].filter(Boolean).join(", ");
  return el("article",
    el("a.back", { href: "#/operations" }, "\u2190 Operations"), heading(operation.name, "h2.code"),
    el("p.muted.facts", dots(operation.kind, needs && `needs ${needs}`)),
    operation.description ? el("p.description", operation.description) : null,
    el("form", { novalidate: true, submit }, el("div.section-head", el("h3", "Params"), form.modes), form.node, el("div.actions", send, stop)),
    result, curl,
    own.length ? el("section", el("h3", "Errors"), errorTable(own)) : null,
    common.length ? el("details", el("summary", "Errors of every operation"), errorTable(common)) : null,
    schemas);
}

function operationList(chosen) {
  const groups = new Map();
  for (const { name, kind, description = "", tags = [] } of operations.values()) {
    const group = tags[0] || "";
    groups.set(group, [...(groups.get(group) || []), { name, hint: kind, text: description, href: `#/operations/${pathOf(name)}`, isChosen: name === chosen }]);
  }
  return filteredList("operation", groups);
}

function showOperations(name) {
  if (!operations.size) {
    return alone("Operations", el("p.muted", HAS_OPERATIONS ? "There is no operation that you may call." : "This daemon serves no operations by HTTP. It does with --http-operations."));
  }
  const operation = operations.get(name);
  if (name && !operation) return notFound("#/operations");
  if (operation && !opened.has(name)) opened.set(name, operationPage(operation));
  if (opened.size > MAX_OPENED) opened.delete(opened.keys().next().value);
  panes(operationList(name), opened.get(name) || el("p.muted.empty", "Choose an operation."), operation);
}
