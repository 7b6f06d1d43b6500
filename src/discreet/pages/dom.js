// What the scripts of all pages use. Whatever comes from elsewhere is written as text, never as markup.
const $ = (id) => document.getElementById(id);
function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}
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
const button = (kind, text, click) => el(`button.${kind}`, { type: "button", click }, text);
const dots = (...parts) => parts.flat().filter(Boolean).join(" \u00b7 ");
const count = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
const bytes = (n) => n < 1000 ? count(n, "byte") : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
function took(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${ms.toFixed(1)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(2)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.floor(ms / 1000 % 60)} s`;
}

// JSON, indented. It works on the text, so numbers keep their digits and a cut text is shown as far as it goes.
function* pretty(text) {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g) || [];
  let depth = 0;
  const line = () => "\n" + "\t".repeat(Math.min(depth, 40));
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i], next = tokens[i + 1];
    if (token === "{" || token === "[") {
      if (next === "}" || next === "]") { yield ["mark", token + next]; i++; continue; }
      depth++;
      yield ["mark", token + line()];
    } else if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      yield ["mark", line() + token];
    } else if (token === ",") yield ["mark", "," + line()];
    else if (token === ":") yield ["mark", ": "];
    else yield [token[0] !== '"' ? "other" : next === ":" ? "key" : "string", token];
  }
}
function json(text, cut) {
  const pre = make("pre");
  for (const [className, part] of pretty(text)) pre.append(make("span", className, part));
  if (cut) pre.append(make("span", "mark", "\u2026"));
  return pre;
}
