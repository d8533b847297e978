// Charts by plotly, in the page's own colours.
import { at, h, put } from "./dom.js";
import { bytes, clock, number, span } from "./words.js";

const drawn = new Map();

// A colour by its name, as it is in light or dark now.
const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);

function look(name) {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

function base(more) {
  const ink = look("--ink-2");
  const line = look("--line-soft");
  const axis = { gridcolor: line, zerolinecolor: line, linecolor: look("--line"), tickfont: { color: ink, size: 11 }, title: { font: { color: ink, size: 11 } }, automargin: true, fixedrange: true };
  const layout = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
    margin: { l: 48, r: 12, t: 18, b: 36 }, bargap: 0, hovermode: "closest",
    font: { family: getComputedStyle(document.body).fontFamily, color: ink, size: 12 },
    hoverlabel: { bgcolor: look("--raised"), bordercolor: look("--line"), font: { color: look("--ink"), size: 12 }, align: "left" },
    showlegend: false,
    xaxis: { ...axis }, yaxis: { ...axis, rangemode: "tozero" },
  };
  const { xaxis, yaxis, ...rest } = more;
  const merged = (own, given) => ({ ...own, ...given, title: { ...own.title, ...(given && given.title) } });
  return { ...layout, ...rest, xaxis: merged(layout.xaxis, xaxis), yaxis: merged(layout.yaxis, yaxis) };
}

function show(id, make) {
  drawn.set(id, make);
  if (!window.Plotly) { addEventListener("load", () => show(id, make), { once: true }); return; }
  const { traces, layout } = make();
  window.Plotly.react(at(id) || id, traces, base(layout || {}), { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false });
}

addEventListener("themechange", () => { for (const [id, make] of drawn) if (at(id)) show(id, make); });

// Names and colours of what a chart draws, above it: plotly's own would cover a narrow one.
function legend(id, items) {
  let where = at(`${id}-legend`);
  if (!where) {
    where = h("ul", { id: `${id}-legend`, class: "chart-legend" });
    at(id).before(where);
  }
  put(where, items.map(([words, name, kind]) => {
    const swatch = h("i", { class: kind || "", "aria-hidden": "true" });
    swatch.style.setProperty("--swatch", `var(${name})`);
    return h("li", {}, swatch, words);
  }));
}

export function clear(id) {
  drawn.delete(id);
  const where = at(id);
  const beside = at(`${id}-legend`);
  if (beside) beside.remove();
  if (where && window.Plotly) window.Plotly.purge(where);
  if (where) { where.replaceChildren(); where.hidden = true; }
}

const reveal = (id) => { const where = at(id); if (where.hidden) where.hidden = false; };

// The text of a hover label is plotly's own small markup: what comes from a checkpoint is escaped.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

