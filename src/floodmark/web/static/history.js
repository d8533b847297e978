// Batches that the logs no longer have: from progress lines, and from what the server has kept.
export const RANGES = {
  logged: { words: "Logs", hours: 24 },
  day: { words: "24 hours", hours: 24 },
  week: { words: "7 days", hours: 168 },
  all: { words: "All", hours: 9600 },
};

// Oldest first, in the shape of the bars of the logs. Spark's own duration goes before the files'.
export function stitched(detail, kept, range, now) {
  if (range === "logged") return [];
  const since = now - RANGES[range].hours * 3600000;
  const first = detail.batches.length ? detail.batches[0].batch : Infinity;
  const found = new Map();
  for (const one of kept) {
    if (one.batch >= first || one.planned_ms === null) continue;
    found.set(one.batch, bar(one.batch, one.planned_ms, one.committed_ms, Math.max(one.committed_ms - one.planned_ms, 0), "history", null));
  }
  for (const line of detail.progress) {
    if (line.batch >= first || line.time_ms === null || line.time_ms < since) continue;
    found.set(line.batch, bar(line.batch, line.time_ms, line.time_ms + line.duration_ms, line.duration_ms, "progress", line.rows));
  }
  return [...found.values()].sort((one, other) => one.batch - other.batch);
}

const bar = (batch, planned_ms, committed_ms, duration_ms, source, rows) => ({ batch, status: "purged", planned_ms, committed_ms, duration_ms, source, rows, watermark_ms: null });
