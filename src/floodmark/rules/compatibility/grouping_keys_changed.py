"""Finds changed keys of the state."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import (
    AGGREGATIONS,
    GROUP_STATES,
    TRANSFORMS,
    Comparison,
    families,
)
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, names, spark_accepts

RULE = Rule(
    "FM321",
    "grouping-keys-changed",
    Severity.ERROR,
    finds="A grouping by more, fewer or other types of columns than the state's keys have.",
    matters="State is found by its key, byte by byte.",
    restart="Spark refuses: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE.",
    instead="`floodmark migrate` carries the state over if keys are left out, widened or "
    "renamed. Nothing can make keys that the old state does not have: `floodmark upgrade CP "
    "NEW --without-state` begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(AGGREGATIONS | GROUP_STATES | TRANSFORMS):
        for _, before, after in families(held, new):
            if spark_accepts(before.key_json, after.key_json):
                continue
            more = set(names(after.key_json)) - set(names(before.key_json))
            finer = bool(more) and len(names(after.key_json)) > len(names(before.key_json))
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT if finer else Verdict.NEEDS_MIGRATION,
                f"The state's keys: {difference(before.key_json, after.key_json)}.",
                f"{STATE}/{held.operator}",
                silent=comparison.is_unchecked(held.operator),
            )
            break  # every variable of one operator has the same key