export function batchChart(id, bars, marks, byTime, now) {
  const known = bars.filter((b) => b.planned_ms !== null && (b.duration_ms !== null || b.status === "in-flight"));
  if (!known.length) { clear(id); return; }
  reveal(id);
  show(id, () => {
    const ends = known.map((b) => b.planned_ms + (b.duration_ms ?? Math.max(now - b.planned_ms, 0)));
    const range = Math.max(Math.max(...ends) - known[0].planned_ms, 1);
    const took = (b) => b.duration_ms ?? Math.max(now - b.planned_ms, 0);
    const wide = (b) => (byTime ? Math.max(took(b), range / 260) : 0.82);
    const trace = (chosen, marker, name) => ({
      type: "bar", name, marker,
      x: chosen.map((b) => (byTime ? b.planned_ms + wide(b) / 2 : b.batch)),
      y: chosen.map((b) => took(b) / 1000),
      width: chosen.map(wide),
      hovertext: chosen.map((b) => [
        `<b>batch ${number(b.batch)}</b>${b.status === "committed" ? "" : ` ${b.status}`}`,
        `planned ${clock(b.planned_ms)}`,
        b.committed_ms ? `committed ${clock(b.committed_ms)}` : "no commit",
        b.duration_ms === null ? `for ${span(took(b))} now` : `took ${span(b.duration_ms)} (${{ progress: "Spark's progress", history: "by the history" }[b.source] || "by the files"})`,
        b.rows === null ? null : `${number(b.rows)} rows`,
      ].filter(Boolean).join("<br>")),
      hoverinfo: "text", textposition: "none",
    });
    const older = known.filter((b) => b.status === "purged");
    const done = known.filter((b) => b.status !== "in-flight" && b.status !== "purged");
    const flight = known.filter((b) => b.status === "in-flight");
    const place = new Map(known.map((b) => [b.batch, byTime ? b.planned_ms : b.batch - 0.5]));
    const shown = marks.filter((m) => place.has(m.batch)).slice(-40);
    const beside = new Map();
    const shift = (m) => { const n = beside.get(m.batch) || 0; beside.set(m.batch, n + 1); return n * 15; };
    return {
      traces: [
        trace(done, { color: look("--bar"), line: { width: 0 } }, "committed"),
        trace(flight, { color: "rgba(0,0,0,0)", line: { color: look("--stalled"), width: 2 } }, "in flight"),
        trace(older, { color: look("--bar-old"), line: { width: 0 } }, "purged"),
      ],
      layout: {
        xaxis: byTime ? { type: "date", title: { text: "UTC" } } : { title: { text: "batch" }, tickformat: ",d" },
        yaxis: { title: { text: "seconds" } },
        shapes: shown.map((m) => ({ type: "line", xref: "x", yref: "paper", x0: place.get(m.batch), x1: place.get(m.batch), y0: 0, y1: 1, line: { color: look(`--mark-${m.kind}`), width: 1.5, dash: "dot" } })),
        annotations: shown.map((m) => ({ x: place.get(m.batch), y: 1, xref: "x", yref: "paper", yanchor: "bottom", xshift: shift(m), showarrow: false, text: { restart: "↻", code: "◆", spark: "▲", conf: "▽", floodmark: "≋" }[m.kind] || "•", font: { color: look(`--mark-${m.kind}`), size: 13 }, hovertext: plain(m.words) })),
        margin: { l: 48, r: 12, t: 24, b: 36 },
      },
    };
  });
}

const PHASES = ["latestOffset", "queryPlanning", "getBatch", "walCommit", "addBatch", "commitOffsets"];

export function phaseChart(id, lines) {
  if (!lines.length) { clear(id); return; }
  reveal(id);
  legend(id, PHASES.map((phase, i) => [phase, `--phase-${i + 1}`]));
  show(id, () => ({
    traces: PHASES.map((phase, i) => ({
      type: "bar", name: phase, x: lines.map((l) => l.batch), y: lines.map((l) => (l.phases_ms[phase] || 0) / 1000),
      marker: { color: look(`--phase-${i + 1}`) }, hovertemplate: `batch %{x}<br>${phase} %{y:.3f} s<extra></extra>`,
    })),
    layout: { barmode: "stack", bargap: 0.18, xaxis: { title: { text: "batch" }, tickformat: ",d" }, yaxis: { title: { text: "seconds" } }, margin: { l: 48, r: 12, t: 10, b: 40 } },
  }));
}

