"""Finds changed columns of dropDuplicates."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import DEDUPLICATIONS, Comparison, families
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, is_same, names, spark_accepts

RULE = Rule(
    "FM328",
    "dedup-columns-changed",
    Severity.ERROR,
    finds="Deduplication by more, fewer or other columns than the state's keys have, or by the "
    "same in another order.",
    matters="The state is the set of seen keys: those columns in their order. Five columns or "
    "more have an order of Spark's own: Spark 3 (Scala 2.12), Spark 4.0 to 4.2 (Scala 2.13) "
    "and Spark 4.3 (as the code has them) each have another one (SPARK-57489).",
    restart="Spark refuses other types and numbers of columns: "
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE. Other columns of the same types, or another "
    "order of them, start without a warning, and Spark no longer recognises what it has "
    "seen.",
    instead="If columns are left out or have another order, `floodmark migrate` carries the seen "
    "keys over. Nothing can make columns that the state never had: `floodmark upgrade CP "
    "NEW --without-state` begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(DEDUPLICATIONS):
        for _, before, after in families(held, new):
            if is_same(before.key_json, after.key_json):
                continue
            if comparison.is_renamed_only and spark_accepts(before.key_json, after.key_json):
                continue
            fewer = set(names(after.key_json)) <= set(names(before.key_json))
            same_number = len(names(after.key_json)) == len(names(before.key_json))
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION if fewer or same_number else Verdict.NEEDS_NEW_CHECKPOINT,
                f"The columns of the deduplication: {difference(before.key_json, after.key_json)}.",
                f"{STATE}/{held.operator}",
                silent=spark_accepts(before.key_json, after.key_json)
                or comparison.is_unchecked(held.operator),
            )
