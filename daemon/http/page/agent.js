// The agent: what its card says, and a form that sends it a message and shows the task that this begins.
let card = null, conversation = null;
const streams = () => Boolean(card?.capabilities?.streaming);

async function loadCard() {
  const response = await request(".well-known/agent-card.json", { headers: { "A2A-Version": "1.0" } });
  if (!response.ok) throw failureOf(await textOf(response), response);
  card = parsed(await textOf(response));
  if (!card.capabilities?.extendedAgentCard || !token) return;
  try { card = await rpc("GetExtendedAgentCard", {}); } catch (error) { if (error instanceof NeedsToken) throw error; /* else the public one will do */ }
}
function factList(pairs) {
  const list = el("dl.facts-list");
  for (const [name, value] of pairs) if (value && value.length !== 0) list.append(el("dt", name), el("dd", ...[value].flat()));
  return list;
}
const securityNames = () => Object.entries(card.securitySchemes || {}).map(([name, scheme]) => {
  const [kind] = Object.keys(scheme);
  return `${name} (${kind.replace("SecurityScheme", "")})`;
});
function skillNode(skill, use) {
  const asked = (text) => button("example", text, () => use(text));
  const runs = operations.has(skill.id) ? el("a", { href: `#/operations/${pathOf(skill.id)}` }, "Schema and form") : null;
  const data = takesText() ? null : button("example", "Use", () => use("", { skill: skill.id, input: {} }));
  const modes = [skill.inputModes?.length && `takes ${skill.inputModes.join(", ")}`, skill.outputModes?.length && `gives ${skill.outputModes.join(", ")}`];
  return el("li", el("h4", skill.name || skill.id), el("p", skill.description),
    el("p.muted", [...(skill.tags || []), ...modes].filter(Boolean).join(" \u00b7 ")),
    el("div.examples", ...(skill.examples || []).map(asked), data, runs));
}
const takesText = () => (card.defaultInputModes || []).some((mode) => mode.startsWith("text/") || mode === "*/*");

function agentPage() {
  const text = el("textarea", { rows: 3, id: fresh("message") }), problem = el("p.problem", { id: fresh("problem"), hidden: true });
  const data = field("Data", { type: "object", description: "A JSON value that is sent beside the text." }, {}, false, false);
  const same = el("input", { type: "checkbox", id: fresh("same") }), sameLine = el("span.check", { hidden: true }, same, el("label", { for: same.id }, "Continue the context"));
  const send = el("button.primary", "Send"), place = el("div");
  const more = el("details", { open: takesText() ? undefined : true }, el("summary", "Data"), data.node);
  text.setAttribute("aria-describedby", problem.id);
  let view = null;
  const submit = (event) => {
    event.preventDefault();
    const parts = text.value ? [{ text: text.value }] : [];
    try {
      const json = data.read();
      if (json !== undefined) parts.push({ data: parsed(json) });
    } catch (error) {
      more.open = true;
      return error.input.focus();
    }
    problem.hidden = parts.length > 0;
    problem.textContent = "Write something to send.";
    if (!parts.length) return text.focus();
    const { contextId } = (same.checked && view?.task) || {};
    const fresh = view = taskView("h3", answering(() => fresh));
    place.replaceChildren(view.node);
    sameLine.hidden = false;
    announce("Sending");
    restart((signal) => fresh.watch(signal, () => sendMessage(messageOf(parts, contextId ? { contextId } : {}), signal)));
  };
  const use = (example, value) => {
    text.value = example;
    if (value !== undefined) { data.write(value); more.open = true; }
    (value === undefined ? text : data.input).focus();
  };
  const form = el("form", { novalidate: true, submit },
    el("label", { for: text.id, className: takesText() ? "" : "muted" }, "Text"), text, problem, more, el("div.actions", send, sameLine));
  const { capabilities = {} } = card, skills = card.skills || [];
  const can = ["streaming", "pushNotifications", "extendedAgentCard"].filter((name) => capabilities[name]).map((name) => name.replace(/[A-Z]/g, (it) => ` ${it.toLowerCase()}`));
  const about = el("aside", { "aria-label": "About the agent" },
    el("h2", "About"), el("p.description", card.description),
    factList([["Version", card.version], ["Provider", card.provider?.organization], ["Website", card.provider?.url ? link(card.provider.url) : ""],
      ["Documentation", card.documentationUrl ? link(card.documentationUrl) : ""], ["Can", can.join(", ")], ["Takes", (card.defaultInputModes || []).join(", ")],
      ["Gives", (card.defaultOutputModes || []).join(", ")], ["Credentials", securityNames().join(", ")],
      ["Interfaces", (card.supportedInterfaces || []).map((each) => `${each.protocolBinding} ${each.protocolVersion || ""}`).join(", ")]]),
    skills.length ? el("section", el("h2", "Skills"), el("ul.skills", ...skills.map((skill) => skillNode(skill, use)))) : null);
  const node = el("div.agent", el("section.talk", el("h2", { tabindex: "-1" }, "Send a message"), form, place), about);
  return { node, resume: (signal) => view?.task && ACTIVE.has(view.task.status.state) ? view.watch(signal) : undefined };
}
function showAgent(signal) {
  conversation = conversation || agentPage();
  show(conversation.node);
  return conversation.resume(signal);
}
