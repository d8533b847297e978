"""Other values in the state of an aggregation."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import AGGREGATIONS, Comparison, families
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schemas import only_nulls_differ, spark_accepts, words

RULE = Rule(
    "FM322",
    "aggregates-changed",
    Severity.ERROR,
    finds="Aggregates added, removed or of another type, so that the state's values have "
    "other columns.",
    matters="The state keeps one column, or more, for each aggregate, in their order.",
    restart="Spark refuses: STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE.",
    instead="`floodmark migrate` carries the state over: aggregates that stay keep their "
    "values, new ones begin as for a new key.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(AGGREGATIONS):
        for _, before, after in families(held, new):
            if spark_accepts(before.value_json, after.value_json):
                continue
            what = f"The state's values are {words(after.value_json)} in the new code, and "
            what += f"{words(before.value_json)} in the checkpoint."
            if only_nulls_differ(before.value_json, after.value_json):
                what = (
                    f"Some of {words(after.value_json)} may be null now, and could not be before."
                )
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                what,
                f"state/{held.operator}",
                silent=comparison.is_unchecked(held.operator),
            )
