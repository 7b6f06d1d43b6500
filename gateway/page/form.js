// Forms for what operations take: one control for each param, or its JSON. A form writes JSON text, so that numbers keep their digits.

let ids = 0;
const fresh = (name) => `${name}-${++ids}`;
const heading = (text, kind = "h2") => el(kind, { tabindex: "-1" }, text);

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
const choicesOf = ({ oneOf, anyOf, enum: values, enumNames }) => {
  const each = oneOf || anyOf;
  if (each?.length && each.every((it) => it && "const" in it)) return each.map((it) => [it.const, it.title]);
  return values?.map((value, at) => [value, enumNames?.[at]]);
};
const optionFor = ([value, title]) => el("option", { value: JSON.stringify(value) }, title ?? (typeof value === "string" ? value : JSON.stringify(value)));
// Several of a few values.
function severalControl(choices, required, attributes) {
  const node = el("select", { multiple: true, size: Math.min(8, choices.length), ...attributes }, ...choices.map(optionFor));
  const read = () => {
    const chosen = [...node.selectedOptions].map((each) => each.value);
    return chosen.length || required ? `[${chosen.join(",")}]` : undefined;
  };
  return { node, read, write: (values) => { for (const each of node.options) each.selected = [values].flat().some((value) => JSON.stringify(value) === each.value); } };
}
function control(found, required, attributes, depth = 0) {
  const several = found.type === "array" && choicesOf(found.items || {});
  if (several) return severalControl(several, required, attributes);
  const choices = choicesOf(found);
  const titles = new Map(choices), values = choices ? choices.map(([value]) => value) : "const" in found ? [found.const] : found.type === "boolean" ? [true, false] : [], example = found.examples?.[0];
  if (values.length && values.every((value) => value === null || typeof value !== "object")) {
    const all = found.nullable && !values.includes(null) ? [...values, null] : values;
    const node = el("select", attributes, required && !depth ? null : el("option", { value: "" }, "not set"),
      ...all.map((value) => optionFor([value, titles.get(value)])));
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
  return { node, read, write: (value) => { node.value = value === null ? "" : text || typeof value === "string" ? value : JSON.stringify(value); } };
}

// One labelled control, or several for what has parts. `read` marks what is wrong with it. `fail(text, path)` shows what is, until it is
// edited. `rough()` is what stands there, right or wrong.
function field(name, schema, root, required, code = ".name", label = name, depth = 0) {
  const found = plain(schema, root), type = typeName(schema, root), id = fresh("field");
  const problem = el("p.problem", { id: `${id}-problem`, hidden: true });
  const described = found.description && el("p.muted", { id: `${id}-text` }, String(found.description));
  const hint = (...more) => el("span.muted", { id: `${id}-hint` }, dots(type, ...more, limits(found), required && "required"));
  const parts = found.nullable && required ? null : partsOf(found, root, depth, label);
  const made = parts ? { ...parts(), parts: true } : control(found, required, { id, "aria-required": required && "true" }, depth);
  const { node: input, asJson } = made;
  const fail = (text, path = []) => {
    if (path.length && made.fail?.(text, path)) return;
    problem.textContent = text;
    problem.hidden = !text;
    if (!made.parts) input.setAttribute("aria-invalid", String(Boolean(text)));
    if (text) (made.first?.() || input).focus();
  };
  const about = `${id}-hint ${id}-problem${described ? ` ${id}-text` : ""}`;
  input.addEventListener("input", () => fail(""));
  let node;
  if (made.parts) {
    node = el("fieldset.field", { "aria-describedby": about }, el("legend.label", el("span.name", label), hint()), described, input, problem);
  } else {
    input.setAttribute("aria-describedby", about);
    node = el("div.field", el("div.label", el(`label${code}`, { for: id }, label), hint(asJson && !type.includes("JSON") && "as JSON")), input, described, problem);
  }
  const isEmpty = made.isEmpty || (() => !input.value);
  const read = () => {
    try {
      const text = required || !isEmpty() ? made.read() : undefined;
      if (text === undefined && required) throw new Error("This is required.");
      fail("");
      return text;
    } catch (error) {
      if (error instanceof Wrong) throw error;
      problem.textContent = error.message;
      problem.hidden = false;
      if (!made.parts) input.setAttribute("aria-invalid", "true");
      throw new Wrong(made.first?.() || input);
    }
  };
  const clear = made.clear || (() => { input.value = ""; });
  return { name, node, input: made.first?.() || input, write: made.write, fail, read, isEmpty, clear, rough: made.rough || (() => input.value ? JSON.stringify(input.value) : undefined) };
}
// The object that these fields stand for, with the members `more`. With `faults` what is wrong is taken as it was written, and what is
// missing is left out.
function composed(fields, more, faults) {
  const parts = Object.entries(more).map((each) => each.map((it) => JSON.stringify(it)).join(":"));
  let wrong;
  for (const each of fields) {
    let text;
    try {
      text = each.read();
    } catch (error) {
      wrong = wrong || error;
      text = each.rough();
    }
    if (text !== undefined) parts.push(`${JSON.stringify(each.name)}:${text}`);
  }
  if (wrong && !faults) throw wrong;
  return `{${parts.join(",")}}`;
}
// Puts the members of an object into its fields. Returns the others.
function spread(fields, value) {
  const more = { ...value };
  for (const { name, write, clear, fail } of fields) {
    if (name in more) write(more[name]); else clear();
    fail("");
    delete more[name];
  }
  return more;
}
// What makes the controls of something with parts: an object of known members, or an array. Other shapes, and what is deeper, are JSON.
const MAX_DEPTH = 3, MAX_ITEMS = 200;
function partsOf(found, root, depth, label) {
  if (depth >= MAX_DEPTH) return null;
  if (found.type === "object") return Object.keys(found.properties || {}).length ? () => objectParts(found, root, depth) : null;
  const item = found.type === "array" && found.items && !choicesOf(found.items) && plain(found.items, root);
  return item && (item.type === "object" ? partsOf(item, root, depth + 1) : ["string", "integer", "number", "boolean"].includes(item.type)) ? () => arrayParts(found, root, depth, label) : null;
}
function objectParts(found, root, depth) {
  const required = found.required || [];
  const fields = Object.entries(found.properties).map(([name, each]) => field(name, each, root, required.includes(name), ".name", name, depth + 1));
  let more = {};
  const isEmpty = () => fields.every((each) => each.isEmpty()) && !Object.keys(more).length;
  return {
    node: el("div.parts", ...fields.map((each) => each.node)),
    first: () => fields[0].input,
    isEmpty,
    read: () => isEmpty() && required.length ? undefined : composed(fields, more),
    rough: () => composed(fields, more, true),
    write: (value) => { more = spread(fields, value && typeof value === "object" && !Array.isArray(value) ? value : {}); },
    clear: () => { more = spread(fields, {}); },
    fail: (text, [name, ...rest]) => {
      const each = fields.find((it) => it.name === name);
      each?.fail(text, rest);
      return Boolean(each);
    },
  };
}
function arrayParts(found, root, depth, label) {
  const items = [], box = el("div.parts");
  const add = (value) => {
    if (items.length >= MAX_ITEMS) return null;
    const one = field(String(items.length), found.items, root, true, ".name", `${label} ${items.length + 1}`, depth + 1);
    const row = el("div.item", one.node, button("plain", "Remove", () => {
      items.splice(items.findIndex((each) => each.one === one), 1);
      row.remove();
      items.forEach((each, at) => { each.row.querySelector(".name").textContent = `${label} ${at + 1}`; });
      more.focus();
    }));
    if (value !== undefined) one.write(value);
    items.push({ one, row });
    box.insertBefore(row, more);
    return one;
  };
  const more = button("plain", "Add one", () => add()?.input.focus());
  more.setAttribute("aria-label", `Add one to ${label}`);
  box.append(more);
  const clear = () => { for (const { row } of items.splice(0)) row.remove(); };
  const all = (read) => `[${items.map(({ one }) => read(one) ?? "null").join(",")}]`;
  return {
    node: box,
    first: () => items[0]?.one.input || more,
    isEmpty: () => !items.length,
    read: () => all((one) => one.read()),
    rough: () => all((one) => one.rough()),
    write: (value) => {
      clear();
      for (const each of Array.isArray(value) ? value : []) add(each);
    },
    clear,
    fail: (text, [at, ...rest]) => {
      items[at]?.one.fail(text, rest);
      return Boolean(items[at]);
    },
  };
}

// The form of an input. `read()` is its JSON text, or null after it has shown what is wrong and moved the focus there. One that is for
// `people` begins with the defaults, and calls its fields by their titles. `draft()` is what stands there, for `restore(draft)`.
function schemaForm(schema, root, example, people = false) {
  const found = plain(schema, root), required = found.required || [];
  const fields = found.type === "object" ? Object.entries(found.properties || {}).map(([name, each]) =>
    field(name, each, root, required.includes(name), ".name", people && each?.title || name)) : [];
  const whole = field("Params", { description: "The params as one JSON text.", examples: example === undefined ? [] : [example] }, root, false, "");
  const nothing = found.type === "object" && !fields.length && found.additionalProperties === false;
  const box = el("div", ...fields.map((each) => each.node));
  let asJson = !fields.length, more = {};
  whole.node.hidden = !asJson || nothing;
  whole.input.rows = 8;
  const fromFields = (faults = false) => composed(fields, more, faults);
  const write = (value) => {
    if (!value || typeof value !== "object" || Array.isArray(value)) {
      whole.fail("Params have names: write a JSON object.");
      throw new Wrong(whole.input);
    }
    more = spread(fields, value);
  };
  const toggle = (json) => {
    if (json === asJson) return;
    try {
      if (json) whole.write(fields.some((each) => !each.isEmpty()) ? parsed(fromFields(true)) : example ?? {});
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
    const [first, ...rest] = String(param).split(/[.[\]]+/).filter(Boolean);
    const each = asJson ? whole : fields.find(({ name }) => name === first);
    each?.fail(text, asJson ? [] : rest);
  };
  if (people) for (const { name, write: put } of fields) if (found.properties[name]?.default !== undefined) put(found.properties[name].default);
  const draft = () => asJson ? { text: whole.input.value } : { value: parsed(fromFields(true)) };
  const restore = ({ text, value = {} }) => {
    if (text !== undefined) {
      toggle(true);
      whole.input.value = text;
    } else if (fields.length) write(Object.fromEntries(Object.entries(value).filter(([name]) => fields.some((each) => each.name === name))));
  };
  return { fields, draft, restore, modes: fields.length ? modes : null, node: el("div", nothing ? el("p.muted", "It takes no params.") : null, box, whole.node), read, fail };
}
// Ctrl+Enter sends a form from a text of several lines.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) event.target.form.requestSubmit();
});
