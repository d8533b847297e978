"""Finds a sparse log, and code without asynchronous progress tracking."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Rule, Severity
from floodmark.rules.restarts.comparison import Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason

RULE = Rule(
    "FM348",
    "async-progress-dropped",
    Severity.ERROR,
    finds="An offset log with gaps at its end, and a writer without asyncProgressTrackingEnabled.",
    matters="With that option Spark logs only some batches. Without it the batch before the "
    "newest one must be logged.",
    restart="The query fails: 'batch 6 doesn't exist'.",
    instead="Start once more with the option and asyncProgressTrackingCheckpointIntervalMs=0 for "
    "two batches. Then you can remove the option.",
)


def check(comparison: Comparison) -> Iterator[Reason]:
    checkpoint = comparison.checkpoint
    latest = checkpoint.latest_batch
    option = comparison.new.sink_options.get("asyncprogresstrackingenabled", "false")
    if not latest or option.lower() == "true" or latest - 1 in checkpoint.offset_ids:
        return
    yield reason(
        RULE,
        Verdict.NEEDS_MIGRATION,
        f"offsets/{latest - 1} is missing, and Spark needs it beside offsets/{latest}.",
        f"{OFFSETS}/{latest - 1}",
        migrate=None,
    )
