// Forms for what operations take: one control for each param, or its JSON. A form writes JSON text, so that numbers keep their digits.

// An element: `el("p.muted", { id: "a" }, "text", child)`. What is nothing is left out.
function el(kind, ...rest) {
  const [tag, ...classes] = kind.split("."), node = make(tag, classes.join(" ")), [props] = rest;
  if (props && typeof props === "object" && !(props instanceof Node)) {
    rest.shift();
    for (const [name, value] of Object.entries(props)) {
      if (value === undefined || value === false) continue;
      if (typeof value === "function") node.addEventListener(name, value);
      else if (["className", "value", "href"].includes(name)) node[name] = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(...rest.filter((child) => child || child === 0));
  return node;
}
let ids = 0;
const fresh = (name) => `${name}-${++ids}`;
const button = (kind, text, click) => el(`button.${kind}`, { type: "button", click }, text);

// A schema without its reference, and without null where that is one of two choices.
function plain(schema, root) {
  let found = schema && typeof schema === "object" ? schema : {};
  for (let depth = 0; depth < 50; depth++) {
    const { $ref: ref, anyOf, ...rest } = found;
    if (ref) {
      const target = ref.slice(2).split("/").reduce((at, part) => at?.[part.replace(/~1/g, "/").replace(/~0/g, "~")], root);
      found = { title: ref.split("/").pop(), ...(target && typeof target === "object" ? target : {}), ...rest };
    } else if (anyOf?.length === 2 && anyOf.some((each) => each.type === "null")) {
      found = { ...anyOf.find((each) => each.type !== "null"), ...rest, nullable: true };
    } else if (Array.isArray(found.type) && found.type.length === 2 && found.type.includes("null")) {
      found = { ...found, type: found.type.find((each) => each !== "null"), nullable: true };
    } else return found;
  }
  return {};
}
function typeName(schema, root, depth = 0) {
  if (depth > 4) return "\u2026";
  const found = plain(schema, root), name = (each) => typeName(each, root, depth + 1);
  if (found.enum || "const" in found) return "one of";
  if (found.type === "array") return found.items ? `array of ${name(found.items)}` : "array";
  if (found.type === "object") return schema.$ref ? found.title : "object";
  if (found.anyOf || found.oneOf) return [...new Set((found.anyOf || found.oneOf).map(name))].join(" or ");
  return [found.type || "any JSON"].flat().join(" or ") + (found.format ? ` (${found.format})` : "");
}
function limits(found) {
  const parts = [];
  const add = (key, write) => { if (found[key] !== undefined) parts.push(write(found[key])); };
  add("minimum", (it) => `\u2265 ${it}`);
  add("exclusiveMinimum", (it) => `> ${it}`);
  add("maximum", (it) => `\u2264 ${it}`);
  add("exclusiveMaximum", (it) => `< ${it}`);
  add("multipleOf", (it) => `a multiple of ${it}`);
  add("minLength", (it) => `at least ${count(it, "character")}`);
  add("maxLength", (it) => `at most ${count(it, "character")}`);
  add("pattern", (it) => `like ${it}`);
  add("minItems", (it) => `at least ${count(it, "item")}`);
  add("maxItems", (it) => `at most ${count(it, "item")}`);
  add("default", (it) => `default ${JSON.stringify(it)}`);
  return parts;
}

// Controls by kind: `node`, `read()` to JSON text, undefined for nothing, `write(value)`. `read` throws what is wrong, as a sentence.
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
function checked(text) {
  try { JSON.parse(text); } catch (error) { throw new Error(`This is no JSON. ${error.message.replace(/^JSON\.parse: /, "")}`); }
  return text;
}
function areaFor(attributes, rows) {
  const node = el("textarea.code", { rows, spellcheck: "false", autocomplete: "off", ...attributes });
  return { node, read: () => node.value.trim() ? checked(node.value.trim()) : undefined, write: (value) => { node.value = JSON.stringify(value, null, 2); } };
}
function control(found, required, attributes) {
  const values = found.enum || ("const" in found ? [found.const] : found.type === "boolean" ? [true, false] : null);
  const example = found.examples?.[0];
  if (values && values.every((value) => value === null || typeof value !== "object")) {
    const options = found.nullable && !values.includes(null) ? [...values, null] : values;
    const texts = options.map((value) => typeof value === "string" ? value : JSON.stringify(value));
    const node = el("select", attributes, ...(required ? [] : [el("option", { value: "" }, "not set")]),
      ...options.map((value, at) => el("option", { value: JSON.stringify(value) }, texts[at])));
    return { node, read: () => node.value || undefined, write: (value) => { node.value = JSON.stringify(value); } };
  }
  const simple = ["string", "integer", "number"].includes(found.type) && !(found.nullable && required);
  if (!simple) return areaFor({ ...attributes, placeholder: example === undefined ? undefined : JSON.stringify(example) }, 3);
  const text = found.type === "string";
  const node = el("input", { type: "text", autocomplete: "off", spellcheck: "false", inputmode: text ? undefined : "decimal", placeholder: example === undefined ? undefined : text ? example : JSON.stringify(example), ...attributes });
  const read = () => {
    if (text) return node.value || required ? JSON.stringify(node.value) : undefined;
    const value = node.value.trim();
    if (value && !NUMBER.test(value)) throw new Error(`Write ${found.type === "integer" ? "an integer" : "a number"}, such as 10.`);
    return value || undefined;
  };
  return { node, read, write: (value) => { node.value = value === null ? "" : text ? value : JSON.stringify(value); } };
}

// What stands in this control is wrong, and is marked as such.
class Wrong extends Error {
  constructor(input) { super("wrong"); this.input = input; }
}
// One labelled control. `fail(text)` shows what is wrong with it, until it is edited.
function field(name, schema, root, required, code = true) {
  const found = plain(schema, root), id = fresh("field");
  const made = control(found, required, { id, "aria-required": required ? "true" : undefined });
  const hint = [typeName(schema, root), ...limits(found), required ? "required" : ""].filter(Boolean).join(" \u00b7 ");
  const problem = el("p.problem", { id: `${id}-problem`, hidden: true });
  const described = found.description && el("p.muted", { id: `${id}-text` }, String(found.description));
  made.node.setAttribute("aria-describedby", [`${id}-hint`, described && `${id}-text`, `${id}-problem`].filter(Boolean).join(" "));
  const fail = (text) => {
    problem.textContent = text;
    problem.hidden = !text;
    if (text) made.node.setAttribute("aria-invalid", "true");
    else made.node.removeAttribute("aria-invalid");
  };
  made.node.addEventListener("input", () => fail(""));
  const node = el("div.field",
    el("div.label", el("label", { for: id, className: code ? "name" : "" }, name), el("span.muted", { id: `${id}-hint` }, hint)),
    made.node, described, problem);
  const read = () => {
    try {
      const text = made.read();
      if (text === undefined && required) throw new Error("This is required.");
      return text;
    } catch (error) {
      fail(error.message);
      throw new Wrong(made.node);
    }
  };
  return { name, node, input: made.node, read, write: made.write, fail };
}

// The form of an input. `read()` is its JSON text, or null after it has shown what is wrong and moved the focus there.
function schemaForm(schema, root, example) {
  const found = plain(schema, root), required = new Set(found.required || []);
  const named = found.type === "object" && found.properties ? Object.entries(found.properties) : [];
  const fields = named.map(([name, each]) => field(name, each, root, required.has(name)));
  const whole = field("Params", { type: "object", description: "The params as one JSON text.", examples: example === undefined ? undefined : [example] }, root, false, false);
  const nothing = found.type === "object" && !named.length && found.additionalProperties === false;
  const simple = fields.length > 0;
  let asJson = !simple, more = {};
  const box = el("div.fields", ...fields.map((each) => each.node));
  whole.node.hidden = simple || nothing;
  whole.input.rows = 8;
  box.hidden = !simple;
  const fromFields = () => {
    const wrong = [], parts = Object.entries(more).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    for (const each of fields) {
      try {
        const text = each.read();
        if (text !== undefined) parts.push(`${JSON.stringify(each.name)}:${text}`);
      } catch (error) { wrong.push(error); }
    }
    if (wrong.length) throw wrong[0];
    return `{${parts.join(",")}}`;
  };
  const toggle = (json) => {
    if (json === asJson) return;
    try {
      if (json) {
        const filled = fields.some((each) => each.input.value);
        whole.input.value = filled ? JSON.stringify(parsed(fromFields()), null, 2) : JSON.stringify(example ?? {}, null, 2);
        whole.fail("");
      } else {
        const value = parsed(whole.read() || "{}");
        if (!value || typeof value !== "object" || Array.isArray(value)) {
          whole.fail("Params have names: write a JSON object.");
          throw new Wrong(whole.input);
        }
        more = { ...value };
        for (const each of fields) {
          if (each.name in value) each.write(value[each.name]); else each.input.value = "";
          each.fail("");
          delete more[each.name];
        }
      }
    } catch (error) { return error.input.focus(); }
    asJson = json;
    whole.node.hidden = !json;
    box.hidden = json;
    press();
  };
  const modes = el("div.modes", { role: "group", "aria-label": "Params as" }, ...["Form", "JSON"].map((text) => button("mode", text, () => toggle(text === "JSON"))));
  const press = () => { for (const each of modes.children) each.setAttribute("aria-pressed", String((each.textContent === "JSON") === asJson)); };
  press();
  const read = () => {
    try {
      return asJson ? whole.read() || "{}" : fromFields();
    } catch (error) {
      error.input.focus();
      return null;
    }
  };
  // Shows what the daemon says of one param, at its control.
  const fail = (param, text) => {
    const each = asJson ? whole : fields.find(({ name }) => name === String(param).split(/[.[]/)[0]);
    if (each) { each.fail(text); each.input.focus(); }
  };
  return { modes: simple ? modes : null, node: el("div", nothing ? el("p.muted", "It takes no params.") : null, box, whole.node), read, fail };
}
// Ctrl+Enter sends a form from a text of several lines.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) event.target.form.requestSubmit();
});
