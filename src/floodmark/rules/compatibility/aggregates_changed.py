"""Finds aggregates that change the columns of an aggregation's state."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import AGGREGATIONS, Comparison, families
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, spark_accepts

RULE = Rule(
    "FM322",
    "aggregates-changed",
    Severity.ERROR,
    finds="Aggregates added, removed or of another type, so that the state's values have "
    "other columns.",
    matters="The state keeps one or more columns for each aggregate, in the order of the "
    "aggregates.",
    restart="Spark refuses: STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE.",
    instead="`floodmark migrate` carries the state over: aggregates that stay keep their "
    "values, new ones begin as for a new key.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(AGGREGATIONS):
        for _, before, after in families(held, new):
            if spark_accepts(before.value_json, after.value_json):
                continue
            what = f"The state's values: {difference(before.value_json, after.value_json)}."
            functions = comparison.differences_of(DifferenceKind.FUNCTIONS)
            if functions:  # the plans name the functions as the code does
                what = f"{functions[0].what} {what}"
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                what,
                f"{STATE}/{held.operator}",
                silent=comparison.is_unchecked(held.operator),
            )
