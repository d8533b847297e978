"""Finds an output folder whose log is ahead of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.sinks import goes_by_number
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM317",
    "sink-ahead",
    Severity.ERROR,
    finds="A file sink or a Delta table that has batches with higher numbers than the checkpoint: "
    "another copy of the checkpoint has run on, after an upgrade say.",
    matters="A file sink skips every batch whose number its log has already, a Delta table every "
    "one that it has of this query's id.",
    restart="It starts, and writes nothing until its batch numbers pass those of the "
    "sink. The records of those batches are lost.",
    instead="Go on with the checkpoint that ran on. Or go on from this one under a new id: "
    "`floodmark upgrade CP NEW --new-identity`; a Delta table then gets the records since "
    "a second time, so take them out of it first. A file sink needs another folder as well.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    planned = comparison.checkpoint.latest_batch
    ahead = comparison.sink_batch
    by_number = goes_by_number(comparison.new.sink)
    log = f"/_spark_metadata/{ahead}" if by_number else "/_delta_log"
    if ahead is not None and planned is not None and ahead > planned:
        yield reason(
            RULE,
            Verdict.NEEDS_NEW_CHECKPOINT,
            f"The sink has batch {ahead}, and the checkpoint is at {planned}: batches "
            f"{planned + 1} to {ahead} would be skipped.",
            f"{comparison.new.sink_options.get('path')}{log}",
            silent=True,
        )
