// Numbers and times for people.
const count = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const number = (n) => (n === null || n === undefined ? "–" : count.format(n));
export const compact = (n) => (n === null || n === undefined ? "–" : Math.abs(n) < 10000 ? count.format(n) : short.format(n));

export function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  const sign = ms < 0 ? "−" : "";
  ms = Math.abs(ms);
  if (ms < 1000) return `${sign}${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 120) return `${sign}${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 7200) return `${sign}${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${sign}${(seconds / 3600).toFixed(seconds < 36000 ? 1 : 0)} h`;
  return `${sign}${(seconds / 86400).toFixed(seconds < 864000 ? 1 : 0)} days`;
}

export function clock(ms) {
  if (!ms) return "–";
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return "–";
  const day = Date.now() - ms < 86400000 ? "" : `${time.toISOString().slice(0, 10)} `;
  return `${day}${time.toISOString().slice(11, 19)} UTC`;
}

export const plural = (n, one, many) => `${number(n)} ${n === 1 ? one : many || `${one}s`}`;

export const HEALTH = {
  "stalled": "Stalled", "late": "Late", "quiet": "Quiet", "unknown": "No answer",
  "new": "New", "idle": "Idle", "on-time": "On time",
};
export const HEALTH_ORDER = Object.keys(HEALTH);
