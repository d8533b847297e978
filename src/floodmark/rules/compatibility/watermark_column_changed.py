"""A watermark on another column."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.plans import below, definitions, redefined
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM326",
    "watermark-column-changed",
    Severity.ERROR,
    finds="withWatermark on another column, or on one that is made in another way, than "
    "at the last start.",
    matters="The checkpoint keeps the watermark as a moment in time, of the old column.",
    restart="It starts without a word with the old watermark. If the new column's times run "
    "behind, every row is late and dropped; if they run ahead, state goes too soon.",
    instead="Make sure that the new times are not behind the checkpoint's watermark "
    "(`floodmark inspect` shows it), or begin with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.has_plans or comparison.last is None or not comparison.is_stateful:
        return
    before = comparison.last.nodes_of("EventTimeWatermark")
    after = comparison.new.nodes_of("EventTimeWatermark")
    if len(before) != len(after):
        return
    old_nodes, new_nodes = comparison.last.nodes or (), comparison.new.nodes
    for old, now in zip(before, after, strict=True):
        column, earlier = str(now.details.get("column")), str(old.details.get("column"))
        made = redefined(
            definitions(below(old_nodes, old)), definitions(below(new_nodes, now)), [column]
        )
        if column != earlier or made:
            how = f"was on {earlier}" if column != earlier else "its times are made in another way"
            yield reason(
                RULE,
                Verdict.UNKNOWN,
                f"The watermark is on {column}, and {how}.",
                "the plan's watermark",
                silent=True,
            )
