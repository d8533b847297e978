"""Finds a changed time mode or output mode of transformWithState."""

from __future__ import annotations

import json
from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import TRANSFORMS, Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM336",
    "time-mode-changed",
    Severity.ERROR,
    finds="transformWithState with another time mode or output mode than its metadata has.",
    matters="Both stand in the metadata of the operator: timers and timeouts depend on them.",
    restart="Spark refuses: STATE_STORE_INVALID_CONFIG_AFTER_RESTART.",
    instead="Set them back, or let `floodmark migrate` make a checkpoint with the new ones: "
    "variables keep their values. Timers of another time mode are dropped, with --accept "
    "dropped-field.",
)


_NO_TIME = "NoTime"


def check(comparison: Comparison) -> Iterator[Reason]:
    for held, new in comparison.pairs_of(TRANSFORMS):
        before, after = _properties(held.properties_json), _properties(new.properties_json)
        for key, name in (("timeMode", "time mode"), ("outputMode", "output mode")):
            if key in before and key in after and before[key] != after[key]:
                timers = key == "timeMode" and before[key] != _NO_TIME
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The {name} is {after[key]}, and was {before[key]}.",
                    f"{STATE}/{held.operator}",
                    migrate=("--accept dropped-field",) if timers else (),
                )


def _properties(text: str) -> dict[str, object]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
