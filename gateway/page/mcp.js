// The client of MCP: requests of both generations through ./mcp, and every message as it goes over the wire.
const META = "io.modelcontextprotocol/", TASKS = `${META}tasks`, PROBE_MS = 3000, MAX_PAGES = 100;
const CLIENT = { name: "discreet inspect", version: VERSION };
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true }, extensions: { [`${META}ui`]: { mimeTypes: [APP_TYPE] } } };

// -- the wire: rows of the list of messages, and the messages themselves, for a recording. The oldest go.
WORDS.waiting = "waiting"; // for its answer, which may still come
const MAX_ROWS = 1000, MAX_ROW_EVENTS = 200, VALUE_CHARS = 32768, WIRE_CHARS = 16e6;
const wire = { rows: [], entries: [], chars: 0, dropped: 0, next: 0, since: performance.now(), open: new Map(), changed: () => {} };
function valueOf(value) {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  return [text.slice(0, VALUE_CHARS), text.length, text.length > VALUE_CHARS];
}
function addRow(row) {
  wire.rows.push({ index: wire.next++, name: "", id: "", end: null, status: "", note: "", brief: "", value: null, answer: null, events: [], more: 0, ...row });
  if (wire.rows.length > MAX_ROWS) wire.rows.shift();
  return wire.rows.at(-1);
}
// What of the params is of interest at once.
function briefOf({ _meta, name, uri, arguments: given, ...rest } = {}) {
  return dots(name ?? uri, given && JSON.stringify(given).slice(0, 200), Object.keys(rest).length && JSON.stringify(rest).slice(0, 200)) || " ";
}
// The row of the request that a message belongs to: by its id, or by its progress token.
const PEERS = { client: "server", server: "client", host: "app", app: "host" };
const rowOf = (from, id) => wire.open.get(`${from} ${JSON.stringify(id)}`);
function addEvent(row, what, from, ms, message) {
  if (row.events.length < MAX_ROW_EVENTS) row.events.push([what, from, ms, message.method, valueOf(message.params)]); else row.more++;
  return row;
}
function toRow(from, message, ms) {
  const { method, id, params, result, error } = message, other = PEERS[from];
  if (method !== undefined && id !== undefined) {
    const row = addRow({ kind: "request", from, ms, name: method, id: JSON.stringify(id), status: "waiting", brief: briefOf(params), value: valueOf(params) });
    wire.open.set(`${from} ${JSON.stringify(id)}`, row);
    if (params?._meta?.progressToken !== undefined) wire.open.set(`token of ${from} ${JSON.stringify(params._meta.progressToken)}`, row);
    return row;
  }
  if (method === undefined) {
    const row = rowOf(other, id) || addRow({ kind: "answer", from, ms, id: JSON.stringify(id) });
    row.answer = valueOf(result ?? error);
    row.status = error ? "error" : result?.isError ? "error" : "ok";
    row.note = error ? `${error.code} ${error.message}` : result?.isError ? "the tool has failed" : "";
    return settle(row, ms);
  }
  const asked = method === "notifications/progress" ? rowOf(`token of ${other}`, params?.progressToken) : method === "notifications/cancelled" ? rowOf(from, params?.requestId) : null;
  if (!asked) return addRow({ kind: "notification", from, ms, name: method, brief: briefOf(params), value: valueOf(params) });
  addEvent(asked, method === "notifications/progress" ? "progress" : "cancel", from, ms, message);
  if (method === "notifications/cancelled") settle(asked, ms, "cancelled");
  return asked;
}
function settle(row, ms, status = row.status) {
  if (row.kind === "request") row.end = ms;
  row.status = status;
  for (const [key, each] of wire.open) if (each === row) wire.open.delete(key);
  return row;
}
function record(from, message) {
  const ms = performance.now() - wire.since, row = toRow(from, message, ms), text = JSON.stringify(message);
  delete row.texts;
  wire.changed(row);
  if (from === "app" || from === "host") return; // between the page and an app: not for a recording
  wire.entries.push({ ms, from, text });
  wire.chars += text.length;
  while (wire.chars > WIRE_CHARS && wire.entries.length > 1) {
    wire.chars -= wire.entries.shift().text.length;
    wire.dropped++;
  }
}
// A recording, as `discreet record` writes one: `discreet show` and `discreet replay` read it.
function recordingText() {
  const lines = [{ type: "start", ms: 0, version: 1, framing: "newline", command: [about().name || "server"] }];
  if (wire.dropped) lines.push({ type: "omitted", ms: 0, from: "client", reason: "the page holds no more", bytes: 0 });
  const messages = wire.entries.map(({ ms, from, text }) => `{"type":"message","ms":${ms.toFixed(1)},"from":"${from}","message":${text}}`);
  return [...lines.map((each) => JSON.stringify(each)), ...messages, ""].join("\n");
}

