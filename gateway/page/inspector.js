// The page of an MCP server: what it offers, what it says of itself, and beside both the messages and the log.
const LOG_SECONDS = 1, MAX_LINES = 1000, MAX_ATTEMPTS = 6;
const VIEWS = {
  tools: { title: "Tools", show: showTools, takesId: true },
  resources: { title: "Resources", show: showResources, takesId: true },
  prompts: { title: "Prompts", show: showPrompts, takesId: true },
  tasks: { title: "Tasks", show: showMcpTasks },
  server: { title: "Server", show: showServer },
  messages: { title: "Messages", show: () => showBeside("Messages") },
  log: { title: "Log", show: () => showBeside("Log") },
};
const firstView = () => ["tools", "resources", "prompts"].find((kind) => has(kind)) || "server";
const about = () => ({ keepsToken: true, href: "#/server", name: era?.server.title || era?.server.name || "MCP server", version: dots(era?.server.version, era && `MCP ${era.revision}`), schemes: {} });
async function load() {
  if (token) await request("page/requests"); // is the token accepted?
  await connect();
  await loadLists();
  if (HAS_LOG) tail();
}
const leave = () => disconnect();
function forget() {
  kept.clear();
  begun.clear();
}

// The token stands behind #, which no browser sends, and is taken out of the address at once.
function takeToken() {
  const [, given] = location.hash.match(/^#token=([\w-]+)$/) || [];
  if (!given) return false;
  keep(`Bearer ${given}`);
  history.replaceState(null, "", location.pathname);
  return true;
}
takeToken();
addEventListener("hashchange", () => takeToken() && begin());

// -- what the server says by itself
const levelKind = (level) => ["error", "critical", "alert", "emergency"].includes(level) ? "error" : level === "warning" ? "warn" : "";
let refreshing = 0;
listeners.notified = ({ method, params = {} }) => {
  const [, kind] = method.match(/^notifications\/(tools|resources|prompts)\/list_changed$/) || [];
  if (kind) changed.add(kind);
  if (kind) refreshing = refreshing || setTimeout(refresh, 50);
  if (method === "notifications/message") addLine(dots(params.level, params.logger, typeof params.data === "string" ? params.data : JSON.stringify(params.data)), levelKind(params.level));
  if (method === "notifications/resources/updated") reread(String(params.uri));
};
const changed = new Set();
async function refresh() {
  refreshing = 0;
  const kinds = [...changed].flatMap((kind) => kind === "resources" ? ["resources", "templates"] : [kind]);
  changed.clear();
  try {
    await Promise.all(kinds.map(loadList));
  } catch { return; } // it has ended: what begins anew asks for all
  redraw();
  announce("The lists have changed.");
  addLine("The server says that its lists have changed. They were fetched again.", "note");
}
// Shows the view again. The focus stays where it was.
function redraw() {
  const focused = document.activeElement, name = focused?.closest(".field")?.querySelector("label")?.textContent, href = focused?.getAttribute?.("href");
  showAbout();
  lastHash = null;
  route();
  if (document.activeElement === focused) return;
  const same = focused.isConnected ? focused : href ? main.querySelector(`a[href="${CSS.escape(href)}"]`) : [...main.querySelectorAll(".field")].find((each) => each.querySelector("label").textContent === name)?.querySelector("input, textarea, select");
  same?.focus();
}
function reread(uri) {
  const page = kept.get(`resource ${uri}`)?.page;
  announce("The resource has changed.");
  if (page?.hasRun) page.submit();
}
lost = async () => {
  const state = $("lost");
  state.textContent = "The server has ended. Connecting again.";
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    await pause(Math.min(5000, 250 * 2 ** attempt), new AbortController().signal);
    try {
      await connect();
      await loadLists();
      state.textContent = "";
      redraw();
      return announce("Connected again.");
    } catch (error) {
      if (error instanceof NeedsToken) return askToken();
      state.textContent = `The server can't be reached: ${error.message} Trying again.`;
    }
  }
  state.replaceChildren("The server can't be started. ", button("plain", "Try again", lost));
};
async function restartServer() {
  await request("page/restart", { method: "POST" });
  disconnect();
  lost();
}

// -- the server
function showServer() {
  if (!era) return alone("Server", el("p.muted", "There is none now."));
  const { server, instructions, capabilities } = era, list = el("dl.facts-list");
  const facts = { Name: server.name, Title: server.title, Version: server.version, Description: server.description, Website: server.websiteUrl && link(String(server.websiteUrl)), Revision: era.revision };
  for (const [name, value] of Object.entries(facts)) if (value) list.append(el("dt", name), el("dd", value));
  const choice = (label, values, value, chosen) => {
    const id = fresh("choice"), select = el("select", { id, change: () => chosen(select.value) }, ...values.map(([each, text]) => el("option", { value: each }, text)));
    select.value = value;
    return el("div.field", el("label", { for: id }, label), select);
  };
  const speak = (revision) => {
    wanted = revision;
    if (HAS_LOG) return run(restartServer);
    disconnect();
    lost();
  };
  const setLevel = (level) => {
    logLevel = level;
    if (!isModern() && has("logging")) run(() => call("logging/setLevel", { level }), (error) => announce(error.message));
  };
  const folderInput = el("textarea.code", { rows: 2, id: fresh("folders"), placeholder: "file:///home/ann/project", value: folders });
  folderInput.addEventListener("change", () => {
    folders = folderInput.value;
    if (!isModern()) post({ jsonrpc: "2.0", method: "notifications/roots/list_changed" }, era, undefined, () => {}).catch(() => {});
  });
  alone("Server", list,
    instructions ? el("section", el("h3", "Instructions for the model"), el("p.text", String(instructions))) : null,
    el("section.choices", choice("Revision of MCP", [["", "the newest that both know"], ...[MODERN, ...LEGACY].map((each) => [each, each])], wanted, speak),
      choice("Least level of log messages", LEVELS.map((each) => [each, each]), logLevel, setLevel)),
    el("section", el("div.field", el("label", { for: folderInput.id }, "Folders that the server is told of (roots)"), folderInput, el("p.muted", "URIs, one in each line."))),
    el("div.actions", HAS_LOG ? button("plain", "Restart the server", () => run(restartServer)) : null),
    el("section", el("h3", "Capabilities"), json(JSON.stringify(capabilities || {}))));
}

