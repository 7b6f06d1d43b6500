// What the views of all pages show: answers, failures, events, and lists to filter.
const main = $("main"), said = $("status"), MAX_SHOWN = 100000, MAX_EVENTS = 200;
let view = new AbortController(); // what the view does that is shown now

// What is shown of an answer, and of a failure, which is said, too.
const shortened = (text) => json(text.slice(0, MAX_SHOWN), text.length > MAX_SHOWN);
const outcomeHead = (title, ...facts) => el("div.outcome-head", el("h3", title), el("span.muted", dots(facts)));
function failureNode({ code, message, status, retryable, retryAfter: wait, details }, ms) {
  announce(`${code}. ${message}`);
  const again = retryable && `may be tried again${wait ? ` after ${wait} s` : ""}`;
  return el("div.failure", outcomeHead(code, status && `HTTP ${status}`, again, took(ms)), el("p", message), details === undefined ? null : shortened(JSON.stringify(details)));
}
function problemOf(error) {
  if (error instanceof Failed) return error;
  console.error(error);
  return new Failed("PAGE", "This page failed. Its console says more.");
}

// Events as they come: the last of them, with the time since the start.
function eventList(label) {
  const list = el("ol.events", { tabindex: "0", "aria-label": label }), total = el("span.muted"), waiting = [], since = performance.now();
  let all = 0, planned = 0;
  const draw = () => {
    planned = 0;
    const below = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    list.append(...waiting.splice(0).map(([ms, id, text]) => el("li", el("span.muted.at", `+${took(ms)}`), el("b", id), el("code", text.slice(0, 2000)))));
    while (list.children.length > MAX_EVENTS) list.firstChild.remove();
    total.textContent = count(all, "event") + (all > MAX_EVENTS ? `, the last ${MAX_EVENTS} are shown` : "");
    if (below) list.scrollTop = list.scrollHeight;
  };
  draw();
  const add = (text, id) => {
    all++;
    waiting.push([performance.now() - since, id, text]);
    if (waiting.length > MAX_EVENTS) waiting.shift();
    planned = planned || requestAnimationFrame(draw);
  };
  return { list, total, draw, add };
}

// A list to filter, beside what is chosen of it. `groups` has items by their title: `{ name, hint, text, href, isChosen }`.
let filterText = "";
function filteredList(noun, groups) {
  const filter = el("input", { type: "search", id: "filter", placeholder: "Filter", autocomplete: "off", spellcheck: "false", "aria-label": `Filter ${noun}s`, "aria-keyshortcuts": "/", value: filterText });
  const none = el("p.muted.empty", "Nothing matches.");
  const item = ({ name, hint, text = "", href, isChosen }) => el("li", { "data-text": `${name} ${hint} ${text}`.toLowerCase() },
    el("a", { href, "aria-current": isChosen && "page" }, el("code", name), hint && el("span.muted", hint)));
  const sections = [...groups].map(([group, members]) => el("section", group && groups.size > 1 ? el("h2", group) : null, el("ul", ...members.map(item))));
  const apply = () => {
    filterText = filter.value;
    const words = filter.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const section of sections) {
      const items = [...section.querySelectorAll("li")];
      for (const each of items) each.hidden = !words.every((word) => each.dataset.text.includes(word));
      const left = items.filter((each) => !each.hidden).length;
      section.hidden = !left;
      shown += left;
    }
    none.hidden = shown > 0;
    return shown;
  };
  filter.addEventListener("input", () => announce(count(apply(), noun)));
  filter.addEventListener("keydown", (event) => {
    const first = sections.find((section) => !section.hidden)?.querySelector("li:not([hidden]) a");
    if (!first || !["Enter", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Enter") first.click(); else first.focus();
  });
  apply();
  return el("nav.list", { "aria-label": `${noun[0].toUpperCase()}${noun.slice(1)}s` }, el("div.list-head", filter, el("kbd", { "aria-hidden": "true" }, "/")), ...sections, none);
}

function when(time) {
  const date = new Date(time), two = (n) => String(n).padStart(2, "0");
  if (!time || Number.isNaN(date.getTime())) return "";
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}


// An address as a link where a browser may follow it: nothing but the web's own schemes.
function link(url) {
  return /^https?:\/\//i.test(url) ? el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, url) : el("span", String(url));
}
