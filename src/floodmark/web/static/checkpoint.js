import { at, copy, copyButton, h, keeping, put, setText } from "./dom.js";
import { drawDStreams } from "./dstreams.js";
import { drawFiles } from "./files.js";
import { RANGES, stitched } from "./history.js";
import { every, getJson } from "./live.js";
import { batchChart, clear, heatChart, lagChart, phaseChart, rowsChart, stateChart, timeChart } from "./plots.js";
import { bytes, clock, compact, HEALTH, number, plural, span } from "./words.js";

const id = at("checkpoint").dataset.id;
const api = `/api/checkpoints/${id}`;
const last = new Map();
let tag = null;
let now = null;
let skew = 0;
let byTime = null;
let range = "logged";
let past = { samples: [], batches: [] };
const plans = new Map();

async function refresh() {
  let answer;
  try {
    answer = await getJson(api, tag ? { "If-None-Match": tag } : {});
  } catch (problem) {
    if (problem.status) {
      put(at("problem"), h("p", { class: "notice bad" }, problem.status === 404 ? "This checkpoint is gone: it was removed or moved. What is shown here is the last that was seen." : problem.words));
      at("checkpoint").classList.add("stale");
    }
    throw problem;
  }
  if (at("checkpoint").classList.contains("stale")) { at("checkpoint").classList.remove("stale"); put(at("problem")); }
  if (!answer.same) {
    tag = answer.tag;
    now = answer.body;
    skew = now.now_ms - Date.now();
    draw();
    loadBeside();
  }
  tick();
}

// Draws a view only when its facts have changed, so that focus and pointing stay where they are.
function once(name, facts, make) {
  const text = JSON.stringify(facts);
  if (last.get(name) === text) return;
  last.set(name, text);
  keeping(at({ hero: "checkpoint", progress: "batches" }[name] || name), make);
}

function lack(where, words) { put(at(where), words ? h("p", {}, words) : null); }

function draw() {
  const { card, detail, lag, overtaking } = now;
  const problem = now.lag_problem;
  const moment = now.now_ms;
  once("hero", [card, detail.query_id, detail.last_start], () => drawHero(card, detail));
  once("now", [detail.protocol, detail.restart], () => drawProtocol(detail));
  at("checkpoint").classList.toggle("is-dstreams", detail.dstreams !== null);
  if (detail.dstreams) {
    once("dstreams", [detail.dstreams, past.batches], () => drawDStreams(detail.dstreams, past.batches));
    once("findings", [detail.findings, detail.findings_left_out], () => drawFindings(detail));
    once("next", [detail.next_steps, detail.conf], () => drawNext(detail));
    return;
  }
  once("batches", [detail.batches, detail.marks, detail.lacks, past.batches, range], () => drawBatches(detail, moment));
  once("progress", [detail.progress], () => drawProgress(detail));
  once("sources", [detail.sources, lag, problem, overtaking], () => drawSources(detail, lag, problem, overtaking));
  once("time", [detail.batches, detail.progress, detail.watermark_ms], () => drawTime(detail));
  once("state", [detail.heat_maps, detail.restart_load], () => drawState(detail));
  once("findings", [detail.findings, detail.findings_left_out], () => drawFindings(detail));
  once("next", [detail.next_steps, detail.conf], () => drawNext(detail));
  if (!at("diff-right").value && detail.batches.length > 1) {
    at("diff-left").value = detail.batches[Math.max(detail.batches.length - 2, 0)].batch;
    at("diff-right").value = detail.batches[detail.batches.length - 1].batch;
  }
}

const fact = (name, value, more) => h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, h("span", { class: "value" }, value), more ? h("span", { class: "sub" }, more) : null));