export function rowsChart(id, lines) {
  if (!lines.some((l) => l.rows !== null)) { clear(id); return; }
  reveal(id);
  legend(id, [["rows in", "--phase-5", "line"], lines.some((l) => l.rows_out !== null) ? ["rows out", "--phase-1", "dash"] : null, lines.some((l) => l.late_rows) ? ["late rows dropped, scale at the right", "--stalled"] : null].filter(Boolean));
  show(id, () => {
    const line = (name, field, color, extra) => ({
      type: "scatter", mode: "lines+markers", name, x: lines.map((l) => l.batch), y: lines.map((l) => l[field]),
      line: { color, width: 2, ...extra }, marker: { color, size: 4 }, hovertemplate: `batch %{x}<br>%{y:,} ${name}<extra></extra>`,
    });
    const traces = [line("rows in", "rows", look("--phase-5"))];
    if (lines.some((l) => l.rows_out !== null)) traces.push(line("rows out", "rows_out", look("--phase-1"), { dash: "dash" }));
    const late = lines.some((l) => l.late_rows);
    if (late) traces.unshift({ type: "bar", name: "late rows dropped", x: lines.map((l) => l.batch), y: lines.map((l) => l.late_rows), yaxis: "y2", marker: { color: look("--stalled"), opacity: 0.55 }, width: 0.5, hovertemplate: "%{y:,} late rows dropped<extra></extra>" });
    const most = Math.max(...lines.map((l) => l.late_rows || 0), 1);
    const right = late ? { yaxis2: { overlaying: "y", side: "right", range: [0, most * 3], showgrid: false, fixedrange: true, tickfont: { color: look("--stalled"), size: 11 }, tickformat: ",d", nticks: 3 } } : {};
    return { traces, layout: { ...right, hovermode: "x unified", xaxis: { title: { text: "batch" }, tickformat: ",d" }, margin: { l: 48, r: late ? 40 : 12, t: 10, b: 40 } } };
  });
}

export function lagChart(id, samples) {
  const known = samples.filter((p) => p.records !== null);
  if (known.length < 2) { clear(id); return false; }
  reveal(id);
  show(id, () => ({
    traces: [{ type: "scatter", mode: "lines", x: known.map((p) => p.at_ms), y: known.map((p) => p.records), line: { color: look("--accent"), width: 2, shape: "linear" }, fill: "tozeroy", fillcolor: look("--accent-wash"), hovertemplate: "%{x|%Y-%m-%d %H:%M:%S} UTC<br>%{y:,} records behind<extra></extra>" }],
    layout: { xaxis: { type: "date", title: { text: "UTC" } }, yaxis: { title: { text: "records" } } },
  }));
  return true;
}

export function stateChart(id, samples) {
  const known = samples.filter((p) => p.state_bytes !== null);
  if (known.length < 2) { clear(id); return false; }
  reveal(id);
  show(id, () => ({
    traces: [{ type: "scatter", mode: "lines", x: known.map((p) => p.at_ms), y: known.map((p) => p.state_bytes), line: { color: look("--accent"), width: 2, shape: "hv" }, fill: "tozeroy", fillcolor: look("--accent-wash"), text: known.map((p) => bytes(p.state_bytes)), hovertemplate: "%{x|%Y-%m-%d %H:%M:%S} UTC<br>%{text} of state files<extra></extra>" }],
    layout: { xaxis: { type: "date", title: { text: "UTC" } }, yaxis: { title: { text: "bytes" }, tickformat: ".2s" } },
  }));
  return true;
}

// Of DStreams: three rows of marks along the time.
export function savedChart(id, view, kept) {
  const rows = [
    ["application saved", [...new Set([...kept.map((b) => b.committed_ms), ...view.saved.map((one) => one.time_ms)])], "--bar", "square"],
    ["state saved", view.states.map((one) => one.batch_ms).filter((ms) => ms !== null), "--on-time", "diamond"],
    ["pending", view.batches.filter((one) => one.pending).map((one) => one.time_ms), "--stalled", "square-open"],
  ].filter(([, times]) => times.length);
  if (!rows.length) { clear(id); return; }
  reveal(id);
  show(id, () => ({
    traces: rows.map(([words, times, color, symbol]) => ({
      type: "scatter", mode: "markers", name: words, x: times, y: times.map(() => words),
      marker: { color: look(color), symbol, size: 11, line: { width: symbol.endsWith("open") ? 2 : 0 } },
      text: times.map((ms) => clock(ms)), hovertemplate: `${words}<br>batch of %{text}<extra></extra>`,
    })),
    layout: { xaxis: { type: "date", title: { text: "UTC" } }, yaxis: { type: "category", rangemode: "normal", autorange: "reversed" }, margin: { l: 110, r: 16, t: 10, b: 40 } },
  }));
}

