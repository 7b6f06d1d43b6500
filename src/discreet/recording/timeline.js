// The timeline: requests in lanes, those of the client above the axis, those of the server below it.
const lanes = { client: [], server: [] };
for (const row of all) {
  if (row.kind !== "request") continue;
  const ends = lanes[row.from], most = row.from === "client" ? 12 : 5;
  let lane = ends.findIndex((end) => end <= row.ms);
  if (lane < 0) lane = ends.length < most ? ends.length : ends.indexOf(Math.min(...ends));
  ends[lane] = Math.max(ends[lane] || 0, lasts(row) + whole / 400);
  row.lane = lane;
}
function geometry() {
  const { width, height } = canvas.getBoundingClientRect();
  const up = Math.max(1, lanes.client.length), down = lanes.server.length;
  const pitch = Math.min(13, (height - 40) / (up + Math.max(down, .5)));
  const pad = 12, axis = (height - 18 - (up + down) * pitch) / 2 + up * pitch + 1;
  const x = (ms) => pad + (ms - span[0]) / (span[1] - span[0]) * (width - 2 * pad);
  const y = (row) => row.from === "client" ? axis - 4 - (row.lane + 1) * pitch : axis + 4 + row.lane * pitch;
  const time = (px) => span[0] + Math.max(0, Math.min(1, (px - pad) / (width - 2 * pad))) * (span[1] - span[0]);
  return { width, height, pitch, axis, pad, x, y, time };
}
let planned = 0;
function paint() {
  planned = planned || requestAnimationFrame(repaint);
}
function repaint() {
  planned = 0;
  const { width, height, pitch, axis, pad, x, y } = geometry(), ratio = devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(`--${name}`);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.font = `11px ${style.getPropertyValue("--sans")}`;
  const rough = (span[1] - span[0]) / Math.max(2, width / 84), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  for (let t = Math.ceil(span[0] / step) * step; t <= span[1]; t += step) {
    g.fillStyle = colour("line");
    g.fillRect(Math.round(x(t)), 6, 1, height - 24);
    g.fillStyle = colour("muted");
    const text = whole < 1000 ? `${+t.toFixed(3)} ms` : `${+(t / 1000).toFixed(3)} s`;
    g.textAlign = x(t) < 30 ? "left" : x(t) > width - 30 ? "right" : "center";
    g.fillText(text, x(t), height - 6);
  }
  g.fillStyle = colour("line");
  g.fillRect(pad, Math.round(axis), width - 2 * pad, 1);
  const found = messages.shown === all ? null : new Set(messages.shown);
  for (const row of all) {
    if (row.kind === "end" || row.kind === "closed" || lasts(row) < span[0] || row.ms > span[1]) continue;
    g.globalAlpha = !found || found.has(row) ? 1 : .18;
    const left = Math.max(pad, x(row.ms));
    if (row.kind !== "request") {
      g.fillStyle = row.kind === "omitted" ? colour("error-bar") : colour("muted");
      g.fillRect(left - .75, axis - 2, 1.5, 5);
      continue;
    }
    g.fillStyle = colour({ error: "error-bar", cancelled: "warn-bar", waiting: "warn-bar" }[row.status] || `${row.from}-bar`);
    const wide = Math.max(2, Math.min(width - pad, x(lasts(row))) - left), high = Math.max(1, pitch - 3);
    if (row.status === "waiting") g.globalAlpha *= .55;
    if (wide < 5) g.fillRect(left, y(row), wide, high);
    else {
      g.beginPath();
      g.roundRect(left, y(row), wide, high, Math.min(2, high / 2));
      g.fill();
    }
    g.fillStyle = colour("tick");
    for (const event of row.events.slice(0, MAX_TICKS)) if (event[2] >= span[0] && event[2] <= span[1]) g.fillRect(x(event[2]), y(row), 1, high);
    if (row === messages.opened) {
      g.strokeStyle = colour("text");
      g.strokeRect(left - 1.5, y(row) - 1.5, wide + 3, high + 3);
    }
  }
  g.globalAlpha = 1;
}
function under(event) {
  const box = canvas.getBoundingClientRect(), { pitch, x, y } = geometry(), px = event.clientX - box.left, py = event.clientY - box.top;
  let best = null, closest = 7;
  for (const row of messages.shown) {
    if (row.kind !== "request" || py < y(row) - 2 || py > y(row) + pitch) continue;
    const off = Math.max(x(row.ms) - px, px - x(lasts(row)), 0);
    if (off < closest) { closest = off; best = row; }
  }
  return best;
}
let pressed = null;
function brush(event) {
  const left = canvas.getBoundingClientRect().left, a = Math.min(pressed, event.clientX) - left, b = Math.max(pressed, event.clientX) - left;
  $("brush").style.left = `${a}px`;
  $("brush").style.width = `${b - a}px`;
  $("brush").hidden = b - a < 5;
  return [a, b];
}
canvas.addEventListener("pointerdown", (event) => { pressed = event.clientX; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointermove", (event) => {
  const row = pressed === null ? under(event) : null, tip = $("tip");
  tip.hidden = !row;
  if (row) {
    tip.textContent = [row.name, row.id, WORDS[row.status], row.end === null ? "" : took(lasts(row) - row.ms)].filter(Boolean).join("  ");
    tip.style.left = `${Math.max(0, Math.min(event.offsetX, canvas.clientWidth - tip.offsetWidth))}px`;
  }
  if (pressed !== null) brush(event);
});
canvas.addEventListener("pointerup", (event) => {
  if (pressed === null) return;
  const [a, b] = brush(event), { time } = geometry();
  pressed = null;
  $("brush").hidden = true;
  if (b - a >= 5 && time(b) > time(a)) { span = [time(a), time(b)]; apply(); return; }
  const row = under(event);
  if (row) { view("messages"); messages.choose(messages.shown.indexOf(row)); messages.open(); }
});
canvas.addEventListener("pointercancel", () => { pressed = null; $("brush").hidden = true; });
canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
