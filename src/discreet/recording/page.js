// The list: only the rows in sight are in the document.
const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
function place(node, from, to) {
  const [a, b] = span, width = b - a;
  node.style.left = `${(Math.max(from, a) - a) / width * 100}%`;
  if (to !== undefined) node.style.width = `${Math.max(0, Math.min(to, b) - Math.max(from, a)) / width * 100}%`;
  return node;
}
function line(row) {
  const node = make("span", "line"), [a, b] = span;
  if (row.kind !== "request") {
    if (row.ms >= a && row.ms <= b) node.append(place(make("span", "mark"), row.ms));
    return node;
  }
  if (row.ms <= b && lasts(row) >= a) node.append(place(make("span", "span"), row.ms, lasts(row)));
  const step = Math.ceil(row.events.length / MAX_TICKS);
  for (let i = 0; i < row.events.length; i += step) {
    if (row.events[i][2] >= a && row.events[i][2] <= b) node.append(place(make("span", "tick"), row.events[i][2]));
  }
  return node;
}
function preview(row) {
  if (row.note) return row.note;
  const value = row.value || row.answer;
  return value ? value[0].slice(0, 240) : "";
}
function draw(row, position) {
  const quiet = ["closed", "end"].includes(row.kind) ? " quiet" : "";
  const node = make("div", `row ${row.from} is-${row.status || row.kind}${quiet}`);
  node.id = `row-${row.index}`;
  node.setAttribute("role", "option");
  node.setAttribute("aria-setsize", shown.length);
  node.setAttribute("aria-posinset", position + 1);
  node.setAttribute("aria-selected", position === chosen);
  const time = row.kind === "request" && row.end !== null ? took(lasts(row) - row.ms) : "";
  node.setAttribute("aria-label", [heading(row), row.id, `from the ${row.from}`, WORDS[row.status], time, row.note].filter(Boolean).join(", "));
  const what = make("span", "what");
  const label = row.name || { stderr: "stderr", answer: "answer" }[row.kind];
  if (label) what.append(make("b", "", label));
  what.append(make("i", "", preview(row)));
  const when = make("span", "at", at(row.ms));
  when.dataset.unit = unit === "h:mm:ss" ? "" : unit;
  node.append(when, make("span", "from", arrow(row.from)), what, make("span", "id", row.id),
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
function apply() {
  const before = shown[chosen];
  const words = filter.value.split(/\s+/).filter(Boolean).map(matcher);
  const fits = KINDS.find(([name]) => name === kind)[2], zoomed = span[0] > 0 || span[1] < whole;
  shown = kind === "all" && !zoomed && !words.length ? all : all.filter((row) => fits(row) && (!zoomed || (row.ms <= span[1] && lasts(row) >= span[0]))
    && words.every((matches) => matches(row)));
  chosen = before ? shown.indexOf(before) : -1;
  $("none").hidden = shown.length > 0;
  $("count").textContent = shown.length === all.length ? count(all.length, "row") : `${shown.length.toLocaleString("en")} of ${count(all.length, "row")}`;
  const range = $("range");
  range.hidden = !zoomed;
  range.textContent = `${at(span[0])} \u2013 ${at(span[1])} ${unit === "h:mm:ss" ? "" : unit} \u00d7`;
  range.setAttribute("aria-label", `Show the whole time again, not only ${at(span[0])} to ${at(span[1])} ${unit}`);
  $("axis").replaceChildren(make("span", "", at(span[0])), make("span", "", at(span[1])));
  for (const button of $("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === kind);
  list.scrollTop = chosen >= 0 ? Math.max(0, chosen * rowHeight() - list.clientHeight / 2) : 0;
  render();
  paint();
}

function facts_of(row) {
  const dl = make("dl", "facts");
  const add = (name, text, className) => text && dl.append(make("dt", "", name), make("dd", className, text));
  add("from", row.from);
  add("id", row.id);
  if (row.kind === "request") {
    add("status", row.note ? `${WORDS[row.status]}: ${row.note}` : WORDS[row.status], row.status);
    add("sent", `${at(row.ms)} ${unit}`);
    if (row.end !== null) add("answered", `${at(row.end)} ${unit}, after ${took(lasts(row) - row.ms)}`);
  } else {
    add("at", `${at(row.ms)} ${unit}`);
    add("text", row.note);
  }
  return dl;
}
function event_of(row, [what, from, ms, method, value]) {
  const node = make("details"), summary = make("summary"), word = what === "cancel" ? "cancelled" : what;
  summary.append(make("span", "", `+${took(Math.max(0, ms - row.ms))}`), make("span", `by-${from}`, `${arrow(from)} ${word}`), make("code", "", value ? value[0].slice(0, 200) : ""));
  summary.title = method;
  node.append(summary);
  node.addEventListener("toggle", () => { if (node.open && node.children.length === 1 && value) node.append(json(value[0], value[2])); });
  return node;
}
function events_of(row) {
  const head = make("h3", "", "Events"), box = make("div"), more = make("button", "more");
  head.append(make("small", "", row.more ? `the first ${row.events.length} of ${row.events.length + row.more}` : String(row.events.length)));
  let next = 0;
  const add = () => {
    box.append(...row.events.slice(next, next + EVENTS_AT_ONCE).map((event) => event_of(row, event)));
    next += EVENTS_AT_ONCE;
    more.hidden = next >= row.events.length;
    more.textContent = `Show ${Math.min(EVENTS_AT_ONCE, row.events.length - next)} more`;
  };
  more.type = "button";
  more.addEventListener("click", add);
  add();
  return [head, box, more];
}
function open() {
  const row = shown[chosen];
  if (!row) return;
  opened = row;
  const head = make("header"), close = make("button", "", "Close"), title = make("h2", "", heading(row));
  close.type = "button";
  close.addEventListener("click", shut);
  head.append(make("span", `from by-${row.from}`, arrow(row.from)), title, close);
  const parts = [head, facts_of(row)];
  if (row.value) parts.push(...section(row.kind === "other" ? "Message" : "Params", row.value));
  if (row.events.length) parts.push(...events_of(row));
  if (row.answer) parts.push(...section(row.status === "ok" ? "Result" : "Error", row.answer));
  detail.replaceChildren(...parts);
  detail.scrollTop = 0;
  if (detail.hidden) {
    detail.hidden = false;
    reveal();
  }
  if (getComputedStyle(detail).position === "fixed") detail.focus();
  paint();
}
function shut() {
  opened = null;
  detail.hidden = true;
  list.focus({ preventScroll: true });
  render();
  paint();
}

function view(name) {
  for (const button of $("views").children) button.setAttribute("aria-pressed", button.dataset.view === name);
  $("messages").hidden = name !== "messages";
  $("methods").hidden = name !== "methods";
  $("kinds").hidden = $("search").hidden = name !== "messages";
  if (name === "messages") render();
}
function escape() {
  if (opened) shut();
  else if (filter.value || kind !== "all") { filter.value = ""; kind = "all"; apply(); }
  else if (span[0] > 0 || span[1] < whole) { span = [0, whole]; apply(); }
  else return false;
  return true;
}
const page = () => Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
const MOVES = { ArrowDown: () => chosen + 1, ArrowUp: () => Math.max(0, chosen - 1), PageDown: () => chosen + page(),
  PageUp: () => Math.max(0, chosen - page()), Home: () => 0, End: () => shown.length - 1 };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && escape()) event.preventDefault();
  else if (event.key === "/" && document.activeElement !== filter) {
    event.preventDefault();
    view("messages");
    filter.focus();
    filter.select();
  }
});
list.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (MOVES[event.key]) choose(MOVES[event.key]());
  else if (event.key === "Enter" || event.key === " ") open();
  else return;
  event.preventDefault();
});
filter.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  event.preventDefault();
  apply();
  list.focus();
  if (chosen < 0) choose(0);
});
let waiting = 0;
filter.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 80); });
list.addEventListener("scroll", render, { passive: true });
$("range").addEventListener("click", () => { span = [0, whole]; apply(); });
for (const button of $("views").children) button.addEventListener("click", () => view(button.dataset.view));
new ResizeObserver(() => { render(); paint(); }).observe(list);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);

