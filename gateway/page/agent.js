// The agent: what its card says, and a form that sends it a message and shows the task that this begins.
let card = null, cardText = "", conversation = null;
const streams = () => Boolean(card.capabilities?.streaming);
const takesText = () => (card.defaultInputModes || []).some((mode) => mode.startsWith("text/") || mode === "*/*");

async function loadCard() {
  const response = await request(".well-known/agent-card.json", { headers: { "A2A-Version": "1.0" } }), text = await textOf(response);
  if (!response.ok) throw failureOf(text, response);
  card = parsed(text);
  if (token && card.capabilities?.extendedAgentCard) card = await rpc("GetExtendedAgentCard", {});
  if (cardText === (cardText = JSON.stringify(card))) return;
  conversation = null;
}
function skillNode({ id, name, description, tags = [], examples = [], inputModes, outputModes }, use) {
  return el("li", el("h3", name || id), el("p", description),
    el("p.muted", dots(tags, inputModes && `takes ${inputModes.join(", ")}`, outputModes && `gives ${outputModes.join(", ")}`)),
    el("div.examples", ...examples.map((text) => button("example", text, () => use(text))),
      takesText() ? null : button("example", "Use", () => use("", { skill: id, input: {} })),
      operations.has(id) ? el("a", { href: `#/operations/${pathOf(id)}` }, "Schema and form") : null));
}
function aboutNode(use) {
  const { capabilities = {}, provider, skills = [], securitySchemes = {} } = card, list = el("dl.facts-list");
  const facts = {
    Version: card.version,
    Provider: provider?.organization,
    Website: provider?.url && link(provider.url),
    Documentation: card.documentationUrl && link(card.documentationUrl),
    Can: Object.keys(capabilities).filter((name) => capabilities[name] === true).map((name) => name.replace(/[A-Z]/g, (it) => ` ${it.toLowerCase()}`)).join(", "),
    Takes: card.defaultInputModes?.join(", "),
    Gives: card.defaultOutputModes?.join(", "),
    Credentials: Object.keys(securitySchemes).join(", "),
    Interfaces: card.supportedInterfaces?.map((each) => `${each.protocolBinding} ${each.protocolVersion || ""}`).join(", "),
  };
  for (const [name, value] of Object.entries(facts)) if (value) list.append(el("dt", name), el("dd", value));
  return el("aside", { "aria-label": "About the agent" }, el("h2", "About"), el("p.description", card.description), list,
    skills.length ? el("section", el("h2", "Skills"), el("ul.skills", ...skills.map((skill) => skillNode(skill, use)))) : null);
}
function agentPage() {
  const text = el("textarea", { rows: 3, id: fresh("message") }), textField = el("div.field", el("div.label", el("label", { for: text.id }, "Text")), text);
  const data = field("Data", { description: "Goes with the message as a data part." }, {}, false, "");
  const [first, second] = takesText() ? [textField, data.node] : [data.node, textField];
  const more = el("details", el("summary", takesText() ? "Add data" : "Add text"), second), place = el("div");
  const same = el("input", { type: "checkbox", id: fresh("same") }), sameLine = el("span.check", { hidden: true }, same, el("label", { for: same.id }, "Continue the context"));
  let current = null;
  const submit = (event) => {
    event.preventDefault();
    const parts = text.value ? [{ text: text.value }] : [];
    try {
      const written = data.read();
      if (written !== undefined) parts.push({ data: parsed(written) });
    } catch (error) {
      more.open = true;
      return error.input.focus();
    }
    if (!parts.length) {
      announce("Write something to send.");
      return first.querySelector("textarea").focus();
    }
    const contextId = (same.checked && current?.task?.contextId) || undefined, now = current = taskView("h3", (task) => { form.hidden = isWaiting(task) && now === current; again.hidden = !form.hidden; });
    place.replaceChildren(now.node);
    sameLine.hidden = false;
    announce("Sending");
    restart((signal) => now.watch(signal, () => sendMessage(parts, { contextId }, signal)));
  };
  const use = (example, value) => {
    text.value = example;
    if (value) data.write(value);
    (value ? data.input : text).focus();
  };
  // While the agent waits for an answer, there is one box: that of the answer.
  const again = button("plain", "Send another message", () => { again.hidden = true; form.hidden = false; text.focus(); });
  again.hidden = true;
  const form = el("form", { novalidate: true, submit }, first, more, el("div.actions", el("button.primary", "Send"), sameLine));
  const node = el("div.agent", el("section.talk", heading("Send a message"), form, place, again), aboutNode(use));
  return { node, resume: (signal) => isActive(current?.task) ? current.watch(signal) : null };
}
function showAgent(signal) {
  conversation = conversation || agentPage();
  show(conversation.node);
  return conversation.resume(signal);
}
