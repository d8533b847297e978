// A DStreams folder: what was saved when, what waits, and what a recovery takes.
import { at, h, put } from "./dom.js";
import { savedChart } from "./plots.js";
import { bytes, clock, number, plural, span } from "./words.js";

const ROLES = { restart: "a recovery takes it", then: "if that one fails", unreadable: "cannot be read", older: "older" };
const LANGUAGES = { python: "Python", jvm: "Scala or Java" };

export function drawDStreams(view, kept) {
  const every = (ms) => (ms === null ? "–" : span(ms));
  put(at("dstreams-facts"), h("dl", { class: "fact-row" },
    fact("Application", view.app_name || "–", LANGUAGES[view.language] || ""),
    fact("Batch every", every(view.batch_ms)),
    fact("Saved every", every(view.checkpoint_interval_ms), view.state_interval_ms === null ? "no state" : `its state every ${span(view.state_interval_ms)}`),
    fact("A recovery takes", view.restart_file || "nothing", view.fall_back_file ? `then ${view.fall_back_file}` : ""),
    fact("Pending", number(view.pending), "batches that it runs again"),
    view.left_over ? fact("Left over", plural(view.left_over, "file"), "writes that never ended") : null,
    view.received_logs ? fact("Received", plural(view.received_logs, "log"), bytes(view.received_bytes)) : null));
  savedChart("dstreams-chart", view, kept);
  table("dstreams-saved", ["File", "Batch", "Written", "Size", ""], view.saved.slice().reverse().map((one) => [h("code", {}, one.file), clock(one.time_ms), clock(one.written_ms), bytes(one.bytes), h("span", { class: one.role === "restart" ? "strong" : "dim" }, ROLES[one.role])]));
  table("dstreams-batches", ["Batch", "Status", "Reads"], view.batches.slice().reverse().map((one) => [clock(one.time_ms), one.pending ? h("span", { class: "tag flight" }, "pending") : "finished", one.reads || "–"]));
  table("dstreams-streams", ["Stream", "Kind", "What it says", "Newest state"], view.streams.map((one) => [number(one.number), one.kind, one.words || "–", clock(one.state_ms)]));
  table("dstreams-states", ["Saved RDD", "Stream", "Batch", "Partitions", "Size", ""], view.states.map((one) => [h("code", {}, one.path), one.stream === null ? "–" : number(one.stream), clock(one.batch_ms), number(one.partitions), bytes(one.bytes),
    one.missing !== null ? h("span", { class: "badge", data: { level: "error" } }, `part ${one.missing} is missing`) : one.newest ? h("span", { class: "strong" }, "a recovery begins with it") : h("span", { class: "dim" }, one.batch_ms === null ? "no longer named" : "older")]),
  view.states_left_out ? `${number(view.states_left_out)} more are not shown.` : "No state is saved here.");
}

const fact = (name, value, more) => h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, h("span", { class: "value" }, value), more ? h("span", { class: "sub" }, more) : null));

function table(id, heads, rows, none) {
  put(at(id), rows.length ? h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": heads[0] }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((words) => h("th", { scope: "col" }, words)))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell))))))) : h("p", { class: "dim" }, none || "None."));
}
