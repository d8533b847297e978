"""Finds stateful operators added, removed or in another order."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.operator_kinds import UNKNOWN, kind_of
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison, is_same_kind, operator_kind
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM320",
    "stateful-operators-changed",
    Severity.ERROR,
    finds="Other stateful operators than the checkpoint has state of.",
    matters="State belongs to an operator by its number, counted from the sink. One operator "
    "more or less shifts the others.",
    restart="Spark 4.0 and later refuse "
    "(STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA, and 4.2 also "
    "_MISSING_STATE_DIRECTORY); earlier ones fail on missing state files, or read another "
    "operator's.",
    instead="`floodmark migrate` carries the state of the operators that stay. One that is new "
    "begins empty; one that is gone is dropped with --accept dropped-operator. If no "
    "operator stays, or nobody can say which of several is which, `floodmark upgrade CP NEW "
    "--without-state` begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    held, new = comparison.held, comparison.new.operators
    before = [operator_kind(one) for one in held]
    after = [operator_kind(one) for one in new]
    if len(held) == len(new) and all(is_same_kind(one, other) for one, other in comparison.pairs()):
        return
    carried = _is_carried(comparison)
    removed = len(list(comparison.matched())) < len(held)
    yield reason(
        RULE,
        Verdict.NEEDS_MIGRATION if carried else Verdict.NEEDS_NEW_CHECKPOINT,
        f"The new code keeps state in {_words(after)}; the checkpoint has state of "
        f"{_words(before)}.",
        "state",
        migrate=("--accept dropped-operator",) if carried and removed else (),
    )


def _is_carried(comparison: Comparison) -> bool:
    """Whether `migrate` can match the operators: some stay, or there were none, and all are
    clear.
    """
    before, after = ([kind_of(operator_kind(one)) for one in ops] for ops in comparison.operators)
    stay = not before or bool(list(comparison.matched()))
    return stay and UNKNOWN not in (*before, *after)


def _words(kinds: list[str]) -> str:
    return ", then ".join(kinds) or "no operator"
