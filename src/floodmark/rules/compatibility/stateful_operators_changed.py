"""Stateful operators added, removed or in another order."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, is_same_kind, operator_kind
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM320",
    "stateful-operators-changed",
    Severity.ERROR,
    finds="Other stateful operators than the checkpoint has state of.",
    matters="State belongs to an operator by its number, counted from the sink. One more or "
    "one less shifts the rest.",
    restart="Spark 4.0 and later refuse "
    "(STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA, and 4.2 also "
    "_MISSING_STATE_DIRECTORY); earlier ones fail on state files that are not "
    "there, or read another operator's.",
    instead="Go on with a new checkpoint and an empty state: `floodmark upgrade "
    "--without-state`. To keep "
    "what an operator has, leave the operators as they are.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    held, new = comparison.held, comparison.new.operators
    before = [operator_kind(one) for one in held]
    after = [operator_kind(one) for one in new]
    if len(held) == len(new) and all(is_same_kind(one, other) for one, other in comparison.pairs()):
        return
    yield reason(
        RULE,
        Verdict.NEEDS_NEW_CHECKPOINT,
        f"The new code keeps state in {_words(after)}; the checkpoint has state of "
        f"{_words(before)}.",
        "state",
    )


def _words(kinds: list[str]) -> str:
    return ", then ".join(kinds) or "no operator"
