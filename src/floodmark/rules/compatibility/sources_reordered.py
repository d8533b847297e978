"""Finds the same sources in another order."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import SOURCES
from floodmark.checkpoint.outline import SourceOutline
from floodmark.connectors.registry import about, kind_named
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, reads, refuses_other_files
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM303",
    "sources-reordered",
    Severity.ERROR,
    finds="Sources of one kind that have changed places.",
    matters="Spark knows sources by their place in the plan. Each would go on from the "
    "other's offsets.",
    restart="Two folders fail with 'Wrong basePath' if the last batch had files, Kafka on "
    "partitions that are gone. After a batch without files, with globs, and with Kafka's "
    "failOnDataLoss=false it starts without a warning: records are skipped and repeated.",
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
                f"{SOURCES}/{at}",
                silent=_is_silent(comparison, at),
            )


def _is_silent(comparison: Comparison, at: int) -> bool:
    """Whether the source takes the other's offset without a warning."""
    now = comparison.new.sources[at]
    noted = comparison.last.sources if comparison.last is not None else ()
    before = noted[at] if noted else None
    if kind_named(now.kind).has_topics:
        return now.options.get("failondataloss", "true").lower() == "false"
    if before is not None and before.kind != now.kind:
        return False
    return not refuses_other_files(now, before)


def _before(comparison: Comparison) -> list[str]:
    if comparison.last is not None and comparison.last.sources:
        return [_place(one) for one in comparison.last.sources]
    found = [_held(comparison, at) for at in range(len(comparison.checkpoint.sources))]
    return [place for place in found if place is not None]


def _held(comparison: Comparison, at: int) -> str | None:
    """Without a note Kafka's offsets tell their topics, and lists of files their folder."""
    held, new = comparison.checkpoint.sources[at], comparison.new.sources
    if about(held).has_topics and isinstance(held.offset, dict):
        return f"{held.kind} {','.join(sorted(held.offset))}"
    file = comparison.seen.get(at)
    if file is None:
        return None
    own_place_first = sorted(range(len(new)), key=lambda one: one != at)
    return next((_place(new[one]) for one in own_place_first if reads(new[one], file)), None)


def _place(source: SourceOutline) -> str:
    place = source.place or ""
    if kind_named(source.kind).has_topics:
        place = ",".join(sorted(topic.strip() for topic in place.split(",")))
    return f"{source.kind} {place}".rstrip()
