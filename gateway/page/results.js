// What the server gives: the content of tools and prompts, the contents of resources, structures, and failures.
const MEDIA = /^(image|audio)\/[\w.+-]+$/;
function isStructure(text) {
  if (!/^\s*[{[]/.test(text)) return false;
  try { JSON.parse(text); } catch { return false; }
  return true;
}
const textNode = (text) => isStructure(text) ? shortened(text) : el("p.text", text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\u2026` : text);
function mediaNode(mimeType, data) {
  const [, kind] = MEDIA.exec(mimeType) || [];
  if (!kind || !/^[\w+/=\s-]*$/.test(data)) return el("p.muted", dots(mimeType, bytes(Math.floor(data.length * 3 / 4))));
  const src = `data:${mimeType};base64,${data}`;
  return kind === "image" ? el("img", { src, alt: `An image (${mimeType})` }) : el("audio", { src, controls: true, "aria-label": `A sound (${mimeType})` });
}
const resourceLink = (uri, text = uri) => el("a", { href: `#/resources/${encodeURIComponent(uri)}` }, text);
function contentsNode({ uri, mimeType, text, blob }) {
  const body = text !== undefined ? textNode(String(text)) : mediaNode(String(mimeType), String(blob ?? ""));
  return el("article.contents", el("p.muted", el("code", String(uri)), mimeType ? ` \u00b7 ${mimeType}` : ""), body);
}
function contentNode(block) {
  switch (block?.type) {
    case "text": return textNode(String(block.text));
    case "image": case "audio": return mediaNode(String(block.mimeType), String(block.data));
    case "resource": return contentsNode(block.resource || {});
    case "resource_link": return el("p", resourceLink(String(block.uri), String(block.title || block.name || block.uri)), el("span.muted", ` ${dots(block.mimeType, block.description)}`));
    default: return shortened(JSON.stringify(block));
  }
}
const metaNode = (meta) => meta && Object.keys(meta).length ? el("details", el("summary", "Metadata"), shortened(JSON.stringify(meta))) : null;
// The result of a tool. A text that says what the structure says is shown once.
function toolResult({ content = [], structuredContent, isError, _meta }, ms) {
  const text = content.length === 1 && content[0].type === "text" ? String(content[0].text) : "";
  const same = structuredContent !== undefined && isStructure(text) && JSON.stringify(parsed(text)) === JSON.stringify(structuredContent);
  const parts = same ? [] : content.map(contentNode);
  if (structuredContent !== undefined) parts.push(el("h4", same ? "Structure, and the same as text" : "Structure"), shortened(JSON.stringify(structuredContent)));
  if (!parts.length) parts.push(el("p", "Done. There is no content."));
  const code = isError && structuredContent?.code;
  announce(isError ? `The tool has failed. ${code || ""}` : `Done, after ${took(ms)}`);
  const head = outcomeHead(isError ? code || "The tool has failed" : "Result", isError && "isError", isError && structuredContent?.retryable && "may be tried again", took(ms));
  return [el(isError ? "div.failure" : "div.result", head, ...parts), metaNode(_meta)].filter(Boolean);
}
// Whether what a tool gave fits its output schema, where it has one.
async function checkNode({ outputSchema }, { structuredContent, isError }) {
  if (!outputSchema || isError) return null;
  const wrong = (text) => { announce(text); return el("p.problem", text); };
  if (structuredContent === undefined) return wrong("The tool has an output schema, and gave no structure.");
  try {
    const response = await request("page/check", { method: "POST", body: JSON.stringify({ schema: outputSchema, value: structuredContent }) }), text = await textOf(response);
    if (!response.ok) throw failureOf(text, response);
    const { path, expected, received, unchecked } = parsed(text);
    if (path) return wrong(`The structure does not fit the output schema: at ${path}, expected ${expected}, received ${received}.`);
    return el("p.muted", unchecked ? `The structure was not checked against the output schema: ${unchecked}.` : "The structure fits the output schema.");
  } catch (error) {
    if (error instanceof NeedsToken) throw error;
    return el("p.muted", `The structure was not checked against the output schema: ${error.message}`);
  }
}
const promptMessages = ({ messages = [], description }) => [description && el("p.muted", description),
  el("ol.messages", ...messages.map(({ role, content }) => el("li", el("h4", role), ...[content].flat().map(contentNode))))].filter(Boolean);