function drawHero(card, detail) {
  const pill = at("health");
  pill.dataset.health = card.health;
  setText(pill, HEALTH[card.health]);
  const start = detail.last_start;
  put(at("identity"),
    detail.dstreams ? h("span", { class: "tag" }, "DStreams") : detail.query_id ? [h("span", {}, "query "), h("code", {}, detail.query_id)] : "no query id",
    start ? [h("span", { class: "tag" }, `Spark ${start.spark_version || "?"}`), start.trigger ? h("span", { class: "tag" }, start.trigger) : null, start.sink ? h("span", { class: "tag" }, `sink ${start.sink}`) : null] : null);
  put(at("vitals"),
    fact(card.dstreams ? "Last saved" : "Last commit", h("span", { class: "age", data: { ms: card.last_commit_ms || "" } }, "–"), card.usual_ms === null ? "usual not known" : `usual ≤ ${span(card.usual_ms)}`),
    card.dstreams ? fact("Pending", number(card.dstreams.pending), "batches") : fact("Batch", number(card.committed_batch), card.in_flight_batch === null ? "committed" : `${number(card.in_flight_batch)} in flight`),
    card.dstreams ? fact("Batch every", card.dstreams.batch_ms === null ? "–" : span(card.dstreams.batch_ms)) : fact("Lag", card.lag.records === null ? (card.lag.problem ? "no answer" : "–") : compact(card.lag.records), card.lag.records === null ? (card.lag.problem ? "" : "not asked") : card.lag.ms ? span(card.lag.ms) : "records"),
    fact("State", card.state_bytes === null ? "none" : bytes(card.state_bytes), card.files === null ? "" : plural(card.files, "file")),
    fact("Rate", card.batches_per_minute === null ? "–" : number(card.batches_per_minute), "batches / min"));
}

function tick() {
  if (!now) return;
  for (const age of document.querySelectorAll(".age")) {
    const ms = Number(age.dataset.ms);
    setText(age, ms ? `${span(Math.max(Date.now() + skew - ms, 0))} ago` : "none yet");
  }
  // The words are of the last change, and time goes on: both ages on the page are the same.
  const { card } = now;
  const since = card.last_commit_ms ? `${span(Math.max(Date.now() + skew - card.last_commit_ms, 0))} ago` : "";
  setText(at("health-words"), card.problem || (since ? card.words.replace(/^Last (commit|save) .*? ago/, `Last $1 ${since}`) : card.words));
}

function drawProtocol(detail) {
  setText(at("restart-words"), detail.restart);
  at("now").dataset.action = detail.restart_action || "";
  put(at("protocol"), detail.protocol.map((step, i) => h("li", { class: "step", data: { state: step.state } },
    h("span", { class: "step-mark", "aria-hidden": "true" }, step.state === "done" ? "✓" : String(i + 1)),
    h("div", { class: "step-words" },
      h("h3", {}, step.name, h("span", { class: "visually-hidden" }, ` (${step.state})`)),
      h("code", {}, step.file),
      h("p", {}, step.words),
      step.at_ms ? h("p", { class: "sub" }, clock(step.at_ms)) : null))));
}

