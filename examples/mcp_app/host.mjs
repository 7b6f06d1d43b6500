// A host without a screen: runs the script of a page, speaks the protocol of MCP Apps with it, and prints what it does.
//   node host.mjs sales.html MESSAGES
// MESSAGES is a JSON array: what the host sends once the page is ready, answers to `tools/call` by the name of the tool,
// and `{"click": "North"}` for a button. Each line that is printed is a message of the page, or what it shows at the end.
import { readFileSync } from "node:fs";
import vm from "node:vm";

class Element {
  constructor(name) {
    this.name = name;
    this.textContent = "";
    this.children = [];
    this.attributes = {};
    this.listeners = {};
    this.properties = {};
    this.style = { setProperty: (name, value) => { this.properties[name] = value; } };
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener(name, listener) { this.listeners[name] = listener; }
  getBoundingClientRect() { return { width: 399.5, height: 200 }; }
  find(test) {
    return [this, ...this.children.flatMap((child) => child.find(() => true))].filter(test);
  }
}

const [page, messages] = process.argv.slice(2);
const script = /<script>(.*)<\/script>/s.exec(readFileSync(page, "utf8"))[1];
const steps = JSON.parse(messages);
const byId = {};
const root = new Element("html");
const document = {
  documentElement: root,
  createElement: (name) => new Element(name),
  createElementNS: (_, name) => new Element(name),
  getElementById: (id) => (byId[id] ??= new Element(id)),
};
const sent = [];
const host = { postMessage: (message) => sent.push(message) };
let listener;
const window = { parent: host, addEventListener: (_, given) => { listener = given; } };
class ResizeObserver {
  constructor(changed) { this.changed = changed; }
  observe() { this.changed(); }
}
vm.runInNewContext(script, { window, document, ResizeObserver });

const tools = Object.assign({}, ...steps.filter((step) => step.answers).map((step) => step.answers));
const settle = () => new Promise(setImmediate);
async function take() {
  for (await settle(); sent.length; await settle()) {
    const message = sent.shift();
    console.log(JSON.stringify(message));
    if (message.method === "ui/initialize") {
      const hostContext = { theme: "dark", styles: { variables: { "--color-text-info": "red" } } };
      const hostInfo = { name: "host", version: "1" };
      tell({ id: message.id, result: { protocolVersion: "2026-01-26", hostCapabilities: { serverTools: {} }, hostInfo, hostContext } });
    } else if (message.method === "tools/call") {
      tell({ id: message.id, ...tools[message.params.name] });
    }
  }
}
const tell = (message, source = host) => listener({ source, data: { jsonrpc: "2.0", ...message } });

await take();
for (const step of steps) {
  if (step.send) tell(step.send, step.stranger ? {} : host);
  if (step.click) byId.regions.find((each) => each.textContent === step.click)[0].listeners.click();
  await take();
}
const texts = (id) => (byId[id] ?? root).find((each) => each.textContent).map((each) => each.textContent);
console.log(JSON.stringify({ status: texts("status"), regions: texts("regions"), chart: texts("chart"), style: root.properties }));
