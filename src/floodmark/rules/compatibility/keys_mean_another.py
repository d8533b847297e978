"""Keys of the same types that mean something else."""

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
from floodmark.rules.restarts.plans import (
    below,
    definitions,
    keys_of,
    names_in,
    redefined,
    stateful,
    window_length,
)
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schemas import renamed, spark_accepts

RULE = Rule(
    "FM324",
    "keys-mean-another",
    Severity.ERROR,
    finds="Another column, another expression or another window behind the keys of the "
    "state, where their types stay the same.",
    matters="Spark compares types, not names and not expressions. What was counted for a "
    "customer goes on under a product of the same text.",
    restart="It starts without a word, and old and new keys lie in one state.",
    instead="If it is a new name only, nothing. Otherwise `floodmark migrate --with` makes "
    "new keys of the old ones, or `floodmark upgrade --without-state` begins with an empty state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    said = False
    for held, new in comparison.pairs_of(AGGREGATIONS | GROUP_STATES | TRANSFORMS):
        for _, before, after in families(held, new):
            if not spark_accepts(before.key_json, after.key_json):
                said = True
                break
            others = renamed(before.key_json, after.key_json)
            if others:
                said = True
                pairs = ", ".join(f"{old} becomes {now}" for old, now in others)
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The state's keys have the same types and other names: {pairs}.",
                    f"state/{held.operator}",
                    silent=True,
                )
                break
    if said or not comparison.same_operators:
        return
    if comparison.has_plans:
        yield from _by_plan(comparison)
    else:
        yield from _by_state(comparison)


def _by_state(comparison: Comparison) -> Iterator[Reason]:
    """Without a note of the last start the state still tells how long its windows last."""
    after = window_length(comparison.new.nodes)
    for operator, before in comparison.windows.items():
        if after is not None and before != after:
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"The new code's windows last {after / 1e6:g} seconds; those in the state, "
                f"{before / 1e6:g}.",
                f"state/{operator}",
                silent=True,
            )


def _by_plan(comparison: Comparison) -> Iterator[Reason]:
    assert comparison.last is not None
    old_nodes, new_nodes = comparison.last.nodes or (), comparison.new.nodes
    before, after = stateful(old_nodes), stateful(new_nodes)
    if [one.kind for one in before] != [one.kind for one in after]:
        return
    for old, now in zip(before, after, strict=True):
        if old.kind == "Join":
            continue
        keys = keys_of(now)
        if old.kind == "Aggregate" and keys_of(old) != keys:
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"The rows are grouped by {', '.join(keys)}; before, by {', '.join(keys_of(old))}.",
                "the plan's grouping",
                silent=True,
            )
            continue
        earlier, later = definitions(below(old_nodes, old)), definitions(below(new_nodes, now))
        wanted = {name for key in keys for name in names_in(key)}
        for column in redefined(earlier, later, wanted):
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"{column}, which the keys depend on, is made in another way"
                f"{_window_words(column)}.",
                "the plan's projections",
                silent=True,
            )


def _window_words(column: str) -> str:
    if column == "window":
        return ": the windows have another length, slide or start"
    return ": the sessions have another gap" if column == "session_window" else ""