function drawBatches(detail, moment) {
  const known = detail.batches.filter((b) => b.duration_ms !== null && b.planned_ms !== null);
  if (byTime === null && known.length > 1) {
    const busy = known.reduce((sum, b) => sum + b.duration_ms, 0);
    const length = known[known.length - 1].planned_ms - known[0].planned_ms;
    byTime = length > 0 && busy / length > 0.03;
  }
  const older = stitched(detail, past.batches, range, moment);
  const bars = [...older, ...detail.batches];
  lack("batches-note", detail.lacks.batches || null);
  batchChart("batch-chart", bars, detail.marks, byTime !== false, moment);
  drawSwitches(detail, moment);
  setText(at("batches-history"), older.length ? `${plural(older.length, "older batch", "older batches")}, no longer in the logs, in a paler colour: as progress lines tell, or as the history has kept them, one a minute and after a day one in ten minutes.` : "");
  const seen = detail.marks.slice(-12).reverse();
  put(at("marks"), seen.map((m) => h("li", { data: { kind: m.kind } }, h("span", { class: "mark", "aria-hidden": "true" }), `before batch ${number(m.batch)}: `, m.words, m.at_ms ? h("span", { class: "dim" }, ` ${clock(m.at_ms)}`) : null)),
    detail.lacks.marks ? h("li", { class: "dim" }, detail.lacks.marks) : null);
  put(at("batch-table"), h("thead", {}, h("tr", {}, ["Batch", "Status", "Planned", "Committed", "Took", "By", "Rows"].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", {}, bars.slice(-1000).reverse().map((b) => h("tr", { data: { batch: b.batch } },
      h("th", { scope: "row" }, number(b.batch)), h("td", {}, b.status), h("td", {}, clock(b.planned_ms)), h("td", {}, clock(b.committed_ms)),
      h("td", { class: "number" }, b.duration_ms === null ? "–" : `${number(b.duration_ms)} ms`), h("td", {}, b.source || "–"), h("td", { class: "number" }, number(b.rows))))));
}

function drawSwitches(detail, moment) {
  const pick = (where, chosen, choices, choose) => put(at(where), choices.map(([words, value]) => h("button", { type: "button", "aria-pressed": chosen === value, onclick: () => keeping(at("batches"), () => choose(value)) }, words)));
  pick("batch-switch", byTime !== false, [["By time", true], ["By batch", false]], (value) => { byTime = value; drawBatches(detail, moment); });
  const ranges = Object.entries(RANGES).map(([value, { words }]) => [words, value]);
  pick("range-switch", range, ranges, (value) => { range = value; last.delete("batches"); drawBatches(detail, moment); loadHistory().catch(() => {}); });
  at("batch-switches").hidden = at("batch-chart").hidden;
}

function drawProgress(detail) {
  const lines = detail.progress.slice(-150);
  lack("progress-note", detail.lacks.progress || null);
  phaseChart("phase-chart", lines);
  rowsChart("rows-chart", lines);
  for (const title of at("progress-views").querySelectorAll("h3")) title.hidden = !lines.length && title.textContent === "Rows";
}

function drawSources(detail, lag, problem, overtaking) {
  lack("lag-note", problem || (lag ? null : [h("span", {}, "The sources are not asked, so the lag is not known. "), h("code", {}, "floodmark serve --sources"), " asks those that the notes of starts name, ", h("code", {}, "--kafka HOST:PORT"), " asks Kafka there."]));
  const facts = [];
  if (lag) {
    const total = now.card.lag;
    facts.push(fact("Records behind", number(total.records), `after batch ${number(lag.batch)}`));
    if (total.bytes !== null) facts.push(fact("Bytes behind", `${total.bytes_estimated ? "≈ " : ""}${bytes(total.bytes)}`, total.bytes_estimated ? "estimated" : ""));
    if (total.ms !== null) facts.push(fact("Time behind", span(total.ms), "age of the oldest unread"));
    const left = lag.sources.map((one) => one.retention_left_ms).filter((n) => n !== null);
    if (left.length) facts.push(fact("Retention leaves", span(Math.min(...left)), "at least, to what is not read"));
    if (overtaking) facts.push(fact("Retention overtakes", overtaking.ms === null ? (overtaking.watched ? "not in sight" : "–") : overtaking.lost ? "already" : `in ${span(overtaking.ms)}`, overtaking.words));
  }
  put(at("lag-facts"), facts.length ? h("dl", { class: "fact-row" }, facts) : null);
  const answers = new Map((lag ? lag.sources : []).map((one) => [one.id, one]));
  put(at("source-list"), detail.sources.map((source) => drawSource(source, answers.get(source.id))));
}

