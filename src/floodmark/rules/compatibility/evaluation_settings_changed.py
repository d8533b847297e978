"""Finds settings of the session that change what expressions give."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.outline import evaluating
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, change_words
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM355",
    "evaluation-settings-changed",
    Severity.WARNING,
    finds="Another time zone, ANSI mode, case sensitivity or legacy flag of the session than "
    "at the last start.",
    matters="The same code then parses dates in another zone, overflows in another way, or "
    "finds other columns: keys and sums mean something else.",
    restart="It starts without a warning. The checkpoint pins none of these settings.",
    instead="Set it as it was. If the new value is meant: --accept evaluation-settings-changed "
    "(`check`), --allow evaluation-settings-changed (`run`).",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if comparison.last is None:
        return
    before, after = comparison.last.conf, comparison.new.conf
    for key in sorted(evaluating({**before, **after})):
        if before.get(key) == after.get(key):
            continue
        what = f"{change_words(key, before.get(key), after.get(key))}."
        if not comparison.is_stateful:
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                what,
                "the session",
                why="It starts; the new value counts from the next batch on.",
                do="Nothing, if that is meant.",
            )
            continue
        yield reason(RULE, Verdict.UNKNOWN, what, "the session", silent=True)
