// Apps of MCP: the page of a tool in a frame that reaches nothing, and the host's side of what it says by postMessage (MCP Apps 2026-01-26).
const APPS_REVISION = "2026-01-26", MAX_APP_HEIGHT = 800, MAX_HTML = 5e6, MAX_MESSAGE = 2e6, MAX_SAID = 20, MAX_AT_ONCE = 16, TEARDOWN_MS = 300;
const MAX_MESSAGES = 500, WITHIN_MS = 10000; // an app that says more is ended
const uiOf = ({ _meta }) => _meta?.ui?.resourceUri ?? _meta?.["ui/resourceUri"]; // the second is deprecated
const forApps = ({ _meta }) => !_meta?.ui?.visibility || _meta.ui.visibility.includes("app");
const forModels = ({ _meta }) => !_meta?.ui?.visibility || _meta.ui.visibility.includes("model");
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const refusal = (code, message) => new Failed(String(code), message);
const openTab = (url) => window.open(url, "_blank", "noopener,noreferrer");

// The one app that is there. Another view ends it.
let shownApp = null;
addEventListener("message", ({ source, data }) => { if (source && source === shownApp?.window) shownApp.take(data); });
darkScheme.addEventListener("change", () => shownApp?.dress());
document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => effectiveDirective === "frame-src" && shownApp?.leave());

// The HTML of an app, its policy, and what its resource says of it.
async function readApp(uri, signal) {
  const { contents = [] } = await call("resources/read", { uri }, { signal }), [{ mimeType, text, blob, _meta } = {}] = contents;
  if (!uri.startsWith("ui://")) throw refusal("NO_APP", `The page of an app is a resource of ui://, not ${uri}.`);
  if (mimeType !== APP_TYPE) throw refusal("NO_APP", `The page of an app has the type ${APP_TYPE}, not ${mimeType ?? "none"}.`);
  const html = text ?? new TextDecoder().decode(Uint8Array.from(atob(String(blob ?? "")), (it) => it.charCodeAt(0)));
  if (html.length > MAX_HTML) throw refusal("TOO_LARGE", `The page has ${bytes(html.length)}. At most ${bytes(MAX_HTML)} are shown.`);
  const ui = _meta?.ui ?? lists.resources.find((each) => each.uri === uri)?._meta?.ui ?? {}, query = new URLSearchParams();
  for (const [member, origins] of Object.entries(ui.csp ?? {})) for (const origin of [origins].flat()) query.append(member, String(origin));
  const address = `page/app?${query}`, response = await request(address, { signal });
  if (!response.ok) throw failureOf(await textOf(response), response);
  return { html, ui, address, policy: response.headers.get("Content-Security-Policy") };
}

