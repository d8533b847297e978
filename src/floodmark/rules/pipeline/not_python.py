"""Finds a file that Python cannot parse."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM200",
    "not-python",
    Severity.ERROR,
    finds="A .py or .ipynb file whose code does not parse.",
    matters="Lint cannot judge the rest of the file.",
    restart="Python stops at the same place.",
    instead="Fix the syntax.",
)


def check(code: Code) -> Iterator[Finding]:
    if code.problem is None:
        return
    if code.newer:
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        yield RULE.finding(
            code.path,
            f"{python}, which runs lint, cannot read this file: {code.problem}.",
            line=code.problem_line,
            why="The file may be written for a newer Python. Lint says nothing else about it.",
            do="Run lint with the Python that runs the job.",
            severity=Severity.ADVICE,
        )
        return
    yield RULE.finding(
        code.path,
        f"This is not Python that can be read: {code.problem}.",
        line=code.problem_line,
    )
