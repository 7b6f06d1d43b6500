// Messages as rows of a list, of which only those in sight are in the document, and one of them whole. A row is `{ index, kind, from,
// ms, name, id, end, status, note, brief, value, answer, events, more }`; values are `[text, size, cut]`, events `[what, from, ms, method, value]`.
const WORDS = { ok: "ok", error: "error", cancelled: "cancelled", waiting: "no answer", "": "" };
const EVENTS_AT_ONCE = 100, OVERSCAN = 8;
const ARROWS = { client: "\u2192", host: "\u21e2", app: "\u21e0" }, arrow = (from) => ARROWS[from] || "\u2190";
const nameOf = (row) => row.name || { stderr: "stderr", omitted: "not a message", closed: "end of the stream", end: "end", answer: "answer to an unknown request", other: "message" }[row.kind] || row.kind;
const tookOf = (row) => row.kind === "request" && row.end !== null ? took(Math.max(0, row.end - row.ms)) : "";

function valueSection(title, value) {
  const head = make("h3", "", title);
  head.append(make("small", "", value[2] ? `the first ${bytes(value[0].length)} of ${bytes(value[1])}` : bytes(value[1])));
  return [head, json(value[0], value[2])];
}
function texts(row) {
  if (!row.texts) {
    row.texts = [row.name, row.id, WORDS[row.status], row.kind, row.from, row.note];
    for (const value of [row.value, row.answer, ...row.events.map((event) => event[4])]) if (value) row.texts.push(value[0]);
  }
  return row.texts;
}
// A word of the filter: =METHOD is that method exactly, anything else occurs somewhere.
function matcher(word) {
  if (word[0] === "=" && word[1]) return (row) => row.name === word.slice(1);
  const pattern = new RegExp(word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
  return (row) => texts(row).some((text) => pattern.test(text));
}
function preview(row) {
  if (row.note || row.brief) return [row.brief, row.note].filter(Boolean).join(" \u00b7 ");
  const value = row.value || row.answer;
  return value ? value[0].slice(0, 240) : "";
}

// `at(ms)` writes a time in this `unit`. `line(row)` draws the last column. `changed()` is called when another row is shown whole, or none.
// The first child of `list` holds the rows.
function messageList(list, detail, { at, unit, line = () => "", changed = () => {} }) {
  const holder = list.firstElementChild;
  let shown = [], chosen = -1, opened = null;
  const rowHeight = () => parseFloat(getComputedStyle(list).getPropertyValue("--row"));
  function draw(row, position) {
    const quiet = ["closed", "end"].includes(row.kind) ? " quiet" : "", time = tookOf(row);
    const node = make("div", `row ${row.from} is-${row.status || row.kind}${quiet}`);
    node.id = `row-${row.index}`;
    node.setAttribute("role", "option");
    node.setAttribute("aria-setsize", shown.length);
    node.setAttribute("aria-posinset", position + 1);
    node.setAttribute("aria-selected", position === chosen);
    const what = make("span", "what");
    const label = row.name || { stderr: "stderr", answer: "answer" }[row.kind];
    if (label) what.append(make("b", "", label));
    what.append(make("i", "", preview(row)));
    const when = make("span", "at", at(row.ms));
    when.dataset.unit = unit === "h:mm:ss" ? "" : unit;
    const from = make("span", "from", arrow(row.from));
    from.setAttribute("role", "img");
    from.setAttribute("aria-label", `from the ${row.from}`);
    node.append(when, from, what, make("span", "id", row.id),
      make("span", "status", row.status === "ok" ? (row.events.length ? count(row.events.length + row.more, "event") : "") : WORDS[row.status]),
      make("span", "took", time), line(row));
    node.addEventListener("click", () => { choose(position); open(); });
    return node;
  }
  function render() {
    const height = rowHeight();
    holder.style.height = `${shown.length * height}px`;
    const first = Math.max(0, Math.floor(list.scrollTop / height) - OVERSCAN);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + OVERSCAN);
    const nodes = [];
    const add = (i) => {
      const node = draw(shown[i], i);
      node.style.top = `${i * height}px`;
      nodes.push(node);
    };
    for (let i = first; i < last; i++) add(i);
    if (chosen >= 0 && (chosen < first || chosen >= last)) add(chosen);
    holder.replaceChildren(...nodes);
    if (chosen >= 0) list.setAttribute("aria-activedescendant", `row-${shown[chosen].index}`);
    else list.removeAttribute("aria-activedescendant");
  }
  function reveal() {
    const height = rowHeight(), top = chosen * height;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    render();
  }
  function choose(position) {
    chosen = Math.max(-1, Math.min(shown.length - 1, position));
    reveal();
    if (opened && chosen >= 0) open();
  }
  // Shows these rows. The one that was chosen stays so, if it is among them. With `live` the list goes along with its end.
  function show(rows, live) {
    const before = shown[chosen], below = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    shown = rows;
    chosen = before ? shown.indexOf(before) : -1;
    const height = rowHeight();
    holder.style.height = `${shown.length * height}px`;
    if (live && below) list.scrollTop = list.scrollHeight;
    if (!live) list.scrollTop = chosen >= 0 ? Math.max(0, chosen * height - list.clientHeight / 2) : 0;
    render();
  }

  function facts(row) {
    const dl = make("dl", "facts");
    const add = (name, text, className) => text && dl.append(make("dt", "", name), make("dd", className, text));
    add("from", row.from);
    add("id", row.id);
    if (row.kind === "request") {
      add("status", row.note ? `${WORDS[row.status]}: ${row.note}` : WORDS[row.status], row.status);
      add("sent", `${at(row.ms)} ${unit}`);
      if (row.end !== null) add("answered", `${at(row.end)} ${unit}, after ${tookOf(row)}`);
    } else {
      add("at", `${at(row.ms)} ${unit}`);
      add("text", row.note);
    }
    return dl;
  }
  function eventNode(row, [what, from, ms, method, value]) {
    const node = make("details"), summary = make("summary"), word = what === "cancel" ? "cancelled" : what;
    summary.append(make("span", "", `+${took(Math.max(0, ms - row.ms))}`), make("span", `by-${from}`, `${arrow(from)} ${word}`), make("code", "", value ? value[0].slice(0, 200) : ""));
    summary.title = method;
    node.append(summary);
    node.addEventListener("toggle", () => { if (node.open && node.children.length === 1 && value) node.append(json(value[0], value[2])); });
    return node;
  }
  function events(row) {
    const head = make("h3", "", "Events"), box = make("div"), more = make("button", "more");
    head.append(make("small", "", row.more ? `the first ${row.events.length} of ${row.events.length + row.more}` : String(row.events.length)));
    let next = 0;
    const add = () => {
      box.append(...row.events.slice(next, next + EVENTS_AT_ONCE).map((event) => eventNode(row, event)));
      next += EVENTS_AT_ONCE;
      more.hidden = next >= row.events.length;
      more.textContent = `Show ${Math.min(EVENTS_AT_ONCE, row.events.length - next)} more`;
    };
    more.type = "button";
    more.addEventListener("click", add);
    add();
    return [head, box, more];
  }
  function whole(row) {
    const head = make("header"), close = make("button", "", "Close"), title = make("h2", "", nameOf(row));
    close.type = "button";
    close.addEventListener("click", shut);
    head.append(make("span", `from by-${row.from}`, arrow(row.from)), title, close);
    const parts = [head, facts(row)];
    if (row.value) parts.push(...valueSection(row.kind === "other" ? "Message" : "Params", row.value));
    if (row.events.length) parts.push(...events(row));
    if (row.answer) parts.push(...valueSection(row.status === "ok" ? "Result" : "Error", row.answer));
    detail.replaceChildren(...parts);
  }
  function open() {
    const row = shown[chosen];
    if (!row) return;
    opened = row;
    whole(row);
    detail.scrollTop = 0;
    if (detail.hidden) {
      detail.hidden = false;
      reveal();
    }
    if (getComputedStyle(detail).position === "fixed") detail.focus();
    changed();
  }
  function shut() {
    opened = null;
    detail.hidden = true;
    list.focus({ preventScroll: true });
    render();
    changed();
  }

  const page = () => Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
  const MOVES = { ArrowDown: () => chosen + 1, ArrowUp: () => Math.max(0, chosen - 1), PageDown: () => chosen + page(),
    PageUp: () => Math.max(0, chosen - page()), Home: () => 0, End: () => shown.length - 1 };
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (MOVES[event.key]) choose(MOVES[event.key]());
    else if (event.key === "Enter" || event.key === " ") open();
    else return;
    event.preventDefault();
  });
  list.addEventListener("scroll", render, { passive: true });
  return { show, choose, open, shut, render, whole, get shown() { return shown; }, get chosen() { return chosen; }, get opened() { return opened; } };
}
