"""Finds what the Delta tables of a query lack of what it reads next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from floodmark.connectors.delta.offset import parse_delta_offset
from floodmark.connectors.delta.reach import DeltaTrouble, shortfall
from floodmark.errors import MalformedFile
from floodmark.rules.finding import Finding, Rule
from floodmark.rules.start_inputs.situation import Situation


def _shortfalls(situation: Situation, *troubles: DeltaTrouble) -> Iterator[str]:
    """Say of each table that has one of these troubles what is gone."""
    for source in situation.of_kind("delta"):
        table = situation.outside.tables.get(source.id)
        if table is None or source.position is None:
            continue
        try:
            found = shortfall(parse_delta_offset(source.position.offset), table)
        except MalformedFile:
            continue  # the doctor reports it
        if found is not None and found.trouble in troubles:
            yield found.words


def by_trouble(
    rule: Rule, *troubles: DeltaTrouble, why: str | None = None, do: str | None = None
) -> Callable[[Situation], Iterator[Finding]]:
    """Return the check of a rule that refuses a start for these troubles of a table."""

    def check(situation: Situation) -> Iterator[Finding]:
        for words in _shortfalls(situation, *troubles):
            yield rule.finding(situation.location, words, why=why, do=do)

    return check
