"""The same sources in another order."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.outline import SourceOutline
from floodmark.checkpoint.sources import SourceKind
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM303",
    "sources-reordered",
    Severity.ERROR,
    finds="Sources of one kind that have changed places.",
    matters="Spark knows sources by their place in the plan. Each would go on from the "
    "other's offsets.",
    restart="It starts without a word where both are files; Kafka fails on partitions that "
    "are gone, or skips and repeats records.",
    instead="Put the sources back into their order: union, join and select them as before. "
    "Spark 4.2 and later can name them.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    new = comparison.new.sources
    if comparison.named_sources() or len(new) < 2:
        return
    before = _before(comparison)
    after = [_place(one) for one in new]
    if len(before) != len(after) or before == after or sorted(before) != sorted(after):
        return
    for at, (old, now) in enumerate(zip(before, after, strict=True)):
        if old != now:
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT,
                f"Source {at} reads {now} in the new code; it was {old}, which is now source "
                f"{after.index(old)}.",
                f"sources/{at}",
                silent=now.split(" ")[0] == old.split(" ")[0],
            )


def _before(comparison: Comparison) -> list[str]:
    if comparison.last is not None:
        return [_place(one) for one in comparison.last.sources]
    # Without a note Kafka's offsets still tell their topics.
    held = comparison.checkpoint.sources
    if all(one.kind is SourceKind.KAFKA and isinstance(one.offset, dict) for one in held):
        return [f"kafka {','.join(sorted(one.offset))}" for one in held]
    return []


def _place(source: SourceOutline) -> str:
    place = source.place or ""
    if source.kind == "kafka":
        place = ",".join(sorted(topic.strip() for topic in place.split(",")))
    return f"{source.kind} {place}".rstrip()