function drawSource(source, answer) {
  const parts = new Map(((answer && answer.parts) || []).map((p) => [p.part, p]));
  const names = parts.size ? [...parts.keys()] : source.parts.map((p) => p.part);
  const positions = new Map(source.parts.map((p) => [p.part, p]));
  return h("article", { class: "source" },
    h("header", {}, h("h3", {}, `Source ${source.id}`, " ", h("span", { class: "tag" }, source.shown_as)), h("p", { class: "sub" }, source.reached)),
    answer && answer.error ? h("p", { class: "notice bad" }, answer.error) : null,
    answer && answer.notes ? answer.notes.map((words) => h("p", { class: "sub" }, words)) : null,
    names.length ? h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": `Partitions of source ${source.id}` }, h("table", { class: "parts" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Partition"), h("th", { scope: "col", class: "number" }, "Behind"), h("th", { scope: "col", class: "number" }, "Stream"), h("th", { scope: "col", class: "number" }, "End"), h("th", { scope: "col", class: "number" }, "Earliest"), h("th", { scope: "col" }, "Where it stands"))),
      h("tbody", {}, names.map((name) => partRow(name, parts.get(name), positions.get(name)))))) : null,
    source.left_out ? h("p", { class: "sub" }, `${number(source.left_out)} more partitions are not shown.`) : null,
    Object.keys(source.options).length ? h("details", { class: "numbers" }, h("summary", {}, "Options of the last start"), h("table", {}, h("tbody", {}, Object.entries(source.options).map(([k, v]) => h("tr", {}, h("th", { scope: "row" }, k), h("td", {}, h("code", {}, v))))))) : null);
}

function partRow(name, part, known) {
  const numeric = part && [part.position, part.end].every((n) => typeof n === "number");
  const behind = part && typeof part.records === "number" ? part.records : numeric ? Math.max(part.end - part.position, 0) : null;
  return h("tr", {}, h("th", { scope: "row" }, name),
    h("td", { class: "number strong" }, behind === null ? "–" : number(behind)),
    h("td", { class: "number" }, part && part.position !== null ? value(part.position) : known ? value(known.position) : "–"),
    h("td", { class: "number" }, part ? value(part.end) : "–"),
    h("td", { class: "number" }, part ? value(part.earliest) : "–"),
    h("td", {}, numeric && typeof part.earliest === "number" ? gauge(part) : h("span", { class: "dim" }, part ? "–" : "not asked")));
}

const value = (n) => (typeof n === "number" ? number(n) : n === null || n === undefined ? "–" : /^\d{1,15}$/.test(n) ? number(Number(n)) : String(n));

function gauge(part) {
  const from = Math.min(part.earliest, part.position);
  const size = Math.max(part.end - from, 1);
  const read = ((part.position - from) / size) * 100;
  const gone = part.earliest > part.position;
  const box = h("div", { class: "gauge", role: "img", "aria-label": `${Math.round(read)} percent of what is kept is read` }, h("i", { class: gone ? "gauge-read gone" : "gauge-read" }));
  box.firstChild.style.width = `${Math.max(Math.min(read, 100), 0.5)}%`;
  return box;
}

function drawTime(detail) {
  lack("time-note", detail.lacks.watermark || null);
  const known = detail.batches.filter((b) => b.watermark_ms && b.planned_ms);
  const newest = known[known.length - 1];
  put(at("time-facts"), detail.watermark_ms ? h("dl", { class: "fact-row" },
    fact("Watermark", clock(detail.watermark_ms)),
    newest ? fact("Behind the clock", span(newest.planned_ms - newest.watermark_ms), `when batch ${number(newest.batch)} was planned`) : null) : null);
  timeChart("time-chart", detail.batches, detail.progress);
}

