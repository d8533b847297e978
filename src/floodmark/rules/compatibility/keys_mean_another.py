"""Finds keys with the same types and another meaning."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import (
    AGGREGATIONS,
    DEDUPLICATIONS,
    GROUP_STATES,
    TRANSFORMS,
    Comparison,
    families,
)
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schema import renamed, renamed_words, spark_accepts
from floodmark.rules.restarts.windows import window_length

RULE = Rule(
    "FM324",
    "keys-mean-another",
    Severity.ERROR,
    finds="Another column, another expression or another window behind the keys of the "
    "state, where their types stay the same.",
    matters="Spark compares types, not names and not expressions. What was counted for a "
    "customer goes on under a product of the same text.",
    restart="The query starts without a warning, and one state then holds old and new keys.",
    instead="If it is a new name only, nothing. Otherwise a function of yours makes new keys of "
    "the old ones (`floodmark migrate CP --app APP.py --skeleton` prints a MIGRATION.py to begin "
    "with), or `floodmark upgrade CP NEW --without-state` begins with an empty state.",
)


_KEYED = AGGREGATIONS | DEDUPLICATIONS | GROUP_STATES | TRANSFORMS


def check(comparison: Comparison) -> Iterator[Reason]:
    if not comparison.same_operators or _is_refused(comparison):
        return
    if comparison.has_plans:
        yield from _by_plan(comparison)
    else:
        yield from _by_state(comparison)


def _is_refused(comparison: Comparison) -> bool:
    """Whether key types or deduplication columns differ; other rules report that."""
    return any(
        not spark_accepts(before.key_json, after.key_json)
        for held, new in comparison.pairs_of(_KEYED)
        for _, before, after in families(held, new)
    ) or any(
        renamed(before.key_json, after.key_json)
        for held, new in comparison.pairs_of(DEDUPLICATIONS)
        for _, before, after in families(held, new)
    )


def _by_plan(comparison: Comparison) -> Iterator[Reason]:
    """Compare what the plans make keys of; a key that only has a new name is the same."""
    for one in comparison.differences_of(DifferenceKind.KEYS):
        # Only the user knows which new key an old one becomes.
        with_function = ("--with MIGRATION.py",)
        yield reason(
            RULE, Verdict.NEEDS_MIGRATION, one.what, one.where, silent=True, migrate=with_function
        )


def _by_state(comparison: Comparison) -> Iterator[Reason]:
    """Compare names and window lengths in the state, if there is no note of the last start."""
    for held, new in comparison.pairs_of(AGGREGATIONS | GROUP_STATES | TRANSFORMS):
        for _, before, after in families(held, new):
            if pairs := renamed_words(before.key_json, after.key_json):
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The state's keys have the same types and other names: {pairs}.",
                    f"{STATE}/{held.operator}",
                    do=f"{RULE.instead} With the code that made the checkpoint, `floodmark check "
                    "CP APP.py --old OLD.py --adopt` tells the one from the other, and notes it "
                    "for the next start.",
                    silent=True,
                )
                break
    length = window_length(comparison.new.tree)
    for operator, earlier in comparison.windows.items():
        if length is not None and earlier != length:
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"The new code's windows last {length / 1e6:g} seconds; those in the state, "
                f"{earlier / 1e6:g}.",
                f"{STATE}/{operator}",
                silent=True,
            )
