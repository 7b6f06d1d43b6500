// What the server offers: tools, resources and prompts, each with a form that is kept as it was left, and the tasks that tools begin.
const MAX_KEPT = 50, lists = { tools: [], resources: [], templates: [], prompts: [] };
const LISTS = { tools: ["tools/list", "tools"], resources: ["resources/list", "resources"], templates: ["resources/templates/list", "resourceTemplates"], prompts: ["prompts/list", "prompts"] };
const capabilityOf = (kind) => kind === "templates" ? "resources" : kind;
async function loadList(kind) {
  try {
    lists[kind] = has(capabilityOf(kind)) ? await listAll(...LISTS[kind]) : [];
  } catch (error) {
    if (kind !== "templates" || error.code !== "-32601") throw error;
    lists[kind] = [];
  }
}
const loadLists = () => Promise.all(Object.keys(lists).map(loadList));

// Progress as it comes: a bar, what is said of it, and all that belongs to the request.
function progressNode() {
  const bar = el("progress", { "aria-label": "Progress", hidden: true }), text = el("span.muted"), events = eventList("What came before the result");
  const node = el("div.progress", { hidden: true }, bar, text, el("details", el("summary", "Messages before the result"), events.total, events.list));
  const told = ({ method, params = {} }) => {
    node.hidden = false;
    events.add(JSON.stringify(params), method.replace("notifications/", ""));
    if (method !== "notifications/progress") return;
    bar.hidden = false;
    if (params.total) { bar.max = params.total; bar.value = params.progress; }
    text.textContent = dots(params.total ? `${params.progress} of ${params.total}` : String(params.progress ?? ""), params.message);
  };
  return { node, told };
}

// The page of one thing that is offered. `perform(value, { signal, told })` gives the nodes of its outcome.
function offerPage({ back, item, title, name, facts, form, verb, perform, more = [], extra = [] }) {
  const result = el("section.outcome", { "aria-label": "Outcome", hidden: true });
  const send = el("button.primary", verb), stop = button("plain", "Stop", () => running?.abort());
  let running = null;
  stop.hidden = true;
  const tell = (...nodes) => { result.replaceChildren(...nodes); result.hidden = false; result.scrollIntoView({ block: "nearest" }); };
  const submit = async (event) => {
    event?.preventDefault();
    const text = running ? null : form.read();
    if (text === null) return;
    running = new AbortController();
    const { signal } = running, since = performance.now(), progress = progressNode();
    send.setAttribute("aria-disabled", "true");
    stop.hidden = false;
    tell(el("p.state.is-working", "waiting"), progress.node);
    announce("Calling");
    try {
      const nodes = await perform(parsed(text), { signal, told: progress.told, progress: true });
      tell(...nodes, progress.node);
    } catch (error) {
      if (error instanceof NeedsToken) return askToken();
      if (signal.aborted) {
        tell(outcomeHead("Stopped", took(performance.now() - since)), progress.node);
        announce("Stopped");
      } else {
        const failure = problemOf(error), { param, expected } = failure.details?.details || failure.details || {};
        tell(failureNode(failure, performance.now() - since), progress.node);
        if (param && expected) form.fail(String(param).replace(/^arguments\./, ""), `Expected ${expected}.`);
      }
    } finally {
      running = null;
      send.removeAttribute("aria-disabled");
      if (document.activeElement === stop) send.focus();
      stop.hidden = true;
    }
  };
  const node = el("article", el("a.back", { href: back[0] }, `\u2190 ${back[1]}`), heading(title || name, title ? "h2" : "h2.code"),
    el("p.muted.facts", title ? el("code", name) : null, ...(title && dots(facts) ? [" \u00b7 "] : []), dots(facts)),
    item.description ? el("p.description", String(item.description)) : null,
    el("form", { novalidate: true, submit }, form.modes || form.fields.length ? el("div.section-head", el("h3", "Arguments"), form.modes) : null, form.node, el("div.actions", send, stop, ...more)),
    result, ...extra, el("details", el("summary", "As the model sees it"), shortened(JSON.stringify(item))));
  return { node, form, submit, get hasRun() { return !result.hidden; } };
}

