"""Finds a moved checkpoint whose state Spark does not check."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OPERATOR_METADATA, STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM347",
    "moved-state-schema",
    Severity.WARNING,
    finds="State whose metadata names its schema files by a path of another place.",
    matters="The paths are absolute. A checkpoint that was copied by hand still names the "
    "old place.",
    restart="Spark does not find the schemas, compares nothing, writes new ones, and even "
    "makes folders at the old place.",
    instead="Copy checkpoints with `floodmark copy`, which puts the paths right; `floodmark "
    "repair` does it afterwards.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for held in comparison.held:
        if comparison.is_moved(held.operator):
            yield reason(
                RULE,
                Verdict.COMPATIBLE,
                f"Operator {held.operator}'s metadata names schema files of another place: Spark "
                "would not compare its state with the new code.",
                f"{STATE}/{held.operator}/{OPERATOR_METADATA}",
                silent=True,
            )
