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
const heading = (text, kind = "h2") => el(kind, { tabindex: "-1" }, text);
const dots = (...parts) => parts.flat().filter(Boolean).join(" \u00b7 ");

// `date-time` with a time zone is also that without one: a field writes its own.
const timeFormat = ({ type, format = "" }) => type === "string" && /^(date-)?time(-local)?$/.test(format) && format.replace("-local", "");
// A schema without its reference, and without null where that is one of two choices.
function plain(schema, root) {
  let found = schema && typeof schema === "object" ? schema : {};
  for (let depth = 0; depth < 50; depth++) {
    const { $ref: ref, anyOf, type, ...rest } = found;
    if (ref) {
      const target = ref.slice(2).split("/").reduce((at, part) => at?.[part.replace(/~1/g, "/").replace(/~0/g, "~")], root);
      found = { title: ref.split("/").pop(), ...(typeof target === "object" ? target : {}), ...rest };
    } else if (anyOf && anyOf.every((each) => each.type === "null" || timeFormat(each))) {
      found = { ...rest, type: "string", format: timeFormat(anyOf[0]), nullable: anyOf.some((each) => each.type === "null") };
    } else if (anyOf?.length === 2 && anyOf.some((each) => each.type === "null")) {
      found = { ...anyOf.find((each) => each.type !== "null"), ...rest, nullable: true };
    } else if (Array.isArray(type) && type.length === 2 && type.includes("null")) {
      found = { ...rest, type: type.find((each) => each !== "null"), nullable: true };
    } else return found;
  }
  return {};
}
function typeName(schema, root, depth = 0) {
  const found = plain(schema, root), name = (each) => depth > 4 ? "\u2026" : typeName(each, root, depth + 1);
  if (found.type === "array") return found.items ? `array of ${name(found.items)}` : "array";
  if (found.type === "object") return schema.$ref ? found.title : "object";
  if (found.anyOf || found.oneOf) return [...new Set((found.anyOf || found.oneOf).map(name))].join(" or ");
  if (found.enum) return `one of ${found.enum.length}`;
  return [found.type || "any JSON"].flat().join(" or ") + (found.format ? ` (${found.format})` : "");
}
const LIMITS = { minimum: "\u2265 #", exclusiveMinimum: "> #", maximum: "\u2264 #", exclusiveMaximum: "< #", multipleOf: "a multiple of #", minLength: "length \u2265 #",
  maxLength: "length \u2264 #", pattern: "like #", minItems: "items \u2265 #", maxItems: "items \u2264 #", default: "default #" };
const limits = (found) => Object.entries(LIMITS).filter(([key]) => found[key] !== undefined)
  .map(([key, words]) => words.replace("#", () => key === "pattern" ? found[key] : JSON.stringify(found[key])));

// What stands in this control is wrong, and is marked as such.
class Wrong extends Error {
  constructor(input) { super("wrong"); this.input = input; }
}
// Fields for points in time, by format: the kind of input, and the text that stands for its value. Seconds may not be left out.
const CLOCKS = { date: ["date"], "date-time": ["datetime-local", offset], "date-time-local": ["datetime-local"], time: ["time", () => offset(new Date())], "time-local": ["time"] };
function offset(value) {
  const minutes = -new Date(value).getTimezoneOffset(), two = (n) => String(Math.trunc(Math.abs(n))).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}
function clockControl([type, zone = () => ""], required, attributes) {
  const node = el("input", { type, step: type === "date" ? undefined : 1, ...attributes });
  const read = () => {
    if (node.validity.badInput) throw new Error("This is not complete.");
    const { value } = node;
    return value ? JSON.stringify(`${value}${/(^|T)\d\d:\d\d$/.test(value) ? ":00" : ""}${zone(value)}`) : undefined;
  };
  const write = (value) => {
    const text = String(value ?? ""), time = new Date(text), zoned = type === "datetime-local" && /(Z|[-+]\d\d:?\d\d)$/i.test(text) && !Number.isNaN(time.getTime());
    node.value = zoned ? new Date(time - time.getTimezoneOffset() * 60000).toISOString().slice(0, 19) : text.replace(/(Z|[-+]\d\d:?\d\d)$/i, "");
  };
  return { node, read, write };
}
// Controls by kind: `node`, `read()` to JSON text, undefined for nothing, `write(value)`. `read` throws what is wrong, as a sentence.
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
function control(found, required, attributes) {
  const values = found.enum || ("const" in found ? [found.const] : found.type === "boolean" ? [true, false] : []), example = found.examples?.[0];
  if (values.length && values.every((value) => value === null || typeof value !== "object")) {
    const all = found.nullable && !values.includes(null) ? [...values, null] : values;
    const node = el("select", attributes, required ? null : el("option", { value: "" }, "not set"),
      ...all.map((value) => el("option", { value: JSON.stringify(value) }, typeof value === "string" ? value : JSON.stringify(value))));
    return { node, read: () => node.value || undefined, write: (value) => { node.value = JSON.stringify(value); } };
  }
  if (found.type === "string" && CLOCKS[found.format] && !(found.nullable && required)) return clockControl(CLOCKS[found.format], required, attributes);
  const text = found.type === "string", simple = (text || ["integer", "number"].includes(found.type)) && !(found.nullable && required);
  const placeholder = example === undefined ? undefined : simple && text ? String(example) : JSON.stringify(example);
  const all = { autocomplete: "off", spellcheck: "false", placeholder, ...attributes };
  if (!simple) {
    const node = el("textarea.code", { rows: 2, ...all });
    const read = () => {
      const written = node.value.trim();
      try { if (written) JSON.parse(written); } catch (error) { throw new Error(`This is no JSON. ${error.message}`); }
      return written || undefined;
    };
    return { node, read, asJson: true, write: (value) => { node.value = JSON.stringify(value, null, 2); } };
  }
  const node = el("input", { type: "text", inputmode: text ? undefined : "decimal", ...all });
  const read = () => {
    if (text) return node.value || required ? JSON.stringify(node.value) : undefined;
    const value = node.value.trim();
    if (value && !NUMBER.test(value)) throw new Error(`Write ${found.type === "integer" ? "an integer" : "a number"}, such as 10.`);
    return value || undefined;
  };
  return { node, read, write: (value) => { node.value = value === null ? "" : text ? value : JSON.stringify(value); } };
}

