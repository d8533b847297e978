"""Finds data files of a Delta table that VACUUM removed before the stream read them."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.delta.reach import DeltaTrouble
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation
from floodmark.rules.start_inputs.table import shortfalls

RULE = Rule(
    "FM410",
    "delta-file-gone",
    Severity.ERROR,
    finds="Data files that the table's log adds next and that are not in its folder.",
    matters="VACUUM removed files that the stream had not read.",
    restart="The batch fails on the first missing file, at every start.",
    instead="Bring the files back, or begin with a new checkpoint that reads the table again.",
)


def check(situation: Situation) -> Iterator[Finding]:
    for words in shortfalls(situation, DeltaTrouble.FILES_GONE):
        yield RULE.finding(situation.location, words)
