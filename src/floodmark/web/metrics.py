"""What /metrics of `serve` says: the cards of the fleet as facts for Prometheus."""

from __future__ import annotations

from floodmark.fleet.pulse import StreamHealth
from floodmark.metrics.checkpoints import CheckpointFacts, StateFacts, checkpoint_metrics
from floodmark.metrics.exposition import render
from floodmark.web.watch import Fleet
from floodmark.web.watched import Watched


def metrics_text(fleet: Fleet) -> str:
    facts = (_facts(one) for one in fleet.watched())
    return render(family for one in facts for family in checkpoint_metrics(one))


def _facts(one: Watched) -> CheckpointFacts:
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
        tuple(StateFacts(*operator) for operator in (examined.operators if examined else ())),
        counts,
        None,
        one.lag,
        labels,
    )