// -- beside: the messages and the log. Where there is no room beside, they are views of their own.
function showBeside(title) {
  alone(title, el("p.muted", "They are beside this."));
  wireList.render();
}
const rows = el("div.rows", { role: "presentation" }), one = el("aside.message", { id: "one", "aria-label": "Message", tabindex: "0", hidden: true });
const wireBox = el("div.wire", { id: "wire", role: "listbox", tabindex: "0", "aria-label": "Messages", "aria-keyshortcuts": "ArrowUp ArrowDown Enter" }, rows);
const wireFilter = el("input", { type: "search", placeholder: "Filter: method, id, text", "aria-label": "Filter messages", autocomplete: "off", spellcheck: "false" });
const wireCount = el("span.muted"), at = (ms) => (ms / 1000).toFixed(3);
const logLines = el("ol.lines", { tabindex: "0", "aria-label": "Log" });
function save() {
  const url = URL.createObjectURL(new Blob([recordingText()], { type: "application/jsonl" }));
  el("a", { href: url, download: "session.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
function clearWire() {
  Object.assign(wire, { rows: [], entries: [], chars: 0, dropped: 0 });
  if (wireList.opened) wireList.shut();
  drawWire(false);
}
const dock = el("div", { id: "dock" },
  el("section", { id: "wire-part", "aria-label": "Messages" }, el("div.part-head", el("h2", "Messages"), wireCount, button("plain", "Save", save), button("plain", "Clear", clearWire)), wireFilter, wireBox),
  one,
  el("section", { id: "log-part", "aria-label": "Log" }, el("div.part-head", el("h2", "Log"), el("span.muted", HAS_LOG ? "stderr and log messages" : "log messages"), button("plain", "Clear", () => logLines.replaceChildren())), logLines));
main.after(dock);
$("notice").after(el("p", { id: "lost", role: "status" }));
const wireList = messageList(wireBox, one, { at, unit: "s" });
let planned = 0;
const changedRows = new Set();
function drawWire(live = true) {
  planned = 0;
  if (changedRows.has(wireList.opened)) wireList.whole(wireList.opened);
  changedRows.clear();
  const found = wireFilter.value.split(/\s+/).filter(Boolean).map(matcher), shown = found.length ? wire.rows.filter((row) => found.every((matches) => matches(row))) : wire.rows.slice();
  wireCount.textContent = found.length ? `${shown.length} of ${wire.rows.length}` : String(wire.rows.length);
  wireList.show(shown, live);
}
wire.changed = (row) => {
  changedRows.add(row);
  planned = planned || requestAnimationFrame(() => drawWire());
};
wireFilter.addEventListener("input", () => drawWire(false));
wireFilter.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  event.preventDefault();
  wireBox.focus();
  if (wireList.chosen < 0) wireList.choose(0);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && wireList.opened) wireList.shut();
});
new ResizeObserver(() => wireList.render()).observe(wireBox);

const newLines = [];
function addLine(text, kind = "") {
  if (newLines.push(el(`li${kind && `.${kind}`}`, text.slice(0, 4000))) === 1) requestAnimationFrame(drawLines);
  if (newLines.length > MAX_LINES) newLines.splice(1, 1); // the first one has asked for the frame
}
function drawLines() {
  const below = logLines.scrollHeight - logLines.scrollTop - logLines.clientHeight < 40;
  logLines.append(...newLines.splice(0));
  while (logLines.children.length > MAX_LINES) logLines.firstChild.remove();
  if (below) logLines.scrollTop = logLines.scrollHeight;
}
const kindOf = (line) => { const [, level] = line.match(/\blevel=(warn|error)\b/) || []; return level || ""; };
// The log of the server as it comes.
let tailing = false, lastLine = 0;
async function tail() {
  if (tailing) return;
  tailing = true;
  try {
    await polling(LOG_SECONDS, new AbortController().signal, async () => {
      const response = await request(`page/log?after=${lastLine}`);
      if (!response.ok) return;
      const { last, lines } = parsed(await textOf(response));
      lastLine = last;
      for (const line of lines) addLine(line.replace(/^timestamp=[\d-]+T([\d:.]+)Z /, "$1 "), kindOf(line));
    });
  } catch { /* the token is not accepted any more: the next sign-in begins it again */ }
  tailing = false;
}
