"""Finds an output folder whose log is ahead of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.connectors.delta.offset import TABLE_LOG
from floodmark.connectors.files.file_log import SINK_LOG
from floodmark.connectors.sink_memory import goes_by_number
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM317",
    "sink-ahead",
    Severity.ERROR,
    finds="A file sink or a Delta table that has batches with higher numbers than the "
    "checkpoint: another copy of the checkpoint has run on, for example after an upgrade.",
    matters="A file sink skips every batch whose number is in its log. A Delta table skips every "
    "batch that it has of this query's id.",
    restart="The query starts, and writes nothing until its batch numbers pass those of the "
    "sink. The records of those batches are lost.",
    instead="Use the newer copy of the checkpoint. Or go on from this one under a new id: "
    "`floodmark upgrade CP NEW --new-identity`. A Delta table then gets the newer records a "
    "second time, so delete them from it first. A file sink needs another folder as well.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    planned = comparison.checkpoint.latest_batch
    ahead = comparison.sink_batch
    by_number = goes_by_number(comparison.new.sink)
    log = f"/{SINK_LOG}/{ahead}" if by_number else f"/{TABLE_LOG}"
    if ahead is not None and planned is not None and ahead > planned:
        yield reason(
            RULE,
            Verdict.NEEDS_NEW_CHECKPOINT,
            f"The sink has batch {ahead}, but the checkpoint is at {planned}: batches "
            f"{planned + 1} to {ahead} would be skipped.",
            f"{comparison.new.sink_options.get('path')}{log}",
            silent=True,
        )
