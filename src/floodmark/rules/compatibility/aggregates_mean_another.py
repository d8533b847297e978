"""Aggregates of the same types that mean something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import AGGREGATIONS, Comparison, families
from floodmark.rules.restarts.plans import definitions, names_in, redefined
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.restarts.schemas import renamed, spark_accepts

RULE = Rule(
    "FM323",
    "aggregates-mean-another",
    Severity.ERROR,
    finds="Another function, another column or another order of aggregates, where the "
    "types of the state stay the same.",
    matters="Spark compares types, not names and not expressions. A maximum goes on from "
    "what was a sum.",
    restart="It starts without a word, and its results are wrong from then on.",
    instead="`floodmark migrate` puts reordered columns right; with --with a function makes "
    "new values of the old ones. Otherwise `floodmark upgrade --without-state` begins with an "
    "empty "
    "state.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    said = False
    for held, new in comparison.pairs_of(AGGREGATIONS):
        for _, before, after in families(held, new):
            if not spark_accepts(before.value_json, after.value_json):
                said = True
                continue
            others = renamed(before.value_json, after.value_json)
            if others:
                said = True
                pairs = ", ".join(f"{old} becomes {now}" for old, now in others)
                yield reason(
                    RULE,
                    Verdict.NEEDS_MIGRATION,
                    f"The state's values have the same types and other names: {pairs}.",
                    f"state/{held.operator}",
                    silent=True,
                )
    if not said and comparison.same_operators and comparison.has_plans:
        yield from _by_plan(comparison)


def _by_plan(comparison: Comparison) -> Iterator[Reason]:
    assert comparison.last is not None
    before = comparison.last.nodes_of("Aggregate")
    after = comparison.new.nodes_of("Aggregate")
    if len(before) != len(after):
        return
    old_columns = definitions(comparison.last.nodes or ())
    new_columns = definitions(comparison.new.nodes)
    for old, now in zip(before, after, strict=True):
        functions = [str(one) for one in now.details.get("functions", ())]
        earlier = [str(one) for one in old.details.get("functions", ())]
        if earlier != functions:
            how = "in another order" if sorted(earlier) == sorted(functions) else "changed"
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"The aggregates are {how}: {', '.join(functions)}; they were "
                f"{', '.join(earlier)}.",
                "the plan's aggregates",
                silent=True,
            )
            continue
        mentioned = {name for text in functions for name in names_in(text)}
        for column in redefined(old_columns, new_columns, mentioned - _grouped(now.details)):
            yield reason(
                RULE,
                Verdict.NEEDS_MIGRATION,
                f"{column}, which is aggregated, is made in another way: "
                f"{_made(new_columns, column)}; it was {_made(old_columns, column)}.",
                "the plan's projections",
                silent=True,
            )


def _grouped(details: Mapping[str, Any]) -> set[str]:
    return {name for text in details.get("grouping", ()) for name in names_in(str(text))}


def _made(columns: dict[str, tuple[str, ...]], name: str) -> str:
    return " of ".join(columns.get(name, ())) or "as the source gives it"
