// What the server asks for: a form for each question to the user or to the model, above every view, until it is answered. The folders are told at once.
const questions = el("section", { id: "questions", "aria-label": "Questions", hidden: true });
main.before(questions);

// Shows a question, and waits for the answer. `read()` gives the result, an error to throw, or null after it has shown what is wrong.
function ask(title, body, actions, signal) {
  return new Promise((done, stop) => {
    const before = document.activeElement;
    const end = (value) => {
      card.remove();
      questions.hidden = !questions.children.length;
      if (card.contains(document.activeElement) || document.activeElement === document.body) before?.focus?.();
      if (value instanceof Error) stop(value); else done(value);
    };
    const buttons = actions.map(([text, read], at) => at ? button("plain", text, () => { const value = read(); if (value !== null) end(value); }) : el("button.primary", text));
    const submit = (event) => {
      event.preventDefault();
      const value = actions[0][1]();
      if (value !== null) end(value);
    };
    const card = el("form.question", { novalidate: true, submit, "aria-label": title }, heading(title, "h2"), ...body, el("div.actions", ...buttons));
    questions.append(card);
    questions.hidden = false;
    announce(title);
    (card.querySelector("input, textarea, select, a") || card.querySelector("h2")).focus();
    signal?.addEventListener("abort", () => end(new DOMException("", "AbortError")), { once: true });
  });
}
function elicit({ mode = "form", message, requestedSchema, url }, signal) {
  const refusals = [["Decline", () => ({ action: "decline" })], ["Cancel", () => ({ action: "cancel" })]];
  if (mode === "url") {
    return ask("The server asks you to open a page", [el("p.text", message), el("p", link(String(url)))], [["I have agreed", () => ({ action: "accept" })], ...refusals], signal);
  }
  const form = schemaForm(requestedSchema || { type: "object" }, requestedSchema || {}, undefined, true);
  const accept = () => {
    const text = form.read();
    return text === null ? null : { action: "accept", content: parsed(text) };
  };
  return ask("The server asks you", [el("p.text", message), form.modes, form.node], [["Answer", accept], ...refusals], signal);
}
function sample({ messages = [], systemPrompt, maxTokens, ...rest }, signal) {
  const said = messages.flatMap(({ role, content }) => [content].flat().map((each) => el("li", el("h4", role), contentNode(each))));
  const text = el("textarea", { rows: 3, id: fresh("answer") }), model = el("input", { type: "text", id: fresh("model"), value: "inspector", autocomplete: "off" });
  const field = (name, input) => el("div.field", el("label", { for: input.id }, name), input);
  const reply = () => ({ role: "assistant", content: { type: "text", text: text.value }, model: model.value, stopReason: "endTurn" });
  const refuse = () => new Failed("-1", "The user has refused.");
  const more = Object.keys(rest).filter((key) => key !== "_meta").length ? el("details", el("summary", "What else it says"), json(JSON.stringify(rest))) : null;
  return ask("The server asks the model", [el("p.muted", dots(maxTokens && `at most ${count(maxTokens, "token")}`)), systemPrompt && el("p.text", systemPrompt), el("ol.messages", ...said), more,
    field("The model's answer", text), field("Model", model)].filter(Boolean), [["Answer", reply], ["Refuse", refuse]], signal);
}
let folders = ""; // URIs of the folders that the client works in: roots
const roots = async () => ({ roots: folders.split(/\s+/).filter(Boolean).map((uri) => ({ uri, name: uri.split("/").filter(Boolean).pop() })) });
const ASKED = { "elicitation/create": elicit, "sampling/createMessage": sample, "roots/list": roots };
listeners.asked = async (method, params, signal) => {
  if (!Object.hasOwn(ASKED, method)) throw new Failed("-32601", "Method not found");
  return ASKED[method](params || {}, signal);
};
