"""Runs the rules of compatibility: what changed, and what that leads to, all of it together."""

from __future__ import annotations

from floodmark.rules.registry import rules_of
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import (
    Judgement,
    Reason,
    Verdict,
    accepted,
    in_order,
    worst,
)

# What only the real sources can tell: others stood in for them.
_OF_SOURCES = ("source-kind-changed", "source-place-changed", "sources-reordered")

# Sources that are others, or stand elsewhere: no state can make up for that.
_BOUND_TO_SOURCES = ("source-count-changed", "source-kind-changed", "sources-reordered")


def other_sources(comparison: Comparison) -> tuple[Reason, ...]:
    """Why the offsets of a checkpoint are not those of the new code's sources."""
    return in_order(
        [
            found
            for known in rules_of("compatibility")
            if known.rule.name in _BOUND_TO_SOURCES
            for found in known.check(comparison)
            if found.verdict is Verdict.NEEDS_NEW_CHECKPOINT
        ]
    )


def judge_restart(comparison: Comparison, accept: frozenset[str] = frozenset()) -> Judgement:
    """`accept` names rules whose silent changes are meant."""
    found: list[Reason] = []
    if comparison.checkpoint.latest_batch is not None:  # a checkpoint without a batch binds nobody
        for known in rules_of("compatibility"):
            found.extend(known.check(comparison))
    found = [accepted(one) if one.rule in accept else one for one in found]
    not_compared = comparison.not_compared if found else ()
    rehearsal = comparison.rehearsal
    if rehearsal is None:
        return Judgement(worst(found), "rules", in_order(found), not_compared)
    if rehearsal.ran:
        # Spark has the last word: what it was said to refuse, it did not.
        found = [
            one
            for one in found
            if not one.is_refused or (one.rule in _OF_SOURCES and not rehearsal.real_sources)
        ]
    return Judgement(worst(found), "rehearsal", in_order(found), not_compared)
