"""Finds changed columns on a side of a join of two streams."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import JOIN_TIMED_VALUES, JOIN_VALUES, STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import JOINS, Comparison, families
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, is_same, spark_accepts

RULE = Rule(
    "FM332",
    "join-columns-changed",
    Severity.ERROR,
    finds="A side of a join with other columns than its rows in the state have.",
    matters="Whole rows wait in the state for their partner.",
    restart="Spark refuses other types and numbers: "
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE. Other columns of the same types start "
    "without a warning, and rows that wait come out under the new names.",
    instead="`floodmark migrate` carries the rows over: columns that stay keep their "
    "values, new ones are null.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(JOINS):
        for store, before, after in families(held, new):
            if not store.endswith((JOIN_VALUES, JOIN_TIMED_VALUES)):
                continue
            if is_same(before.value_json, after.value_json):
                continue
            if comparison.is_renamed_only and spark_accepts(before.value_json, after.value_json):
                continue
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"The columns of the {store.partition('-')[0]} side: "
                f"{difference(before.value_json, after.value_json)}.",
                f"{STATE}/{held.operator}",
                silent=spark_accepts(before.value_json, after.value_json)
                or comparison.is_unchecked(held.operator),
            )
