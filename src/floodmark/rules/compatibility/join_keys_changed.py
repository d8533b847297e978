"""Finds changed keys of a join of two streams."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import JOIN_COUNTS, JOIN_TIMED_VALUES, STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import JOINS, Comparison, families
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, names, spark_accepts

RULE = Rule(
    "FM329",
    "join-keys-changed",
    Severity.ERROR,
    finds="Equalities of a join of two streams of another number or type.",
    matters="Both sides are kept by the columns that are equal.",
    restart="Spark refuses: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE.",
    instead="Rows that wait in the state cannot be found by other keys: `floodmark upgrade CP "
    "NEW --without-state` begins with an empty state. If types were only widened, "
    "`floodmark migrate` carries the state over.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(JOINS):
        for store, before, after in families(held, new):
            if not store.endswith((JOIN_COUNTS, JOIN_TIMED_VALUES)):
                continue
            if spark_accepts(before.key_json, after.key_json):
                continue
            same = len(names(before.key_json)) == len(names(after.key_json))
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION if same else Verdict.NEEDS_NEW_CHECKPOINT,
                f"The join's keys: {difference(before.key_json, after.key_json)}.",
                f"{STATE}/{held.operator}",
                silent=comparison.is_unchecked(held.operator),
            )
            return