function drawState(detail) {
  const load = detail.restart_load;
  lack("state-note", detail.lacks.state || null);
  if (!detail.heat_maps.length) { put(at("heat-maps")); put(at("state-facts")); put(at("load")); return; }
  const skews = detail.heat_maps.map((m) => m.skew).filter((n) => n !== null);
  put(at("state-facts"), h("dl", { class: "fact-row" },
    fact("A restart loads", bytes(load.bytes), `${plural(load.files, "file")}, version ${number(load.version)}`),
    fact("Longest chain", plural(load.most_changes, "change"), "after its snapshot"),
    skews.length ? fact("Skew", `${Math.max(...skews).toFixed(2)}×`, "largest partition to the mean") : null,
    load.exact ? null : fact("Not counted", "tables", "a RocksDB snapshot was not opened")));
  put(at("heat-maps"), detail.heat_maps.map((map, i) => [
    h("h3", {}, `Operator ${map.operator}`, map.name ? ` · ${map.name}` : "", " ", h("span", { class: "tag" }, map.provider), map.left_out ? h("span", { class: "sub" }, ` ${number(map.left_out)} more partitions are not drawn`) : null),
    map.batches.length ? h("div", { id: `heat-${i}`, class: "chart", role: "img", "aria-label": `Bytes that each batch wrote into each partition of operator ${map.operator}` }) : h("p", { class: "dim" }, "No state file is there."),
  ]));
  detail.heat_maps.forEach((map, i) => { if (map.batches.length) { at(`heat-${i}`).style.height = `${Math.min(Math.max(map.partitions.length * 16 + 90, 190), 460)}px`; heatChart(`heat-${i}`, map); } });
  const most = Math.max(...load.partitions.map((p) => p.bytes), 1);
  put(at("load"), h("details", { class: "numbers" }, h("summary", {}, "What a restart loads, by partition"),
    h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "What a restart loads" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Operator", "Partition", "Store", "Snapshot", "Changes", "Bytes", ""].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, load.partitions.map((p) => {
        const bar = h("i", { class: "gauge-read" });
        bar.style.width = `${Math.max((p.bytes / most) * 100, 0.5)}%`;
        return h("tr", {}, h("td", {}, p.operator), h("td", {}, p.partition), h("td", {}, p.store), h("td", { class: "number" }, p.snapshot === null ? "none" : number(p.snapshot)), h("td", { class: "number" }, number(p.changes)), h("td", { class: "number" }, bytes(p.bytes)), h("td", {}, p.missing ? h("span", { class: "badge", data: { level: "error" } }, `missing ${p.missing}`) : h("div", { class: "gauge" }, bar)));
      }))))));
}