// The preview of a tool's app. `begin(input)` starts it anew; `end(method, params)` tells it how the call ended.
function appPreview(tool) {
  const uri = String(uiOf(tool)), said = el("ol.messages"), place = el("div"), context = el("details", { hidden: true }, el("summary", "Context that the app gives the model"));
  const policy = el("details", { hidden: true }, el("summary", "Policy (CSP)")), problem = el("p.problem", { role: "status" });
  const theme = el("select", { "aria-label": "Theme of the app", change: () => dress() }, ...["", "light", "dark"].map((each) => el("option", { value: each }, each || "system theme")));
  const again = button("plain", "Reload", () => start());
  const node = el("section.preview", { "aria-label": "Preview of the app", hidden: true }, el("div.section-head", el("h3", "App"), el("span.muted", uri), theme, again), problem, place, said, context, policy);
  let frame = null, state = null, input = null, outcome = null, resource = null, starts = 0;

  // -- its life
  async function start() {
    const mine = ++starts, { signal } = view;
    node.hidden = false;
    await tearDown("It is started anew.");
    if (mine !== starts) return;
    try {
      const found = await readApp(uri, signal);
      if (mine === starts) open(found);
    } catch (error) {
      if (error instanceof NeedsToken) return askToken();
      if (mine === starts && !signal.aborted) stop(problemOf(error).message);
    }
  }
  function open(found) {
    resource = found;
    problem.textContent = "";
    said.replaceChildren();
    context.hidden = true;
    policy.replaceChildren(policy.firstChild, el("p.text", resource.policy.replaceAll("; ", ";\n")));
    policy.hidden = false;
    frame = el(`iframe${resource.ui.prefersBorder === false ? "" : ".bordered"}`, { title: `App of ${tool.name}`, sandbox: "allow-scripts allow-forms", referrerpolicy: "no-referrer", src: resource.address });
    frame.style.colorScheme = themeNow();
    place.replaceChildren(frame);
    state = { window: frame.contentWindow, ready: false, initialized: false, asks: "", modes: [], told: 0, count: 0, since: 0, ids: 0, waiting: new Map(), running: new Map() };
    shownApp = preview;
  }
  function close() {
    for (const each of state?.running.values() ?? []) each.abort();
    place.replaceChildren();
    frame = state = null;
  }
  function stop(why) {
    starts++;
    close();
    problem.textContent = why;
    announce(why);
  }
  async function tearDown(reason) {
    if (isAlive() && state.initialized) {
      const id = `host-${++state.ids}`, answered = new Promise((done) => state.waiting.set(id, done));
      send({ id, method: "ui/resource-teardown", params: { reason } });
      await Promise.race([answered, pause(TEARDOWN_MS, new AbortController().signal)]);
    }
    close();
  }
  // A frame that was taken out of the document and is there again is another one.
  const isAlive = () => Boolean(state && frame.isConnected && frame.contentWindow === state.window);

  // -- what goes over the wire
  function send(message) {
    const whole = { jsonrpc: "2.0", ...message };
    record("host", whole);
    state.window.postMessage(JSON.parse(JSON.stringify(whole)), "*"); // its origin is opaque, and the policy of this page lets it go nowhere else
  }
  function take(data) {
    const now = performance.now();
    if (now - state.since > WITHIN_MS) Object.assign(state, { since: now, count: 0 });
    if (++state.count > MAX_MESSAGES) return stop(`The app was ended: it sent more than ${MAX_MESSAGES} messages within ${WITHIN_MS / 1000} s.`);
    let message;
    try {
      const text = JSON.stringify(data);
      if (text.length > MAX_MESSAGE) return stop(`The app was ended: it sent a message of more than ${bytes(MAX_MESSAGE)}.`);
      message = JSON.parse(text);
    } catch { return; /* no JSON: not for the host */ }
    if (message?.jsonrpc !== "2.0") return;
    if (message.method === "ui/notifications/sandbox-proxy-ready") return load();
    record("app", message);
    if (message.method === undefined) return state.waiting.get(message.id)?.(message);
    if (message.id === undefined) return Object.hasOwn(NOTICES, message.method) && NOTICES[message.method](message.params ?? {});
    answerApp(message);
  }
  function load() {
    if (state.ready) return preview.leave();
    state.ready = true;
    state.window.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: { html: resource.html } }, "*");
  }
  async function answerApp({ id, method, params = {} }) {
    const mine = state, held = new AbortController(), key = JSON.stringify(id);
    let reply;
    try {
      if (!Object.hasOwn(REQUESTS, method)) throw refusal(-32601, "Method not found");
      if (mine.running.has(key) || mine.running.size >= MAX_AT_ONCE) throw refusal(-32600, `An id is used twice, or more than ${MAX_AT_ONCE} requests wait`);
      mine.running.set(key, held);
      try { reply = { result: await REQUESTS[method](params, held.signal) }; } finally { mine.running.delete(key); }
    } catch (error) {
      if (held.signal.aborted) return;
      const { code, status, message, details } = error instanceof Failed ? error : problemOf(error);
      reply = { error: { code: Number(code) || Number(status) || -32000, message, ...(details === undefined ? {} : { data: details }) } };
    }
    if (mine === state && isAlive()) send({ id, ...reply });
  }

  // -- what it asks for, and what it tells
  const modeNow = () => document.fullscreenElement === node ? "fullscreen" : "inline";
  const size = () => ({ width: frame.clientWidth, ...(modeNow() === "inline" ? { maxHeight: MAX_APP_HEIGHT } : { height: frame.clientHeight }) });
  node.addEventListener("fullscreenchange", () => isAlive() && state.initialized && send({ method: "ui/notifications/host-context-changed", params: { displayMode: modeNow(), containerDimensions: size() } }));
  const themeNow = () => theme.value || (darkScheme.matches ? "dark" : "light");
  function dress() {
    if (!isAlive()) return;
    frame.style.colorScheme = themeNow();
    if (state.initialized) send({ method: "ui/notifications/host-context-changed", params: { theme: themeNow() } });
  }
  function flush() {
    if (!state?.initialized || !input) return;
    if (state.told === 0 && ++state.told) send({ method: "ui/notifications/tool-input", params: { arguments: input } });
    if (state.told === 1 && outcome && ++state.told) send(outcome);
  }
  const REQUESTS = {
    ping: () => ({}),
    "ui/initialize": ({ appInfo, appCapabilities, protocolVersion }) => {
      if (typeof appInfo?.name !== "string" || typeof appInfo.version !== "string" || typeof appCapabilities !== "object" || typeof protocolVersion !== "string") {
        throw refusal(-32602, "appInfo with name and version, appCapabilities and protocolVersion are needed");
      }
      state.modes = [appCapabilities?.availableDisplayModes ?? []].flat();
      const { csp = {} } = resource.ui, modalities = { text: {}, image: {}, audio: {}, resource: {}, resourceLink: {} };
      return {
        protocolVersion: APPS_REVISION, hostInfo: CLIENT,
        hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: modalities, updateModelContext: { ...modalities, structuredContent: {} }, sandbox: { csp, permissions: {} } },
        hostContext: { toolInfo: { tool }, theme: themeNow(), displayMode: modeNow(), availableDisplayModes: ["inline", "fullscreen"], containerDimensions: size(),
          locale: navigator.language, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, userAgent: CLIENT.name, platform: "web" },
      };
    },
    "tools/call": async ({ name, arguments: given = {}, _meta }, signal) => {
      const found = lists.tools.find((each) => each.name === name), token = _meta?.progressToken;
      if (!found) throw refusal(-32602, `The server lists no tool ${name}`);
      if (!forApps(found)) throw refusal(-32000, `${name} is not for apps: its visibility has no "app"`);
      const told = ({ method, params }) => { if (token !== undefined && method === "notifications/progress" && isAlive()) send({ method, params: { ...params, progressToken: token } }); };
      return call("tools/call", { name, arguments: given }, { signal, told, progress: token !== undefined, tasks: false });
    },
    "resources/read": ({ uri }, signal) => call("resources/read", { uri: String(uri) }, { signal }),
    "ui/open-link": ({ url }, signal) => {
      if (!/^https?:\/\//i.test(url)) throw refusal(-32602, "url must begin with https:// or http://");
      if (state.asks) throw refusal(-32000, state.asks);
      const mine = state, refuse = () => refusal(-32000, mine.asks = "Link opening denied by user"); // it asks no more
      mine.asks = "One question at a time";
      if (document.fullscreenElement) document.exitFullscreen(); // the question is outside of it
      const accept = () => { mine.asks = ""; openTab(url); return {}; };
      return ask("The app asks to open a page", [el("p.text", url)], [["Open", accept], ["Refuse", refuse]], signal);
    },
    "ui/message": ({ role, content }) => {
      const blocks = [content].flat();
      if (role !== "user" || !blocks.length || !blocks.every((each) => typeof each?.type === "string")) throw refusal(-32602, 'role "user" and content are needed');
      said.append(el("li", el("h4", "The app says, as the user"), ...blocks.slice(0, MAX_SAID).map(contentNode)));
      while (said.children.length > MAX_SAID) said.firstChild.remove();
      announce("The app has sent a message to the model.");
      return {};
    },
    "ui/update-model-context": ({ content = [], structuredContent }) => {
      context.replaceChildren(context.firstChild, ...[content].flat().slice(0, MAX_SAID).map(contentNode), ...(structuredContent === undefined ? [] : [shortened(JSON.stringify(structuredContent))]));
      context.hidden = false;
      return {};
    },
    "ui/request-display-mode": async ({ mode }) => {
      if (mode === "fullscreen" && state.modes.includes(mode)) await node.requestFullscreen().catch(() => {}); // the browser wants the user's click
      if (mode === "inline" && modeNow() !== mode) await document.exitFullscreen().catch(() => {});
      return { mode: modeNow() };
    },
  };
  const NOTICES = {
    "ui/notifications/initialized": () => { state.initialized = true; flush(); },
    "ui/notifications/size-changed": ({ height }) => { if (Number.isFinite(height)) frame.style.height = `${Math.min(MAX_APP_HEIGHT, Math.max(24, Math.ceil(height)))}px`; },
    "ui/notifications/request-teardown": () => tearDown("The app asked for it.").then(() => stop("The app has ended itself.")),
    "notifications/message": ({ level, logger, data }) => addLine(dots(level, `app of ${tool.name}`, logger, typeof data === "string" ? data : JSON.stringify(data)), levelKind(level)),
    "notifications/cancelled": ({ requestId }) => state.running.get(JSON.stringify(requestId))?.abort(),
  };
  const preview = {
    node, take, dress,
    leave: () => stop("The app was ended: it went to another page. Links are for ui/open-link."),
    get window() { return isAlive() ? state.window : null; },
    begin(given) { input = given; outcome = null; return start(); },
    end(method, params) { outcome = { method: `ui/notifications/${method}`, params }; flush(); },
    // The view is shown again, or the resource may have changed.
    async renew() {
      if (!input) return;
      if (!isAlive()) return start();
      const found = await readApp(uri, view.signal).catch(() => null);
      if (found && isAlive() && (found.html !== resource.html || found.address !== resource.address)) start();
    },
  };
  return preview;
}
