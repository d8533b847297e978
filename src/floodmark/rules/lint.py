"""Runs lint's rules: first over each file, then over all files together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from floodmark.rules.code.facts import Code
from floodmark.rules.finding import Finding, in_order
from floodmark.rules.registry import rules_of


def judge(codes: Iterable[Code]) -> tuple[Finding, ...]:
    """Return what all rules find, without what a comment in the code allows."""
    known = rules_of("pipeline")
    seen: dict[str, Code] = {}
    found: list[Finding] = []
    for code in codes:
        seen[code.path] = code
        for rule in known:
            if not rule.together:
                found.extend(rule.check(code))
    for rule in known:
        if rule.together:
            found.extend(rule.check(tuple(seen.values())))
    return in_order(_placed(found, seen))


def _placed(found: list[Finding], codes: dict[str, Code]) -> Iterator[Finding]:
    told = set()
    for finding in found:
        code = codes[finding.path]
        if finding.line is not None and finding.rule in code.allowed.get(finding.line, ()):
            continue
        # A writer that is found through two variables gives the same finding twice.
        same = (finding.rule, finding.path, finding.line, finding.what)
        if same not in told:
            told.add(same)
            yield replace(finding, line=code.place(finding.line))