// -- the server as it is now. `era` is null while there is none.
let era = null, serial = 0, logLevel = "info", wanted = "";
const listeners = { notified: () => {}, asked: async () => { throw new Failed("-32601", "Method not found"); } };
const isModern = () => era?.revision === MODERN;
const has = (name) => Boolean(era?.capabilities?.[name]);
const encoded = (text) => /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) ? text : `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;

const NAMED = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId" };
function headersFor({ method, params }, { revision, session } = {}) {
  const headers = { Accept: "application/json, text/event-stream", ...(session ? { "Mcp-Session-Id": session } : {}) };
  if (revision) headers["MCP-Protocol-Version"] = revision;
  if (revision !== MODERN || !method) return headers;
  const name = params?.[NAMED[method]];
  return { ...headers, "Mcp-Method": method, ...(typeof name === "string" ? { "Mcp-Name": encoded(name) } : {}) };
}
const failureFrom = ({ code, message, data }) => new Failed(String(data?.code ?? code), String(message), { details: data, status: data?.code === undefined ? undefined : code, retryable: Boolean(data?.retryable) });

// Sends one message, and has `take` take each that comes for it.
async function post(message, within, signal, take) {
  record("client", message);
  const both = signal ? AbortSignal.any([signal, connection.signal]) : connection.signal;
  const response = await request("mcp", { method: "POST", headers: headersFor(message, within), body: JSON.stringify(message), signal: both });
  if (isStream(response)) {
    for await (const { text } of eventsOf(response)) if (text) take(parsed(text));
    return response;
  }
  const text = await textOf(response);
  if (!text) return response;
  let came = null;
  try { came = parsed(text); } catch { /* below */ }
  if (came?.jsonrpc === undefined) {
    if (response.status === 404 && within.session) throw new Failed("SESSION_ENDED", "The server has ended, and its session with it.");
    throw failureOf(text, response);
  }
  take(came);
  return response;
}
// What the server says beside an answer: a question, which is answered, or a notification.
function takeOther(message, within) {
  record("server", message);
  if (message.method === "notifications/cancelled") asked.get(JSON.stringify(message.params?.requestId))?.abort();
  if (message.id === undefined) return listeners.notified(message);
  answer(message, within).catch(() => {}); // the server has gone, which is told elsewhere
}
const asked = new Map(); // the questions of a session that wait for an answer, by their ids
async function answer({ id, method, params }, within) {
  const held = new AbortController(), key = JSON.stringify(id);
  let reply;
  asked.set(key, held);
  try {
    reply = { result: method === "ping" ? {} : await listeners.asked(method, params, held.signal) };
  } catch (error) {
    if (held.signal.aborted) return;
    reply = { error: { code: Number(error.code) || -32603, message: error.message } };
  } finally {
    asked.delete(key);
  }
  await post({ jsonrpc: "2.0", id, ...reply }, within, undefined, () => {});
}
// One request and its result. `told(message)` gets the progress and whatever else belongs to it.
async function exchange(method, params, within, { signal, told = () => {} } = {}) {
  const id = ++serial, message = { jsonrpc: "2.0", id, method, params };
  let answered = null;
  const take = (came) => {
    if (came.method !== undefined) {
      takeOther(came, within);
      return told(came);
    }
    record("server", came);
    if (came.id === id) answered = came; else if (came.error) answered = answered || came;
  };
  let response;
  try {
    response = await post(message, within, signal, take);
  } catch (error) {
    const row = rowOf("client", id), aborted = signal?.aborted || error.name === "AbortError";
    const problem = signal?.aborted || error instanceof Failed || error instanceof NeedsToken ? error : aborted ? new Failed("SESSION_ENDED", "The page has ended the connection.") : cutOff();
    if (signal?.aborted && within.revision !== MODERN) post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason: "stopped in the page" } }, within, undefined, () => {}).catch(() => {});
    if (row) {
      row.note = aborted ? "" : problem.message;
      wire.changed(settle(row, performance.now() - wire.since, aborted ? "cancelled" : "error"));
    }
    throw problem;
  }
  if (!answered) throw cutOff();
  if (answered.error) throw failureFrom(answered.error);
  return { result: answered.result, response };
}
function metaFor(revision, tasks = true) {
  if (revision !== MODERN) return {};
  const extensions = { ...CAPABILITIES.extensions, ...(tasks ? { [TASKS]: {} } : {}) };
  return { [`${META}protocolVersion`]: MODERN, [`${META}clientInfo`]: CLIENT, [`${META}clientCapabilities`]: { ...CAPABILITIES, extensions }, [`${META}logLevel`]: logLevel };
}
// A request of the agreed revision, and its result. What it is asked for before, of the server since 2026-07-28, the page asks for.
async function call(method, params = {}, options = {}) {
  const { progress = false, signal, tasks } = options;
  let given = params;
  for (;;) {
    const _meta = { ...metaFor(era?.revision, tasks), ...(progress ? { progressToken: serial + 1 } : {}) };
    const { result } = await exchange(method, Object.keys(_meta).length ? { ...given, _meta } : given, era || {}, { ...options, signal });
    if (result?.resultType !== "input_required") return result;
    given = { ...params, inputResponses: await answersTo(result.inputRequests, signal), requestState: result.requestState };
  }
}
async function answersTo(requests = {}, signal) {
  const answers = {};
  for (const [key, { method, params }] of Object.entries(requests)) answers[key] = await listeners.asked(method, params, signal);
  return answers;
}

// -- the beginning and the end
let listening = new AbortController(), connection = new AbortController();
async function connect() {
  disconnect();
  if (!wanted || wanted === MODERN) {
    try {
      const limit = wanted ? undefined : AbortSignal.timeout(PROBE_MS);
      const { result } = await exchange("server/discover", { _meta: metaFor(MODERN) }, { revision: MODERN }, { signal: limit });
      if (wanted || result.supportedVersions?.includes(MODERN)) era = { revision: MODERN, server: result._meta?.[`${META}serverInfo`] || {}, ...result };
    } catch (error) {
      if (wanted || error instanceof NeedsToken || error.code === "UNREACHABLE") throw error;
    }
  }
  if (!era) {
    const params = { protocolVersion: wanted || LEGACY[0], capabilities: CAPABILITIES, clientInfo: CLIENT };
    const { result, response } = await exchange("initialize", params, {});
    era = { revision: result.protocolVersion, session: response.headers.get("Mcp-Session-Id"), server: result.serverInfo || {}, ...result };
    await post({ jsonrpc: "2.0", method: "notifications/initialized" }, era, undefined, () => {});
  }
  listening = new AbortController();
  listen(era, listening.signal);
  if (!isModern() && has("logging")) call("logging/setLevel", { level: logLevel }).catch(() => {});
}
function disconnect() {
  listening.abort();
  connection.abort();
  connection = new AbortController();
  for (const each of asked.values()) each.abort();
  if (era?.session) request("mcp", { method: "DELETE", headers: headersFor({}, era), keepalive: true }).catch(() => {}); // else the server's questions could be for it, too
  era = null;
}
// Hears what belongs to no request, until the server ends. Then `lost()` is called.
let lost = () => {}, watched = [];
async function listen(within, signal) {
  try {
    if (within.revision === MODERN) {
      const notifications = { toolsListChanged: true, resourcesListChanged: true, promptsListChanged: true, ...(watched.length ? { resourceSubscriptions: watched } : {}) };
      await exchange("subscriptions/listen", { notifications, _meta: metaFor(MODERN) }, within, { signal });
    } else if (within.session) {
      const response = await request("mcp", { headers: { ...headersFor({}, within), Accept: "text/event-stream" }, signal });
      if (response.ok) for await (const { text } of eventsOf(response)) if (text) takeOther(parsed(text), within);
    }
  } catch (error) {
    if (signal.aborted || error.code === "-32601") return;
  }
  if (!signal.aborted && within === era) lost();
}
// Subscribes to a resource, or ends that.
async function watch(uri, on) {
  watched = watched.filter((each) => each !== uri).concat(on ? [uri] : []);
  if (!isModern()) return call(on ? "resources/subscribe" : "resources/unsubscribe", { uri });
  listening.abort();
  listening = new AbortController();
  listen(era, listening.signal);
}
// All items of a list, page by page.
async function listAll(method, member) {
  const found = [];
  let cursor;
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await call(method, cursor === undefined ? {} : { cursor });
    found.push(...(result[member] || []));
    cursor = result.nextCursor;
    if (cursor === undefined || cursor === null) break;
  }
  return found;
}
