// The page as a whole: which view the address names, who calls, and what is said to those who do not see it.
// The scripts of its views have `VIEWS`, `firstView()`, `about()`, `load()`, `forget()` and `leave()`.
let loaded = false, words = 0, lastHash = null;

// Say something to screen readers. What was said last goes, so that the same is said twice.
function announce(text) {
  clearTimeout(words);
  said.textContent = "";
  words = setTimeout(() => { said.textContent = text; }, 50);
}
function show(node) {
  if (main.firstChild !== node) main.replaceChildren(node);
}
function alone(title, ...children) {
  show(el("section.alone", heading(title), ...children));
}
const notFound = (href) => alone("Not here", el("p", "There is no such thing, or you may not see it. ", el("a", { href }, "Back")));
// A list beside what is chosen of it. On a phone one of both is there.
function panes(list, detail, chosen) {
  const before = main.firstElementChild, scrolled = main.querySelector(".list")?.scrollTop || 0;
  if (before?.matches(".panes") && before.lastElementChild.firstChild === detail) { // it stays in the document: a frame that is taken out ends
    before.classList.toggle("is-chosen", Boolean(chosen));
    before.firstElementChild.replaceWith(list);
  } else show(el(`div.panes${chosen ? ".is-chosen" : ""}`, list, el("div.detail", detail)));
  list.scrollTop = scrolled;
}
// Runs what may fail, while the view is there.
async function run(work, failed = showFailure) {
  const { signal } = view;
  try {
    await work(signal);
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof NeedsToken) askToken(); else failed(problemOf(error));
  }
}
function showFailure(error) {
  alone("That failed", failureNode(error), el("div.actions", button("primary", "Try again", begin)));
}
// Ends what runs for this view, and runs something else for it.
function restart(work) {
  view.abort();
  view = new AbortController();
  return run(work);
}
async function polling(seconds, signal, work) {
  for (;;) {
    try {
      if (!document.hidden) await work();
    } catch (error) {
      if (!error.transient) throw error;
    }
    await pause(seconds * 1000, signal);
  }
}

// Who calls. The token stays in this tab, and goes with each request to the daemon and nowhere else.
function askToken() {
  const refused = token !== null, id = fresh("token"), kinds = Object.values(about().schemes || {}), isKey = (kind) => kind.apiKeySecurityScheme;
  const options = [kinds.every(isKey) && kinds.length ? null : ["Bearer", "Token"], kinds.some(isKey) ? ["ApiKey", "API key"] : null].filter(Boolean);
  view.abort();
  keep(null);
  const input = el("input", { type: "password", id, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-problem`, "aria-invalid": String(refused) });
  const problem = el("p.problem", { id: `${id}-problem` }, refused ? "This was not accepted." : "");
  const scheme = el("select", { "aria-label": "Kind" }, ...options.map(([value, text]) => el("option", { value }, text)));
  const submit = (event) => {
    event.preventDefault();
    if (!/^[!-~]+$/.test(input.value)) {
      problem.textContent = "Write a token: letters, digits and signs, without spaces.";
      return input.focus();
    }
    keep(`${scheme.value} ${input.value}`);
    begin();
  };
  alone("Who are you?", el("p.muted", "This daemon answers callers that it knows. What you write here stays in this tab until you sign out or close it."),
    el("form", { novalidate: true, submit }, options.length > 1 ? scheme : null,
      el("div.field", el("label", { for: id }, options.length > 1 ? "Token or API key" : options[0][1]), input, problem), el("div.actions", el("button.primary", "Sign in"))));
  showIdentity();
  input.focus();
  announce(refused ? "The token was not accepted." : "A token is needed.");
}
function showIdentity() {
  $("identity").hidden = about().keepsToken || !token && !Object.keys(about().schemes || {}).length;
  $("identity").textContent = token ? "Sign out" : "Sign in";
}

// From the address to a view: #/operations/NAME, #/agent, #/tasks/ID?state=..., #/requests.
function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?"), [name, ...rest] = path.split("/"), before = lastHash;
  let id = rest.join("/");
  try { id = decodeURIComponent(id); } catch { /* as it stands there */ }
  lastHash = location.hash;
  for (const each of $("views").children) each.setAttribute("aria-current", each.getAttribute("href") === `#/${name}` ? "page" : "false");
  document.title = [id, name, about().name].filter(Boolean).join(" \u2013 ");
  const { takesId, show: draw } = Object.hasOwn(VIEWS, name) ? VIEWS[name] : {}, known = draw && (takesId || !id);
  document.body.dataset.view = known ? name : "";
  restart((signal) => known ? draw(...(takesId ? [id, new URLSearchParams(query)] : []), signal) : notFound(`#/${firstView()}`));
  if (before !== null) focusView(before);
}
// After a change of the view the focus is where it begins; after a way back, where it was.
function focusView(before) {
  const link = main.querySelector(`.panes:not(.is-chosen) .list a[href="${CSS.escape(before)}"]`);
  const target = link || main.querySelector(".detail h2") || main.querySelector("h2[tabindex]") || main;
  target.focus();
  if (document.activeElement !== target) main.focus();
  if (!link) scrollTo(0, 0);
}

// Asks for what all views need, then shows one.
async function begin() {
  try {
    await load();
  } catch (error) {
    return error instanceof NeedsToken ? askToken() : showFailure(problemOf(error));
  }
  showAbout();
  loaded = true;
  if (!location.hash) history.replaceState(null, "", `#/${firstView()}`);
  route();
}
function showAbout() {
  const { name, href } = about();
  $("name").replaceChildren(href ? el("a", { href }, name) : name);
  $("version").textContent = about().version || "";
  for (const each of $("views").children) each.hidden = VIEWS[each.hash.slice(2)].isHidden?.() ?? each.hidden;
  $("views").hidden = false;
  showIdentity();
}
$("views").append(...Object.entries(VIEWS).map(([name, { title, hidden }]) => el("a", { href: `#/${name}`, hidden }, title)));
$("identity").addEventListener("click", () => {
  if (!token) return askToken();
  keep(null);
  begin();
});
// A page that is left, and may be come back to, keeps no connection: a browser has six for one server.
addEventListener("pagehide", () => { view.abort(); leave(); });
addEventListener("pageshow", ({ persisted }) => persisted && begin());
$("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => loaded && route());
document.addEventListener("keydown", (event) => {
  const filter = $("filter");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !filter?.offsetParent || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  event.preventDefault();
  filter.focus();
  filter.select();
});
begin();
