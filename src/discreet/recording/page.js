// The list with its filter, and the table of methods.
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
const messages = messageList(list, $("detail"), { at, unit, line, changed: paint });

function apply() {
  const words = filter.value.split(/\s+/).filter(Boolean).map(matcher);
  const fits = KINDS.find(([name]) => name === kind)[2], zoomed = span[0] > 0 || span[1] < whole;
  const shown = kind === "all" && !zoomed && !words.length ? all : all.filter((row) => fits(row) && (!zoomed || (row.ms <= span[1] && lasts(row) >= span[0]))
    && words.every((matches) => matches(row)));
  $("none").hidden = shown.length > 0;
  $("count").textContent = shown.length === all.length ? count(all.length, "row") : `${shown.length.toLocaleString("en")} of ${count(all.length, "row")}`;
  const range = $("range");
  range.hidden = !zoomed;
  range.textContent = `${at(span[0])} \u2013 ${at(span[1])} ${unit === "h:mm:ss" ? "" : unit} \u00d7`;
  range.setAttribute("aria-label", `Show the whole time again, not only ${at(span[0])} to ${at(span[1])} ${unit}`);
  $("axis").replaceChildren(make("span", "", at(span[0])), make("span", "", at(span[1])));
  for (const button of $("kinds").children) button.setAttribute("aria-pressed", button.dataset.kind === kind);
  messages.show(shown);
  paint();
}

function view(name) {
  for (const button of $("views").children) button.setAttribute("aria-pressed", button.dataset.view === name);
  $("messages").hidden = name !== "messages";
  $("methods").hidden = name !== "methods";
  $("kinds").hidden = $("search").hidden = name !== "messages";
  if (name === "messages") messages.render();
}
function escape() {
  if (messages.opened) messages.shut();
  else if (filter.value || kind !== "all") { filter.value = ""; kind = "all"; apply(); }
  else if (span[0] > 0 || span[1] < whole) { span = [0, whole]; apply(); }
  else return false;
  return true;
}
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
filter.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "Enter") return;
  event.preventDefault();
  apply();
  list.focus();
  if (messages.chosen < 0) messages.choose(0);
});
let waiting = 0;
filter.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 80); });
$("range").addEventListener("click", () => { span = [0, whole]; apply(); });
for (const button of $("views").children) button.addEventListener("click", () => view(button.dataset.view));
new ResizeObserver(() => { messages.render(); paint(); }).observe(list);
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
