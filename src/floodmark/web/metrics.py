"""Makes the text of `serve`'s /metrics from the fleet's cards, for Prometheus."""

from __future__ import annotations

from floodmark.fleet.pulse import StreamHealth
from floodmark.metrics.checkpoint import (
    CheckpointFacts,
    LastBatch,
    checkpoint_metrics,
)
from floodmark.metrics.exposition import render
from floodmark.metrics.run import phases_of
from floodmark.web.fleet import Fleet
from floodmark.web.keeping import is_copy
from floodmark.web.one_checkpoint import Watched

MOST_PARTITIONS = 5000
"""The limit for all streams together: more would take longer than Prometheus waits."""


def metrics_text(fleet: Fleet) -> str:
    watched = fleet.watched()
    partitions = sum(len(source.parts) for one in watched if one.lag for source in one.lag.sources)
    facts = (_facts(one, partitions <= MOST_PARTITIONS) for one in watched)
    return render(family for one in facts for family in checkpoint_metrics(one))


def _facts(one: Watched, partitions: bool) -> CheckpointFacts:
    card, examined = one.card, one.examined
    labels = {"pipeline": card.group} if card.group else {}
    if card.health is StreamHealth.UNKNOWN:
        return CheckpointFacts(card.path, up=False, labels=labels)
    found = card.findings
    counts = None
    if found is not None:
        counts = {"error": found.error, "warning": found.warning, "advice": found.advice}
    return CheckpointFacts(
        card.path,
        True,
        card.query_id,
        card.latest_batch,
        card.committed_batch,
        card.in_flight_batch is not None,
        card.last_commit_ms,
        card.watermark_ms,
        card.files,
        card.bytes,
        examined.operators if examined else (),
        counts,
        examined.starts if examined else None,
        one.lag,
        labels,
        _last_batch(one),
        partitions,
    )


def _last_batch(one: Watched) -> LastBatch:
    line, found = one.progress, one.glimpse
    if line is not None and line.batch == one.card.committed_batch:
        return LastBatch(
            line.duration_ms / 1000,
            phases_of(line.phases_ms),
            line.rows,
            line.rows_out,
            line.late_rows,
            line.state_rows,
            line.state_bytes,
        )
    if found is None or found.dstreams or is_copy(one) or not found.commit_times:
        return LastBatch()
    batch, committed_ms = found.commit_times[-1]
    planned_ms = dict(found.plan_times).get(batch)
    if planned_ms is None or committed_ms < planned_ms:
        return LastBatch()
    return LastBatch((committed_ms - planned_ms) / 1000)
