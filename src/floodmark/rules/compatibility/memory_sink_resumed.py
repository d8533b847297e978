"""Finds a memory sink on a checkpoint that has begun."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.restarts.comparison import MEMORY_SINK, Comparison
from floodmark.rules.restarts.reason import Reason, Verdict, reason
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM357",
    "memory-sink-resumed",
    Severity.ERROR,
    finds='format("memory") in append or update mode, on a checkpoint that has begun.',
    matters="The table of a memory sink ends with its process. Only complete mode writes all of "
    "it anew.",
    restart="Spark refuses each restart, also of unchanged code: 'This query does not support "
    "recovering from checkpoint location'.",
    instead="Write to a sink that keeps its rows. To look at a stream in a notebook, leave out "
    "checkpointLocation, or use complete mode.",
)
_COMPLETE = "complete"


def check(comparison: Comparison) -> Iterator[Reason]:
    new = comparison.new
    if _is_refused(new.sink, new.output_mode):
        yield reason(RULE, Verdict.NEEDS_NEW_CHECKPOINT, _words(new.output_mode), OFFSETS)


def check_start(situation: Situation) -> Iterator[Finding]:
    checkpoint = situation.checkpoint
    if checkpoint is None or checkpoint.latest_batch is None:
        return
    if _is_refused(situation.sink, situation.output_mode):
        yield RULE.finding(situation.location, _words(situation.output_mode))


def _is_refused(sink: str, output_mode: str) -> bool:
    return sink == MEMORY_SINK and output_mode.lower() != _COMPLETE


def _words(output_mode: str) -> str:
    return f"A memory sink in {output_mode.lower()} mode cannot go on from a checkpoint."
