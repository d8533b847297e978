"""Finds a query without the checkpoint that its sink needs."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import DEFAULT_CHECKPOINT_LOCATION
from floodmark.rules.code.facts import Code, Stream
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM206",
    "missing-checkpoint",
    Severity.ERROR,
    finds="A query that is started without a checkpointLocation, on a sink that keeps its output.",
    matters="Without one, Spark refuses (files, Kafka, Delta), or makes a temporary one that is "
    "gone after the run (foreach, foreachBatch).",
    restart="The query starts over, and writes again what it had written.",
    instead='.option("checkpointLocation", path), with a path that stays the same.',
)


def check(code: Code) -> Iterator[Finding]:
    if code.conf(DEFAULT_CHECKPOINT_LOCATION) is not None:
        return
    for stream in code.streams:
        if stream.started_at is None or stream.checkpoint or not stream.options_known:
            continue
        if stream.misspelt_checkpoint:
            continue  # misspelt-checkpoint-option reports it
        sink = _sink(stream) if stream.keeps_output else None
        if sink is not None:
            yield RULE.finding(
                code.path,
                f"This query writes to {sink} and has no checkpointLocation.",
                line=stream.started_at,
            )


def _sink(stream: Stream) -> str | None:
    if stream.each:
        return "foreachBatch" if stream.batch_function else "foreach or foreachBatch"
    if stream.to_table:
        return "a table"
    if stream.format is None:
        return "files (parquet, the default)"
    return stream.format.literal
