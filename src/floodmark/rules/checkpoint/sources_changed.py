"""Finds another source in the place of a source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.connectors.registry import about, look_alikes
from floodmark.connectors.source import SourceOffset
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM132",
    "sources-changed",
    Severity.ERROR,
    finds="Two neighbouring batches with a different number of sources, another kind of source "
    "in a place, another Delta table, or all of a Kafka source's topics replaced.",
    matters="Spark knows sources only by their place in the plan. A query whose sources were "
    "added, removed or swapped reads another's offsets.",
    restart="With another number of sources the query fails ('There are [1] sources in the "
    "checkpoint offsets'). A source of another kind fails, or silently misreads the offset "
    "if the forms are alike.",
    instead="Start the code that the newest entries belong to, or go on with a new checkpoint: "
    "`floodmark upgrade`.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    entries = sorted(evidence.positions.items())
    for (before, old), (batch, new) in pairwise(entries):
        named = checkpoint.offsets[batch].version != 1
        if len(old) != len(new) and not named:
            yield RULE.finding(
                f"{OFFSETS}/{batch}",
                f"Batch {batch} has {len(new)} sources, and batch {before} had {len(old)}.",
            )
            continue
        earlier = {source.id: source for source in old}
        for source in new:
            change = _change(earlier.get(source.id), source)
            if change:
                yield RULE.finding(
                    f"{OFFSETS}/{batch}", f"From batch {batch} on, source {source.id} {change}."
                )


def _change(old: SourceOffset | None, new: SourceOffset) -> str | None:
    if old is None or old.offset is None or new.offset is None:
        return None
    if old.kind != new.kind and new.kind not in look_alikes(old.kind):
        return f"is {new.kind}, and was {old.kind} before"
    if not (isinstance(old.offset, dict) and isinstance(new.offset, dict)):
        return None
    return about(new).reads_another(old.offset, new.offset)