export function timeChart(id, bars, lines) {
  const known = bars.filter((b) => b.watermark_ms && b.planned_ms);
  if (!known.length) { clear(id); return; }
  reveal(id);
  legend(id, [["watermark behind the clock", "--accent", "line"], lines.some((l) => l.event_time_max_ms) ? ["newest event behind the clock", "--phase-1", "dash"] : null].filter(Boolean));
  show(id, () => {
    const most = Math.max(...known.map((b) => b.planned_ms - b.watermark_ms));
    const [unit, size] = most > 7.2e6 ? ["hours", 3.6e6] : most > 1.2e5 ? ["minutes", 6e4] : ["seconds", 1000];
    const traces = [{ type: "scatter", mode: "lines", name: "watermark behind the clock", x: known.map((b) => b.planned_ms), y: known.map((b) => (b.planned_ms - b.watermark_ms) / size), line: { color: look("--accent"), width: 2, shape: "hv" }, customdata: known.map((b) => [b.batch, clock(b.watermark_ms)]), hovertemplate: `batch %{customdata[0]}<br>watermark %{customdata[1]}<br>%{y:.2f} ${unit} behind<extra></extra>` }];
    const seen = lines.filter((l) => l.event_time_max_ms && l.time_ms);
    if (seen.length) traces.push({ type: "scatter", mode: "lines", name: "newest event behind the clock", x: seen.map((l) => l.time_ms), y: seen.map((l) => (l.time_ms - l.event_time_max_ms) / size), line: { color: look("--phase-1"), width: 2, dash: "dot" }, hovertemplate: `newest event %{y:.2f} ${unit} behind<extra></extra>` });
    return { traces, layout: { xaxis: { type: "date", title: { text: "UTC" } }, yaxis: { title: { text: `${unit} behind` } }, margin: { l: 48, r: 12, t: 10, b: 36 } } };
  });
}

// What each batch wrote, and at the right how large each partition is now.
export function heatChart(id, map) {
  const sizes = Math.max(...map.sizes, 1);
  const narrow = (at(id) || document.body).clientWidth < 560;
  show(id, () => ({
    traces: [{
      type: "heatmap", x: map.batches, y: map.partitions, z: map.bytes,
      text: map.bytes.map((row, i) => row.map((n, j) => `partition ${map.partitions[i]}, batch ${number(map.batches[j])}<br>${n === null ? "no file left" : bytes(n)}`)),
      hoverinfo: "text", xgap: map.batches.length < 60 ? 1 : 0, ygap: map.partitions.length < 40 ? 1 : 0, hoverongaps: false,
      colorscale: [[0, look("--heat-0")], [0.35, look("--heat-1")], [0.7, look("--heat-2")], [1, look("--heat-3")]],
      colorbar: { thickness: 10, outlinewidth: 0, tickfont: { color: look("--ink-2"), size: 10 }, ticksuffix: " B", tickformat: ".2s", len: 1 },
    }, {
      type: "bar", orientation: "h", x: map.sizes, y: map.partitions, xaxis: "x2", marker: { color: look("--bar") }, width: 0.7,
      text: map.sizes.map((n, i) => `partition ${map.partitions[i]}<br>${bytes(n)} in all its files`), textposition: "none", hoverinfo: "text",
    }],
    layout: {
      xaxis: { title: { text: "batch" }, tickformat: ",d", showgrid: false, domain: [0, narrow ? 0.74 : 0.84], nticks: narrow ? 4 : undefined },
      xaxis2: { title: { text: "size", font: { color: look("--ink-2"), size: 11 } }, domain: [narrow ? 0.79 : 0.87, 1], range: [0, sizes * 1.05], tickformat: ".1s", nticks: 3, tickfont: { color: look("--ink-2"), size: 10 }, showgrid: false, zeroline: false, fixedrange: true, anchor: "y" },
      yaxis: { title: { text: "partition" }, rangemode: "normal", tickformat: ",d", dtick: map.partitions.length <= 16 ? 1 : undefined, showgrid: false, autorange: "reversed" },
      margin: { l: 48, r: 8, t: 12, b: 40 },
    },
  }));
}