function drawFindings(detail) {
  if (!detail.findings.length) { put(at("finding-list"), h("p", { class: "sound-note" }, "Nothing is wrong with the files, as far as they were read. ", h("code", {}, "floodmark doctor --read-data"), " reads the state to its last byte.")); return; }
  const groups = new Map();
  for (const one of detail.findings) {
    const key = `${one.code} ${one.severity} ${one.why} ${one.do}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(one);
  }
  put(at("finding-list"), [...groups.values()].map(([one, ...more]) => h("article", { class: "finding", data: { level: one.severity } },
    h("header", {}, h("span", { class: "badge", data: { level: one.severity } }, one.severity), h("strong", {}, `${one.code} ${one.rule}`), h("code", {}, one.path)),
    h("p", { class: "what" }, one.what), h("p", {}, one.why), h("p", { class: "do" }, one.do),
    more.length ? h("details", { class: "numbers" }, h("summary", {}, `The same of ${plural(more.length, "more file")}`), h("ul", {}, more.map((other) => h("li", {}, h("code", {}, other.path), " ", other.what)))) : null)),
  detail.findings_left_out ? h("p", { class: "sub" }, `${number(detail.findings_left_out)} more are not shown.`) : null);
}

function drawNext(detail) {
  put(at("next-list"), detail.next_steps.map((step) => {
    const place = plans.get(step.plan) || h("div", { class: "plan", role: "status" });
    if (step.plan) plans.set(step.plan, place);
    return h("li", {}, h("div", { class: "next-words" }, h("h3", {}, step.title), h("p", {}, step.why)),
      h("div", { class: "command" }, h("code", {}, step.command), copyButton(step.command)),
      step.plan ? h("button", { type: "button", class: "quiet-button", onclick: (event) => showPlan(event.currentTarget, step.plan, place) }, "Show the plan") : null,
      place);
  }));
  put(at("conf"), h("tbody", {}, Object.entries(detail.conf).sort().map(([k, v]) => h("tr", {}, h("th", { scope: "row" }, k), h("td", {}, h("code", {}, v))))));
}

async function showPlan(button, verb, place) {
  button.disabled = true;
  put(place, h("p", { class: "dim" }, "Planning…"));
  try {
    const { body } = await getJson(`${api}/plans/${verb}`);
    put(place, h("pre", {}, body.lines.join("\n")), h("div", { class: "command" }, h("code", {}, body.command), copyButton(body.command)));
  } catch (problem) {
    put(place, h("p", { class: "notice" }, problem.words || "It could not be planned."));
  }
  button.disabled = false;
}

async function loadHistory() {
  const { body } = await getJson(`${api}/history?hours=${RANGES[range].hours}`);
  past = body;
  const drawnIt = lagChart("lag-chart", body.samples);
  lack("history-note", drawnIt ? null : "No lag was sampled yet. One sample a minute is kept once the sources are asked.");
  at("state-over-time").hidden = !stateChart("state-chart", body.samples);
  if (now) draw();
}

async function loadBeside() {
  try { await loadHistory(); } catch { clear("lag-chart"); }
  try {
    const { body } = await getJson(`${api}/anatomy`);
    once("files", body, () => drawFiles(body));
  } catch (problem) { put(at("anatomy"), h("p", { class: "notice" }, problem.words || "The files could not be listed.")); }
}

async function loadOthers() {
  const { body } = await getJson("/api/fleet");
  const others = body.cards.filter((card) => card.id !== id).sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, 500);
  at("diff-other").append(...others.map((card) => h("option", { value: card.id }, card.name)));
}

at("diff-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const other = at("diff-other").value;
  const address = other ? `${api}/diff?other=${other}` : `${api}/diff?left=${Number(at("diff-left").value)}&right=${Number(at("diff-right").value)}`;
  const place = at("diff-result");
  try {
    const { body } = await getJson(address);
    if (!body.differences.length) { put(place, h("p", { class: "sound-note" }, "They are the same.")); return; }
    put(place, h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Differences" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "What"), h("th", { scope: "col" }, body.left), h("th", { scope: "col" }, body.right))),
      h("tbody", {}, body.differences.map((one) => h("tr", {}, h("th", { scope: "row" }, one.where), h("td", {}, h("code", {}, show(one.left))), h("td", {}, h("code", {}, show(one.right)))))))),
    body.left_out ? h("p", { class: "sub" }, `${number(body.left_out)} more are not shown.`) : null);
  } catch (problem) { put(place, h("p", { class: "notice" }, problem.words || "They could not be compared.")); }
});

const show = (one) => (one === null ? "–" : typeof one === "object" ? JSON.stringify(one) : String(one));

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", () => copy(button, document.querySelector(button.dataset.copy).textContent));
}
const links = [...document.querySelectorAll("#tabs a")];
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    for (const link of links) {
      if (link.hash === `#${entry.target.id}`) { link.setAttribute("aria-current", "true"); link.parentElement.parentElement.scrollTo({ left: link.offsetLeft - 40, behavior: "instant" }); } else link.removeAttribute("aria-current");
    }
  }
}, { rootMargin: "-20% 0px -70% 0px" });
for (const view of document.querySelectorAll(".view")) watcher.observe(view);
setInterval(tick, 1000);
setInterval(() => { if (!document.hidden && now) loadHistory().catch(() => {}); }, 15000);
loadOthers().catch(() => {});
every(2000, refresh);
