"""Finds a source that goes back from one batch to the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.checkpoint.text import shorten
from floodmark.connectors.registry import about
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM131",
    "offsets-backwards",
    Severity.ERROR,
    finds="A batch that ends before the batch before it ended, in one of its sources.",
    matters="Offsets only grow. A Kafka topic that was deleted and recreated, a restored table, "
    "an edited entry or a second query make them shrink.",
    restart="Kafka: with failOnDataLoss the query fails, without it records are skipped or read "
    "again. Delta fails ('Found invalid offsets').",
    instead="If the source was recreated, go on with a new checkpoint: `floodmark upgrade`. If "
    "the entry was edited, restore it.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    entries = sorted(evidence.positions.items())
    for (before, old), (batch, new) in pairwise(entries):
        earlier = {source.id: source for source in old}
        for source in new:
            last = earlier.get(source.id)
            if last is None or last.text is None or last.text == source.text:
                continue
            if source.text is None:
                yield RULE.finding(
                    f"{OFFSETS}/{batch}",
                    f"Source {source.id}: batch {batch} has no offset for it (-), and batch "
                    f"{before} had ended at {shorten(last.text)}.",
                    why="Offsets only grow. A source without an offset begins anew: the next batch "
                    "reads it from its start.",
                )
                continue
            if last.kind != source.kind or last.offset is None or source.offset is None:
                continue
            for part, was, now in about(source).went_back(last.offset, source.offset):
                yield RULE.finding(
                    f"{OFFSETS}/{batch}",
                    f"Source {source.id}{part}: batch {batch} ends at {now}, but batch {before} "
                    f"had ended at {was}.",
                )