// Pages that were opened. Where what is offered has changed meanwhile, there is a new page with what was written in the old one.
const kept = new Map();
function keptPage(key, item, make) {
  const text = JSON.stringify(item), before = kept.get(key);
  if (before?.text === text) return before.page;
  const page = make(item);
  if (before) try { page.form.restore(before.page.form.draft()); } catch { /* it fits no more */ }
  kept.delete(key);
  kept.set(key, { text, page });
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value);
  return page;
}
function showOffers(noun, groups, id, page) {
  const total = [...groups.values()].flat().length;
  if (!total && !id) return alone(`${noun[0].toUpperCase()}${noun.slice(1)}s`, el("p.muted", `The server offers no ${noun}s.`));
  panes(filteredList(noun, groups), page?.node || el("p.muted.empty", `Choose a ${noun}.`), id);
}
const firstLine = (text) => String(text || "").split("\n")[0].slice(0, 80);

// -- tools
const HINTS = [["readOnlyHint", "read only", "changes things"], ["destructiveHint", "destructive", "only adds"], ["idempotentHint", "idempotent", ""], ["openWorldHint", "open world", "closed world"]];
const hintsOf = ({ annotations = {} }) => HINTS.map(([name, yes, no]) => annotations[name] === true ? yes : annotations[name] === false ? no : "").filter(Boolean);
function toolPage(tool) {
  const schema = tool.inputSchema || { type: "object" }, support = tool.execution?.taskSupport, app = uiOf(tool) ? appPreview(tool) : null;
  const ended = async (result, ms) => {
    app?.end("tool-result", result);
    const nodes = toolResult(result, ms);
    return [...nodes, await checkNode(tool, result)].filter(Boolean);
  };
  const perform = async (value, options) => {
    const since = performance.now();
    app?.begin(value);
    try {
      const result = await call("tools/call", { name: tool.name, arguments: value }, options);
      return result?.resultType === "task" ? [beginTask(result, tool.name, ended).node] : await ended(result || {}, performance.now() - since);
    } catch (error) {
      app?.end("tool-cancelled", { reason: options.signal.aborted ? "The user has stopped it." : error.message });
      throw error;
    }
  };
  const facts = [...hintsOf(tool), support && `task ${support}`, app && "app", !forModels(tool) && "for apps alone"];
  const page = offerPage({ back: ["#/tools", "Tools"], item: tool, title: tool.title || tool.annotations?.title, name: tool.name, facts,
    form: schemaForm(schema, schema, schema.examples?.[0]), verb: "Call", perform, extra: app ? [app.node] : [] });
  return Object.assign(page, { app });
}
function showTools(name) {
  const tool = lists.tools.find((each) => each.name === name);
  if (name && !tool) return notFound("#/tools");
  const page = tool && keptPage(`tools ${name}`, tool, toolPage);
  const items = lists.tools.map((each) => ({ name: each.name, hint: dots(uiOf(each) && "app", hintsOf(each)[0]), text: each.description, href: `#/tools/${encodeURIComponent(each.name)}`, isChosen: each === tool }));
  showOffers("tool", new Map([["", items]].filter(([, all]) => all.length)), name, page);
  page?.app?.renew();
}