// What does not change.
document.title = `${facts.name} \u2013 discreet`;
$("name").textContent = facts.name;
$("command").append(make("code", "", facts.command), ` \u00b7 ${facts.framing} \u00b7 ${took(facts.duration)} \u00b7 ${facts.ending}`);
$("unit").textContent = unit;
const having = (status) => all.filter((row) => row.status === status).length;
for (const [text, number, className] of [["messages", facts.messages], ["requests", all.filter((row) => row.kind === "request").length],
  ["errors", having("error"), "error"], ["cancelled", having("cancelled"), "warn"], ["unanswered", having("waiting"), "warn"]]) {
  const box = make("div", number ? className : "");
  box.append(make("dt", "", text), make("dd", "", number.toLocaleString("en")));
  $("totals").append(box);
}
for (const [name, text, fits] of KINDS) {
  const number = all.filter(fits).length, button = make("button", "", text);
  if (!number) continue;
  button.type = "button";
  button.dataset.kind = name;
  button.append(make("small", "", number.toLocaleString("en")));
  button.addEventListener("click", () => { kind = name; apply(); });
  $("kinds").append(button);
}
const table = latencies(), slowest = Math.max(1e-3, ...table.map((method) => rank(method.times, 100) ?? 0));
for (const { from, name, requests, errors, times } of table) {
  const [median, p95, max] = [50, 95, 100].map((percent) => rank(times, percent));
  const tr = make("tr", from), th = make("th"), button = make("button", "", name), bars = make("td"), scale = make("div", "scale");
  const cell = (label, text, className) => {
    const td = make("td", className, text);
    td.dataset.label = label;
    return td;
  };
  th.scope = "row";
  button.type = "button";
  button.addEventListener("click", () => { filter.value = /\s/.test(name) ? name : `=${name}`; kind = "requests"; view("messages"); apply(); list.focus(); });
  th.append(button);
  for (const time of median === null ? [] : [max, p95, median]) {
    const bar = make("span");
    bar.style.width = `${time / slowest * 100}%`;
    scale.append(bar);
  }
  bars.append(scale);
  tr.append(th, make("td", `by-${from}`, from), cell("requests", requests.toLocaleString("en")), cell("errors", errors ? errors.toLocaleString("en") : "", "error"),
    cell("median", took(median)), cell("p95", took(p95)), cell("max", took(max)), bars);
  $("latencies").append(tr);
}
if (facts.further) {
  $("notice").textContent = `The recording has ${facts.further.toLocaleString("en")} further ${facts.further === 1 ? "entry" : "entries"}. They are not on this page; discreet show FILE prints them all.`;
  $("notice").hidden = false;
}
apply();
