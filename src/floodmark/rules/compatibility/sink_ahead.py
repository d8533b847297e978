"""Finds an output folder whose log is ahead of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM317",
    "sink-ahead",
    Severity.ERROR,
    finds="A file sink whose _spark_metadata has batches with higher numbers than the checkpoint.",
    matters="A file sink skips every batch whose number its log has already.",
    restart="It starts, and writes nothing until its batch numbers pass those of the "
    "folder. The records of those batches are lost.",
    instead="Write to another folder, or begin with a checkpoint that goes on with its "
    "numbering: `floodmark upgrade` without --restart-numbering.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    planned = comparison.checkpoint.latest_batch
    ahead = comparison.sink_batch
    if ahead is not None and planned is not None and ahead > planned:
        yield reason(
            RULE,
            Verdict.NEEDS_NEW_CHECKPOINT,
            f"The output folder's log is at batch {ahead}, and the checkpoint at {planned}: "
            f"batches {planned + 1} to {ahead} would be skipped.",
            f"{comparison.new.sink_options.get('path')}/_spark_metadata/{ahead}",
            silent=True,
        )
