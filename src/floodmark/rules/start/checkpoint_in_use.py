"""Finds a checkpoint that another run uses now."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM401",
    "checkpoint-in-use",
    Severity.ERROR,
    finds="A lease on the checkpoint that a live run holds.",
    matters="A checkpoint belongs to one query: two runs would write the same batch numbers.",
    restart="Both run the next batch. One ends with CONCURRENT_STREAM_LOG_UPDATE, and a sink that "
    "does not remember batches gets it twice.",
    instead="Stop the other run. --allow checkpoint-in-use takes the checkpoint over, and the "
    "other run stops.",
)


def check(situation: Situation) -> Iterator[Finding]:
    found = situation.in_use
    if found is not None:
        yield RULE.finding(situation.location, found.what, why=found.why, do=found.do)
