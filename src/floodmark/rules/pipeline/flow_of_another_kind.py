"""Finds a flow whose function returns the wrong kind of DataFrame for its table."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM229",
    "flow-of-another-kind",
    Severity.ERROR,
    finds="A declarative pipeline's @dp.table or @dp.append_flow that returns a batch, or its "
    "@dp.materialized_view that returns a stream. In SQL: a CREATE STREAMING TABLE or CREATE FLOW "
    "that reads no STREAM, or a CREATE MATERIALIZED VIEW that reads one.",
    matters="Streams fill a streaming table, with a checkpoint. A materialized view is computed "
    "again in each run, and has no checkpoint.",
    restart="The pipeline does not run: INVALID_FLOW_QUERY_TYPE.",
    instead="Read with spark.readStream in @dp.table and @dp.append_flow, and with spark.read in "
    "@dp.materialized_view. In SQL, SELECT … FROM STREAM table reads a stream.",
)
_TAKES = {"table": "stream", "append_flow": "stream", "materialized_view": "batch"}


def check(code: Code) -> Iterator[Finding]:
    for flow in code.flows:
        takes = _TAKES.get(flow.kind)
        if takes is None or code.on_databricks or flow.legacy:
            continue  # there, @table may turn a batch into a view
        other = "batch" if takes == "stream" else "stream"
        if flow.returns == {other}:
            gives = "reads" if flow.statement else "returns"
            by = flow.statement or f"@{flow.kind}"
            yield RULE.finding(
                code.path,
                f"{flow.function} {gives} a {other}, and {by} takes a {takes}.",
                line=flow.line,
            )
