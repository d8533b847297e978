"""Finds a changed state schema of groups."""

from __future__ import annotations

import json
from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import GROUP_STATES, Comparison, families
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import difference, fields, renamed, spark_accepts

RULE = Rule(
    "FM333",
    "group-state-changed",
    Severity.ERROR,
    finds="flatMapGroupsWithState or applyInPandasWithState with another state schema.",
    matters="The state is one value of that schema for each group.",
    restart="Spark refuses: STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE. New names for the same "
    "types start without a warning.",
    instead="`migrate --with` makes new states of the old ones; `migrate "
    "--skeleton` writes the function as it begins. What the function does is free "
    "to change.",
)


_TIMEOUT = "timeoutTimestamp"


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(GROUP_STATES):
        for _, before, after in families(held, new):
            old, now = _without_timeout(before.value_json), _without_timeout(after.value_json)
            accepted = spark_accepts(old, now)
            if accepted and not renamed(old, now):
                continue
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"A group's state: {difference(old, now)}.",
                f"{STATE}/{held.operator}",
                silent=accepted or comparison.is_unchecked(held.operator),
            )


def _without_timeout(schema_json: str) -> str:
    kept = [one for one in fields(schema_json) if one.get("name") != _TIMEOUT]
    return json.dumps({"type": "struct", "fields": kept})
