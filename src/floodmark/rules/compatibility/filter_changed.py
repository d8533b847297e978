"""Finds filters added, removed or changed."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.difference_words import state_words
from floodmark.rules.restarts.differences import DifferenceKind
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM310",
    "filter-changed",
    Severity.ADVICE,
    finds="Other filters than at the last start.",
    matters="Records that a filter left out are not read again, and what is in the state "
    "stays in it.",
    restart="The query starts; the new filters count from the next batch on.",
    instead="Nothing. To have the past filtered again, `floodmark rewind`.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    for one in comparison.differences_of(DifferenceKind.FILTER):
        if one.feeds is None:
            yield reason(RULE, Verdict.COMPATIBLE, one.what, one.where)
            continue
        yield reason(
            RULE,
            Verdict.UNKNOWN,
            f"{one.what} It feeds {state_words(one.feeds)}, whose state holds what the old "
            "filters let through.",
            one.where,
            why="The query starts without a warning. What was counted, seen or kept under the "
            "old filters stays so: results mix both.",
            do="If you intend that: --accept filter-changed (`check`), --allow filter-changed "
            "(`run`). Otherwise `floodmark upgrade CP NEW --without-state` begins with an empty "
            "state.",
            silent=True,
        )
