// What the page asks the daemon: requests with the token, JSON-RPC, events. All addresses are below that of the page.
class Failed extends Error {
  constructor(code, message, { details, status, retryable = false, retryAfter } = {}) {
    super(message);
    Object.assign(this, { code, details, status, retryable, retryAfter });
  }
  // Whether asking again may help. A lost call may have run: that is not for this page to repeat.
  get transient() { return this.retryable || this.code === "UNREACHABLE" || this.code === "CUT_OFF"; }
}
class NeedsToken extends Error {}

const KEY = `discreet ${location.pathname}`;
let token = null; // the value of the header Authorization
try { token = sessionStorage.getItem(KEY); } catch { /* the browser keeps nothing: this page does, while it is open */ }
function keep(value) {
  if (token) forget(); // what one caller saw is not for the next
  token = value;
  try { if (value) sessionStorage.setItem(KEY, value); else sessionStorage.removeItem(KEY); } catch { /* as above */ }
}

// Numbers that JavaScript can't hold stay as they are written.
const exact = (key, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && JSON.rawJSON && context ? JSON.rawJSON(context.source) : value;
const parsed = (text) => JSON.parse(text, exact);

async function request(path, { method = "GET", headers = {}, body, signal, keepalive } = {}) {
  const all = { ...headers, ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(token ? { Authorization: token } : {}) };
  let response;
  try {
    response = await fetch(path, { method, headers: all, body, signal, keepalive, cache: "no-cache", redirect: "error" });
  } catch (error) {
    if (signal?.aborted) throw error;
    $("notice").textContent = UNREACHABLE;
    throw new Failed("UNREACHABLE", UNREACHABLE);
  }
  $("notice").textContent = "";
  if (response.status === 401) throw new NeedsToken();
  return response;
}
const isStream = (response) => (response.headers.get("Content-Type") || "").startsWith("text/event-stream");
async function textOf(response) {
  try {
    return await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw cutOff();
  }
}
const cutOff = () => new Failed("CUT_OFF", "The connection was lost before all of the answer had come.");
const UNREACHABLE = "The daemon can't be reached.";
const IN_STREAM = { headers: new Headers() }; // what stands for the response where an event tells of a failure
const retryAfter = (response) => response.headers.get("Retry-After") || undefined;

// The failure that an answer of an operation tells, which is no JSON where something before the daemon's calls refused it.
function failureOf(text, response) {
  const { status } = response;
  try {
    const { code, message, details, retryable } = parsed(text);
    if (code) return new Failed(String(code), String(message), { details, status, retryable, retryAfter: retryAfter(response) });
  } catch { /* below */ }
  return new Failed(`HTTP ${status}`, text.slice(0, 500) || response.statusText, { status, retryAfter: retryAfter(response) });
}
// The same of JSON-RPC: A2A 1.0 has the code as the reason of an ErrorInfo (section 9.5).
function rpcFailure(error, response) {
  const infos = Array.isArray(error.data) ? error.data : [];
  const reason = infos.find((info) => info && info.reason)?.reason ?? error.data?.code ?? error.code;
  return new Failed(String(reason), String(error.message), { details: error.data, retryAfter: retryAfter(response),
    retryable: response.status === 429 || response.status === 503 || reason === "UNAVAILABLE" });
}

let calls = 0;
async function rpc(method, params, { signal, last } = {}) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: ++calls, method, params });
  const response = await request("./", { method: "POST", body, signal, headers: { "A2A-Version": "1.0", ...(last ? { "Last-Event-ID": last } : {}) } });
  if (isStream(response)) return response;
  const text = await textOf(response);
  let answer;
  try { answer = parsed(text); } catch { throw failureOf(text, response); }
  if (answer.error) throw rpcFailure(answer.error, response);
  return answer.result;
}

// Server-Sent Events (WHATWG HTML, section 9.2). It ends where the stream does, and throws where the connection is lost.
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", data = [], name = "", id;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      const [, field, text] = line.match(/^([^:]*):? ?(.*)$/s);
      if (field === "data") data.push(text);
      else if (field === "event") name = text;
      else if (field === "id") id = text;
      else if (!line) {
        if (data.length) yield { name, id, text: data.join("\n") };
        data = []; name = "";
      }
    }
  }
}
const pause = (ms, signal) => new Promise((done, stop) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); stop(new DOMException("", "AbortError")); }, { once: true });
});

// Follows a stream until it ends in order. `open(last)` opens it behind the event with this id, and again after a loss where events
// have ids, or `resumable()` says so; it may open nothing. `take(event)` takes each event.
async function follow(open, take, signal, resumable = () => false) {
  let last, wait = 500;
  for (;;) {
    try {
      const response = await open(last);
      if (!response) return;
      for await (const event of eventsOf(response)) {
        if (event.id !== undefined) last = event.id;
        wait = 500;
        take(event);
      }
      return;
    } catch (error) {
      if (signal.aborted || error instanceof NeedsToken || (error instanceof Failed && !error.transient)) throw error;
      if (last === undefined && !resumable()) throw error instanceof Failed ? error : cutOff();
    }
    announce("The connection was lost. Trying again.");
    await pause(wait, signal);
    wait = Math.min(wait * 2, 15000);
  }
}
