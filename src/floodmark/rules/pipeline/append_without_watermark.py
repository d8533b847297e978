"""Finds an aggregate that Spark refuses to write in append mode."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM228",
    "append-without-watermark",
    Severity.ERROR,
    finds="A grouping with an aggregate, without a watermark, in append mode (the default).",
    matters="Append mode writes a group once, when it is complete. Without a watermark Spark "
    "cannot know when that is.",
    restart="Spark refuses to start the query (AnalysisException: append output mode is not "
    "supported for streaming aggregations without a watermark).",
    instead='.withWatermark("eventTime", "1 hour") before a groupBy with a window of eventTime; '
    'or .outputMode("update"), or "complete".',
)

_FLOW = (
    '.withWatermark("eventTime", "1 hour") before a groupBy with a window of eventTime; or make it '
    "a @dp.materialized_view. A pipeline writes flows in append mode, always."
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        if stream.started_at is None or not stream.is_refused_in_append:
            continue
        for operation in stream.aggregations[:1]:
            query = f"the query that starts at line {code.place(stream.started_at)}"
            if stream.flow is not None:
                query = f"flow {stream.flow}"
            yield RULE.finding(
                code.path,
                f"Spark refuses {query}: it writes this aggregate in append mode, and no "
                "watermark is set.",
                line=operation.line,
                do=None if stream.flow is None else _FLOW,
            )
