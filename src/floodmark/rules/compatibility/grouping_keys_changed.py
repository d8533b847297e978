"""Other keys of the state."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import (
    AGGREGATIONS,
    GROUP_STATES,
    TRANSFORMS,
    Comparison,
    families,
)
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schemas import names, only_nulls_differ, spark_accepts, words

RULE = Rule(
    "FM321",
    "grouping-keys-changed",
    Severity.ERROR,
    finds="A grouping by more, fewer or other types of columns than the state's keys have.",
    matters="State is found by its key, byte by byte.",
    restart="Spark refuses: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE.",
    instead="`floodmark migrate` carries the state over where keys are left out, widened or "
    "renamed. Keys that the old state does not have cannot be made from it: "
    "`floodmark upgrade --without-state` begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(AGGREGATIONS | GROUP_STATES | TRANSFORMS):
        for _, before, after in families(held, new):
            if spark_accepts(before.key_json, after.key_json):
                continue
            more = set(names(after.key_json)) - set(names(before.key_json))
            finer = bool(more) and len(names(after.key_json)) > len(names(before.key_json))
            what = f"The state's keys are {words(after.key_json)} in the new code, and "
            what += f"{words(before.key_json)} in the checkpoint."
            if only_nulls_differ(before.key_json, after.key_json):
                what = f"The keys {words(after.key_json)} may be null now, and could not be before."
            yield reason(
                RULE,
                Verdict.NEEDS_NEW_CHECKPOINT if finer else Verdict.NEEDS_MIGRATION,
                what,
                f"state/{held.operator}",
                silent=comparison.is_unchecked(held.operator),
            )
            break  # every variable of one operator has the same key
