import { at, h, keeping, put, s, setText } from "./dom.js";
import { every, getJson } from "./live.js";
import { bytes, clock, compact, HEALTH, HEALTH_ORDER, number, plural, span } from "./words.js";

const cards = new Map();
const rows = new Map();
const view = { search: "", health: new Set(), extra: new Set(), sort: "attention", down: false };
const SOON = 86400000;
let revision = 0;
let began = 0;
let interval = 5000;
let skew = 0;
let asksLag = false;

const EXTRAS = {
  flight: ["In flight", (c) => c.in_flight_batch !== null || Boolean(c.dstreams && c.dstreams.pending)],
  behind: ["Behind", (c) => (c.lag.records || 0) > 0],
  findings: ["With findings", (c) => c.findings && c.findings.error + c.findings.warning > 0],
};
const RANK = Object.fromEntries(HEALTH_ORDER.map((name, index) => [name, index]));
const SORTS = {
  attention: (c) => [c.findings && c.findings.error ? Math.min(RANK[c.health], 0.5) : RANK[c.health], -(c.findings ? c.findings.error * 1000 + c.findings.warning : 0), c.name],
  name: (c) => [c.name],
  commit: (c) => [-(c.last_commit_ms || 0), c.name],
  rate: (c) => [-(c.batches_per_minute || 0), c.name],
  lag: (c) => [-(c.lag.records ?? -1), c.name],
  state: (c) => [-(c.state_bytes || 0), c.name],
  findings: (c) => [-(c.findings ? c.findings.error * 1e6 + c.findings.warning * 1e3 + c.findings.advice : 0), c.name],
};

function compare(one, other) {
  for (let i = 0; i < one.length; i += 1) {
    if (one[i] < other[i]) return -1;
    if (one[i] > other[i]) return 1;
  }
  return 0;
}

async function refresh() {
  const { body } = await getJson(`/api/fleet?since=${revision}`);
  if (began && body.began_ms !== began) { revision = 0; began = 0; cards.clear(); rows.clear(); return refresh(); }
  began = body.began_ms;
  interval = body.interval_ms;
  skew = body.now_ms - Date.now();
  asksLag = body.asks_lag;
  for (const card of body.cards) { cards.set(card.id, card); rows.delete(card.id); }
  for (const id of body.gone) { cards.delete(id); rows.delete(id); }
  const first = revision === 0;
  revision = body.revision;
  drawRoots(body.roots);
  if (first || body.cards.length || body.gone.length) draw();
  return undefined;
}

function drawRoots(roots) {
  put(at("roots"), roots.filter((r) => r.problem).map((r) => h("p", { class: "notice bad" }, h("strong", {}, r.path), " ", r.problem)),
    roots.filter((r) => r.passed_over).map((r) => h("p", { class: "notice" }, h("strong", {}, r.path), ` ${plural(r.passed_over, "name")} below it ${r.passed_over === 1 ? "is" : "are"} not followed: ${r.passed_over_first}`)));
}

function shown(card) {
  if (view.health.size && !view.health.has(card.health)) return false;
  for (const name of view.extra) if (!EXTRAS[name][1](card)) return false;
  if (!view.search) return true;
  const text = `${card.name} ${card.path} ${card.query_id || ""} ${card.sources.join(" ")} ${card.dstreams ? "dstreams" : ""}`.toLowerCase();
  return view.search.split(/\s+/).every((word) => text.includes(word));
}

function draw() {
  keeping(at("content"), drawAll);
}

