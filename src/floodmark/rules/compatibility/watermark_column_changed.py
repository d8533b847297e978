"""Finds a watermark on another column."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM326",
    "watermark-column-changed",
    Severity.ERROR,
    finds="withWatermark on another column, or on one that is made in another way, than "
    "at the last start.",
    matters="The checkpoint keeps the watermark as a moment in time, of the old column.",
    restart="The query starts without a warning with the old watermark. If the new column's "
    "times run behind, every row is late and dropped; if they run ahead, Spark removes "
    "state too early.",
    instead="Make sure that the new times are not behind the checkpoint's watermark "
    "(`floodmark inspect` shows it), or begin with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    last = comparison.last
    if last is None or last.tree is None or not comparison.is_stateful:
        return
    salt = last.tree.salt
    before = last.tree.watermarks
    after = (comparison.new.tree if salt is None else comparison.new.tree.hidden(salt)).watermarks
    if len(before) != len(after):
        return
    for old, now in zip(before, after, strict=True):
        if old.column == now.column:
            continue
        how = f"was on {old.name}" if old.name != now.name else "its times are made in another way"
        yield reason(
            RULE,
            Verdict.UNKNOWN,
            f"The watermark is on {now.name}, and {how}.",
            "the plan's watermark",
            silent=True,
        )