// One labelled control. `read` marks what is wrong with it. `fail(text)` shows what is, until it is edited.
function field(name, schema, root, required, code = ".name") {
  const found = plain(schema, root), type = typeName(schema, root), id = fresh("field");
  const { node: input, read, write, asJson } = control(found, required, { id, "aria-required": required && "true" });
  const problem = el("p.problem", { id: `${id}-problem`, hidden: true });
  const described = found.description && el("p.muted", { id: `${id}-text` }, String(found.description));
  input.setAttribute("aria-describedby", `${id}-hint ${id}-problem${described ? ` ${id}-text` : ""}`);
  const fail = (text) => {
    problem.textContent = text;
    problem.hidden = !text;
    input.setAttribute("aria-invalid", String(Boolean(text)));
  };
  input.addEventListener("input", () => fail(""));
  const node = el("div.field",
    el("div.label", el(`label${code}`, { for: id }, name), el("span.muted", { id: `${id}-hint` }, dots(type.includes("JSON") || !asJson ? type : `${type} as JSON`, limits(found), required && "required"))),
    input, described, problem);
  return { name, node, input, write, fail, read: () => {
    try {
      const text = read();
      if (text === undefined && required) throw new Error("This is required.");
      fail("");
      return text;
    } catch (error) {
      fail(error.message);
      throw new Wrong(input);
    }
  } };
}

// The form of an input. `read()` is its JSON text, or null after it has shown what is wrong and moved the focus there.
function schemaForm(schema, root, example) {
  const found = plain(schema, root), required = found.required || [];
  const fields = found.type === "object" ? Object.entries(found.properties || {}).map(([name, each]) => field(name, each, root, required.includes(name))) : [];
  const whole = field("Params", { description: "The params as one JSON text.", examples: example === undefined ? [] : [example] }, root, false, "");
  const nothing = found.type === "object" && !fields.length && found.additionalProperties === false;
  const box = el("div", ...fields.map((each) => each.node));
  let asJson = !fields.length, more = {};
  whole.node.hidden = !asJson || nothing;
  whole.input.rows = 8;
  // With `faults` what is wrong is taken as it was written, and what is missing is left out.
  const fromFields = (faults = false) => {
    const parts = Object.entries(more).map((each) => each.map((it) => JSON.stringify(it)).join(":"));
    let wrong;
    for (const each of fields) {
      try {
        const text = each.read();
        if (text !== undefined) parts.push(`${JSON.stringify(each.name)}:${text}`);
      } catch (error) {
        wrong = wrong || error;
        if (each.input.value) parts.push(`${JSON.stringify(each.name)}:${JSON.stringify(each.input.value)}`);
      }
    }
    if (wrong && !faults) throw wrong;
    return `{${parts.join(",")}}`;
  };
  const write = (value) => {
    if (!value || typeof value !== "object" || Array.isArray(value)) {
      whole.fail("Params have names: write a JSON object.");
      throw new Wrong(whole.input);
    }
    more = { ...value };
    for (const { name, input, write: put, fail } of fields) {
      if (name in value) put(value[name]); else input.value = "";
      fail("");
      delete more[name];
    }
  };
  const toggle = (json) => {
    if (json === asJson) return;
    try {
      if (json) whole.write(fields.some(({ input }) => input.value) ? parsed(fromFields(true)) : example ?? {});
      else write(parsed(whole.read() || "{}"));
    } catch (error) { return error.input.focus(); }
    asJson = json;
    whole.node.hidden = !json;
    box.hidden = json;
    press();
  };
  const modes = el("div.modes", { role: "group", "aria-label": "Params as" }, ...["Form", "JSON"].map((text) => button("mode", text, () => toggle(text === "JSON"))));
  const press = () => { for (const each of modes.children) if (each.textContent !== "Example") each.setAttribute("aria-pressed", String((each.textContent === "JSON") === asJson)); };
  press();
  // The example of the document, in whichever form is shown.
  const fill = () => { if (asJson) whole.write(example); else write(example); whole.fail(""); };
  if (fields.length && example !== undefined) modes.append(button("mode", "Example", fill));
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
  return { modes: fields.length ? modes : null, node: el("div", nothing ? el("p.muted", "It takes no params.") : null, box, whole.node), read, fail };
}
// Ctrl+Enter sends a form from a text of several lines.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) event.target.form.requestSubmit();
});
