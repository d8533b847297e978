"""Finds aggregates with the same types and another meaning."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import AGGREGATIONS, Comparison, families
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import renamed_words, spark_accepts

RULE = Rule(
    "FM323",
    "aggregates-mean-another",
    Severity.ERROR,
    finds="Another function, another column or another order of aggregates, where the "
    "types of the state stay the same.",
    matters="Spark compares types, not names and not expressions. A maximum would go on from an "
    "old sum.",
    restart="The query starts without a warning, and its results are wrong from then on.",
    instead="`floodmark migrate` corrects reordered columns. With --with, a function of yours "
    "makes new values from the old ones. Otherwise `floodmark upgrade CP NEW "
    "--without-state` begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.same_operators or _is_refused(comparison):
        return
    if comparison.has_plans:
        for one in comparison.differences_of(DifferenceKind.FUNCTIONS):
            yield reason(RULE, Verdict.NEEDS_MIGRATION, one.what, one.where, silent=True)
        return
    for held, new in comparison.pairs_of(AGGREGATIONS):
        for _, before, after in families(held, new):
            if pairs := renamed_words(before.value_json, after.value_json):
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The state's values have the same types and other names: {pairs}.",
                    f"{STATE}/{held.operator}",
                    silent=True,
                )


def _is_refused(comparison: Comparison) -> bool:
    """Whether the values have other types; another rule reports that."""
    return any(
        not spark_accepts(before.value_json, after.value_json)
        for held, new in comparison.pairs_of(AGGREGATIONS)
        for _, before, after in families(held, new)
    )
