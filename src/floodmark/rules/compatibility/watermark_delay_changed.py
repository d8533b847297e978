"""Finds a changed delay of the watermark."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import delays

RULE = Rule(
    "FM325",
    "watermark-delay-changed",
    Severity.WARNING,
    finds="withWatermark with another delay than before.",
    matters="The delay decides which rows are late, and when Spark removes state.",
    restart="The query starts without a warning. A shorter delay drops rows that would have "
    "counted and closes windows sooner; a longer one does not bring removed state back. The "
    "watermark itself never goes back.",
    instead="Nothing, if you intend that.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    before, after = _delays(comparison)
    if len(before) != len(after):
        return
    for old, now in zip(before, after, strict=True):
        if old != now:
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"The watermark's delay is {_words(now)}, and was {_words(old)}.",
                "the plan's watermark",
                silent=True,
            )


def _delays(comparison: Comparison) -> tuple[list[int], list[int]]:
    if comparison.last is not None and comparison.last.tree is not None:
        return (
            [one.delay_ms or 0 for one in comparison.last.tree.watermarks],
            [one.delay_ms or 0 for one in comparison.new.tree.watermarks],
        )
    # Without a note: the metadata of a key with the event time has the delay.
    old_delays: list[int] = []
    new_delays: list[int] = []
    for held, now in comparison.pairs():
        for store, families in held.stores.items():
            old_delays += [one for family in families for one in delays(family.key_json)]
            new_delays += [
                one for family in now.stores.get(store, ()) for one in delays(family.key_json)
            ]
    return old_delays, new_delays


def _words(delay_ms: int) -> str:
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000)):
        if delay_ms and delay_ms % size == 0:
            number = delay_ms // size
            return f"{number} {unit}{'s' if number > 1 else ''}"
    return f"{delay_ms / 1000:g} seconds"
