"""Finds a query that is built and never started."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM223",
    "never-started",
    Severity.WARNING,
    finds="A writeStream without start(), toTable() or table() whose result is not used.",
    matters="A query runs only after start().",
    restart="Nothing runs, and no checkpoint is written.",
    instead="Add .start() at the end.",
)


def check(code: Code) -> Iterator[Finding]:
    for stream in code.streams:
        if stream.abandoned:
            yield RULE.finding(code.path, "This query is never started.", line=stream.line)