function drawAll() {
  drawSummary();
  drawFilters();
  const key = SORTS[view.sort];
  const found = [...cards.values()].filter(shown).map((card) => [key(card), card]);
  found.sort((a, b) => compare(a[0], b[0]));
  if (view.down) found.reverse();
  const body = document.createDocumentFragment();
  const groups = new Map();
  for (const [, card] of found) {
    const name = card.group || "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(card);
  }
  for (const [group, members] of groups) {
    if (group) {
      body.append(h("tr", { class: "group" }, h("th", { colspan: 7, scope: "colgroup" },
        h("span", { class: "group-tag" }, "pipeline"), " ", group, " ", h("span", { class: "dim" }, plural(members.length, "flow")))));
    }
    for (const card of members) body.append(rowOf(card));
  }
  at("rows").replaceChildren(body);
  for (const head of document.querySelectorAll("th[data-sort]")) {
    const mine = head.dataset.sort === view.sort;
    if (mine) head.setAttribute("aria-sort", view.down ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
  at("sort").value = view.sort;
  const none = at("none");
  none.hidden = found.length > 0;
  at("table-frame").hidden = found.length === 0;
  setText(none, cards.size ? "No stream fits this search." : "No checkpoint was found below the roots yet.");
  tick();
}

function rowOf(card) {
  if (!rows.has(card.id)) rows.set(card.id, makeRow(card));
  return rows.get(card.id);
}

function makeRow(card) {
  return h("tr", { class: "stream", data: { health: card.health, id: card.id } },
    h("td", { class: "who" }, h("div", { class: "who-line" },
      h("span", { class: "dot", "aria-hidden": "true" }),
      h("div", { class: "who-words" },
        h("a", { class: "name", href: `/checkpoints/${card.id}` }, card.name),
        h("span", { class: "sub" },
          h("span", { class: "pill small", data: { health: card.health } }, card.health === "unknown" && !card.problem ? "Reading…" : HEALTH[card.health]),
          card.sources.map((kind) => h("span", { class: "tag" }, kind)),
          card.in_flight_batch !== null ? h("span", { class: "tag flight" }, `batch ${number(card.in_flight_batch)} in flight`) : null,
          card.dstreams ? h("span", { class: "tag" }, "DStreams") : null,
          card.dstreams && card.dstreams.pending ? h("span", { class: "tag flight" }, `${plural(card.dstreams.pending, "batch", "batches")} pending`) : null,
          card.superseded ? h("span", { class: "tag" }, "superseded") : null,
          card.problem ? h("span", { class: "why" }, card.problem) : null)))),
    h("td", { class: "commit", "data-label": "Last commit" },
      card.last_commit_ms
        ? [h("span", { class: "age", data: { ms: card.last_commit_ms }, title: clock(card.last_commit_ms) }),
          h("span", { class: "sub" }, card.usual_ms !== null ? `usual ≤ ${span(card.usual_ms)}` : "usual not known yet")]
        : h("span", { class: "dim" }, card.committed_batch === null ? "none yet" : "–")),
    h("td", { class: "wide", "data-label": "Rhythm" }, spark(card)),
    h("td", { class: "number rate", "data-label": "Batches / min" }, card.batches_per_minute === null ? "–" : number(card.batches_per_minute),
      card.committed_batch !== null ? h("span", { class: "sub" }, `batch ${number(card.committed_batch)}`) : null,
      card.dstreams && card.dstreams.batch_ms ? h("span", { class: "sub" }, `every ${span(card.dstreams.batch_ms)}`) : null),
    h("td", { class: "number", "data-label": "Lag" }, card.dstreams ? h("span", { class: "dim", title: "DStreams keeps its offsets inside the saved application; they are not asked about." }, "–") : lagCell(card.lag)),
    h("td", { class: "number", "data-label": "State" }, card.state_bytes === null ? h("span", { class: "dim" }, "–") : bytes(card.state_bytes),
      card.files !== null ? h("span", { class: "sub" }, plural(card.files, "file")) : null),
    h("td", { class: "found", "data-label": "Findings" }, findingsCell(card.findings)));
}

function lagCell(lag) {
  if (lag.records !== null) {
    return [h("span", { class: lag.records ? "" : "dim" }, lag.records ? compact(lag.records) : "0"),
      lag.records && lag.retention_ms !== null && lag.retention_ms < SOON
        ? h("span", { class: "sub soon" }, `retention in ${span(lag.retention_ms)}`)
        : h("span", { class: "sub" }, lag.ms ? `${span(lag.ms)} old` : "records")];
  }
  if (lag.problem) return h("span", { class: "dim", title: lag.problem }, "no answer");
  if (lag.ms !== null) return [span(lag.ms), h("span", { class: "sub" }, "behind")];
  return h("span", { class: "dim", title: asksLag ? "No source of it tells." : "Sources are not asked." }, asksLag ? "–" : "not asked");
}

function findingsCell(found) {
  if (!found) return h("span", { class: "dim" }, "…");
  const told = [["error", found.error], ["warning", found.warning], ["advice", found.advice]].filter(([, n]) => n);
  if (!told.length) return h("span", { class: "sound" }, "sound");
  return told.map(([level, n]) => h("span", { class: "badge", data: { level }, title: found.first || "" }, plural(n, level, level === "advice" ? "advice" : undefined)));
}

function spark(card) {
  const steps = card.steps_ms;
  if (steps.length < 3) return h("span", { class: "dim" }, "–");
  const most = Math.max(...steps, card.usual_ms || 0, 1);
  const bars = { usual: "", slow: "" };
  steps.forEach((ms, i) => {
    const height = Math.max((ms / most) * 22, 1.5).toFixed(1);
    bars[card.usual_ms && ms > 2 * card.usual_ms ? "slow" : "usual"] += `M${i * 4} 24h3v-${height}h-3z`;
  });
  const line = card.usual_ms ? 24 - (card.usual_ms / most) * 22 : null;
  return s("svg", { class: "spark", viewBox: "0 0 120 26", width: 120, height: 26, role: "img", "aria-label": `Times between the last ${steps.length} commits, at most ${span(Math.max(...steps))}` },
    s("path", { d: bars.usual }), bars.slow ? s("path", { d: bars.slow, class: "slow" }) : null, line !== null ? s("line", { x1: 0, x2: 120, y1: line, y2: line }) : null);
}

function drawSummary() {
  const counts = Object.fromEntries(HEALTH_ORDER.map((name) => [name, 0]));
  for (const card of cards.values()) counts[card.health] += 1;
  const tiles = HEALTH_ORDER.filter((name) => counts[name] || ["on-time", "late", "stalled"].includes(name)).map((name) =>
    h("button", {
      type: "button", class: "tile-count", data: { health: name }, "aria-pressed": view.health.has(name),
      onclick: () => { if (!view.health.delete(name)) view.health.add(name); draw(); },
    }, h("strong", {}, number(counts[name])), h("span", {}, HEALTH[name])));
  put(at("summary"), h("p", { class: "total" }, h("strong", {}, number(cards.size)), h("span", {}, cards.size === 1 ? "stream" : "streams")), tiles);
}

function drawFilters() {
  put(at("filters"), Object.entries(EXTRAS).map(([name, [words, fits]]) => {
    const n = [...cards.values()].filter(fits).length;
    return h("button", {
      type: "button", class: "chip", "aria-pressed": view.extra.has(name), disabled: n === 0 && !view.extra.has(name),
      onclick: () => { if (!view.extra.delete(name)) view.extra.add(name); draw(); },
    }, words, " ", h("span", { class: "dim" }, number(n)));
  }));
}

function tick() {
  const now = Date.now() + skew;
  for (const age of document.querySelectorAll(".age")) setText(age, `${span(Math.max(now - Number(age.dataset.ms), 0))} ago`);
}

at("search").addEventListener("input", (event) => { view.search = event.target.value.trim().toLowerCase(); draw(); });
at("sort").addEventListener("change", (event) => { view.sort = event.target.value; view.down = false; draw(); });
for (const head of document.querySelectorAll("th[data-sort] button")) {
  head.addEventListener("click", () => {
    const name = head.parentElement.dataset.sort;
    view.down = view.sort === name ? !view.down : false;
    view.sort = name;
    draw();
  });
}
addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing) { event.preventDefault(); at("search").focus(); }
  if (event.key === "Escape" && event.target === at("search")) { at("search").value = ""; view.search = ""; draw(); }
  if ((event.key === "j" || event.key === "k") && !typing) {
    const links = [...document.querySelectorAll("a.name")];
    const here = links.indexOf(document.activeElement);
    const next = links[event.key === "j" ? here + 1 : Math.max(here - 1, 0)];
    if (next) next.focus();
  }
});
setInterval(tick, 1000);
every(() => Math.min(interval, 5000), refresh);