// A form of texts, whose values the server may complete. `reference` names what they belong to.
function textsForm(names, reference) {
  const properties = Object.fromEntries(names.map(({ name, description, title }) => [name, { type: "string", description, title }]));
  const schema = { type: "object", properties, required: names.filter(({ required }) => required).map(({ name }) => name), additionalProperties: false };
  const form = schemaForm(schema, schema);
  if (!has("completions")) return form;
  for (const { name, input } of form.fields) {
    const options = el("datalist", { id: fresh("options") });
    let timer = 0;
    input.setAttribute("list", options.id);
    input.after(options);
    const complete = async () => {
      const others = Object.fromEntries(form.fields.filter((each) => each.name !== name && each.input.value).map((each) => [each.name, each.input.value]));
      const context = Object.keys(others).length ? { context: { arguments: others } } : {};
      const result = await call("completion/complete", { ref: reference, argument: { name, value: input.value }, ...context });
      options.replaceChildren(...(result.completion?.values || []).slice(0, 100).map((value) => el("option", { value: String(value) })));
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(() => complete().catch(() => {}), 200); };
    input.addEventListener("focus", soon);
    input.addEventListener("input", soon);
  }
  return form;
}

// -- resources
async function readResource(uri, options) {
  const since = performance.now(), { contents = [], _meta } = await call("resources/read", { uri }, options);
  announce(`Read, after ${took(performance.now() - since)}`);
  return [outcomeHead("Contents", count(contents.length, "part"), took(performance.now() - since)), ...contents.map(contentsNode), metaNode(_meta)].filter(Boolean);
}
const NO_FORM = { fields: [], modes: null, node: null, read: () => "{}", fail() {}, draft() {}, restore() {} };
function resourcePage(resource) {
  const { uri, name, title, mimeType, size } = resource;
  const subscribe = button("plain", "Subscribe", async () => {
    const on = !watched.includes(uri);
    subscribe.setAttribute("aria-pressed", String(on));
    subscribe.textContent = on ? "Unsubscribe" : "Subscribe";
    run(() => watch(uri, on), (error) => announce(error.message));
  });
  return offerPage({ back: ["#/resources", "Resources"], item: resource, title: title || name, name: uri, facts: [mimeType, size !== undefined && bytes(size)],
    form: NO_FORM, verb: "Read", perform: (_, options) => readResource(uri, options),
    more: era?.capabilities?.resources?.subscribe ? [subscribe] : [] });
}
// RFC 6570: simple variables, those with reserved characters, and queries.
const VARIABLE = /\{([+#./;?&]?)([^}]+)\}/g;
const variablesOf = (template) => [...template.matchAll(VARIABLE)].flatMap(([, , names]) => names.split(",").map((name) => name.replace(/[*:].*$/, "")));
function expanded(template, values) {
  return template.replace(VARIABLE, (_, operator, names) => {
    const given = names.split(",").map((name) => name.replace(/[*:].*$/, "")).filter((name) => values[name] !== undefined);
    const escape = operator === "+" || operator === "#" ? encodeURI : encodeURIComponent;
    const parts = given.map((name) => "?&;".includes(operator) && operator ? `${name}=${escape(values[name])}` : escape(values[name]));
    const [first, between] = { "?": ["?", "&"], "&": ["&", "&"], ";": [";", ";"], "#": ["#", ","], "/": ["/", "/"], ".": [".", "."] }[operator] || ["", ","];
    return parts.length ? first + parts.join(between) : "";
  });
}
function templatePage(template) {
  const { uriTemplate, name, title, mimeType } = template;
  const form = textsForm(variablesOf(uriTemplate).map((each) => ({ name: each, required: !uriTemplate.includes(`{?`) })), { type: "ref/resource", uri: uriTemplate });
  return offerPage({ back: ["#/resources", "Resources"], item: template, title: title || name, name: uriTemplate, facts: ["template", mimeType], form, verb: "Read",
    perform: (values, options) => readResource(expanded(uriTemplate, values), options) });
}
function showResources(id) {
  const resource = lists.resources.find(({ uri }) => uri === id), template = lists.templates.find(({ uriTemplate }) => uriTemplate === id);
  const item = (uri, { name, title, description, mimeType }) => ({ name: title || name || uri, hint: mimeType, text: `${uri} ${description}`, href: `#/resources/${encodeURIComponent(uri)}`, isChosen: uri === id });
  const groups = new Map([["Resources", lists.resources.map((each) => item(each.uri, each))], ["Templates", lists.templates.map((each) => item(each.uriTemplate, each))]].filter(([, all]) => all.length));
  const page = template ? keptPage(`template ${id}`, template, templatePage) : id && keptPage(`resource ${id}`, resource || { uri: id, name: id }, resourcePage);
  showOffers("resource", groups, id, page);
}

// -- prompts
function promptPage(prompt) {
  const form = textsForm(prompt.arguments || [], { type: "ref/prompt", name: prompt.name });
  const perform = async (values, options) => {
    const since = performance.now(), result = await call("prompts/get", { name: prompt.name, arguments: values }, options);
    announce(`Done, after ${took(performance.now() - since)}`);
    return [outcomeHead("Messages", took(performance.now() - since)), ...promptMessages(result)];
  };
  return offerPage({ back: ["#/prompts", "Prompts"], item: prompt, title: prompt.title, name: prompt.name, facts: [], form, verb: "Get", perform });
}
function showPrompts(name) {
  const prompt = lists.prompts.find((each) => each.name === name);
  if (name && !prompt) return notFound("#/prompts");
  const items = lists.prompts.map((each) => ({ name: each.name, hint: each.arguments?.length ? count(each.arguments.length, "argument") : "", text: each.description, href: `#/prompts/${encodeURIComponent(each.name)}`, isChosen: each === prompt }));
  showOffers("prompt", new Map([["", items]].filter(([, all]) => all.length)), name, prompt && keptPage(`prompts ${name}`, prompt, promptPage));
}

// -- tasks: those that calls of this page have begun, each asked for until it has ended
const ENDED = ["completed", "failed", "cancelled"], POLL_MS = 1000, MAX_TASKS = 50, begun = new Map();
function beginTask(task, tool, finish) {
  const id = String(task.taskId), state = el("span.state"), facts = el("p.muted.facts"), outcome = el("div"), done = new AbortController(), since = performance.now();
  const cancel = button("plain", "Cancel", () => call("tasks/cancel", { taskId: id }).catch((error) => outcome.replaceChildren(failureNode(problemOf(error)))));
  const node = el("article.task", el("div.task-head", heading(tool, "h3.code"), state, cancel), facts, outcome);
  const draw = (now) => {
    if (state.textContent !== now.status) announce(`Task ${now.status}`);
    state.className = `state is-${String(now.status).replace(/_/g, "-")}`;
    state.textContent = String(now.status);
    facts.textContent = dots(id, now.statusMessage);
    cancel.hidden = ENDED.includes(now.status);
  };
  const follow = async () => {
    let now = task;
    for (draw(now); !ENDED.includes(now.status); draw(now)) {
      await pause(Math.min(10000, Math.max(100, now.pollIntervalMs ?? POLL_MS)), done.signal);
      now = await call("tasks/get", { taskId: id }, { signal: done.signal });
      if (now.status === "input_required") await call("tasks/update", { taskId: id, inputResponses: await answersTo(now.inputRequests, done.signal) }, { signal: done.signal });
    }
    if (now.result) outcome.replaceChildren(...await finish(now.result, performance.now() - since));
    if (now.error) outcome.replaceChildren(failureNode(failureFrom(now.error)));
  };
  follow().catch((error) => outcome.replaceChildren(failureNode(problemOf(error))));
  begun.set(id, { node, done });
  if (begun.size > MAX_TASKS) {
    const [oldest] = begun.keys();
    begun.get(oldest).done.abort();
    begun.delete(oldest);
  }
  return { node };
}
function showMcpTasks() {
  const nodes = [...begun.values()].map(({ node }) => node).reverse();
  alone("Tasks", el("p.muted", nodes.length ? "Those that tools have begun since the page was opened." : "None was begun since the page was opened. A tool that can run as a task begins one when it is called."), ...nodes);
}
