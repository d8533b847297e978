"""Prints findings as text, as SARIF and as GitHub's annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floodmark import __version__
from floodmark.cli.text import count, style, width, wrapped
from floodmark.rules.finding import Finding, Severity

_COLOUR = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.ADVICE: "cyan"}
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}
_WIDTH = 96
_SHOWN = 5


def text(findings: Sequence[Finding]) -> str:
    """Group findings by rule and reason: many partitions with one problem make one paragraph."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for item in findings:
        groups.setdefault((item.severity, item.code, item.why, item.do), []).append(item)
    return "\n\n".join(_group(group) for group in groups.values())


def _group(findings: list[Finding]) -> str:
    first = findings[0]
    lines = [
        f"{style(first.severity.value, 'bold', _COLOUR[first.severity])}  "
        f"{style(first.rule, 'bold')} ({first.code})"
    ]
    for finding in findings[:_SHOWN]:
        lines += _wrapped(f"{_where(finding)}  ", finding.what)
    if len(findings) > _SHOWN:
        lines.append(f"  and {len(findings) - _SHOWN:,} more like it; --json lists them all")
    lines += _wrapped("why  ", first.why)
    command, _, by_hand = first.do.removeprefix("`").partition("`. ")
    if first.do.startswith("`floodmark ") and by_hand:
        # On a line of its own, however long, so that it can be pasted.
        lines += [f"  do   {command}", *_wrapped("     ", by_hand)]
    else:
        lines += _wrapped("do   ", first.do)
    return "\n".join(lines)


def _where(finding: Finding) -> str:
    return finding.path if finding.line is None else f"{finding.path}:{finding.line}"


def _wrapped(label: str, words: str) -> list[str]:
    # A long path gets a line of its own; the words then begin below it.
    if len(label) > width(_WIDTH) // 3:
        return [f"  {label.rstrip()}", *_wrapped("     ", words)]
    return wrapped(f"  {label}", words, _WIDTH)


def summary(findings: Sequence[Finding]) -> str:
    counts = [
        (severity, sum(item.severity is severity for item in findings)) for severity in Severity
    ]
    nouns = {Severity.ERROR: "error", Severity.WARNING: "warning"}
    return ", ".join(
        f"{number} piece{'s' * (number > 1)} of advice"
        if severity is Severity.ADVICE
        else count(number, nouns[severity])
        for severity, number in counts
        if number
    )


def github(findings: Sequence[Finding]) -> str:
    """Return workflow commands, which GitHub shows beside the lines of a pull request."""
    names = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}
    return "\n".join(
        f"::{names[item.severity]} file={_property(item.path)}"
        + (f",line={item.line}" if item.line else "")
        + f",title={_property(f'{item.rule} ({item.code})')}::"
        + _escaped(f"{item.what} {item.why} {item.do}")
        for item in findings
    )


def _escaped(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    return _escaped(words).replace(":", "%3A").replace(",", "%2C")


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return SARIF 2.1.0, with the rules that have findings."""
    from floodmark.rules.registry import find_rule

    codes = sorted({item.code for item in findings})
    rules = [find_rule(code).rule for code in codes]
    driver = {
        "name": "floodmark",
        "version": __version__,
        "rules": [
            {
                "id": rule.code,
                "name": rule.name,
                "shortDescription": {"text": rule.finds},
                "fullDescription": {"text": f"{rule.matters} {rule.restart}"},
                "help": {"text": rule.instead},
                "defaultConfiguration": {"level": _LEVEL[rule.severity]},
            }
            for rule in rules
        ],
    }
    results = [
        {
            "ruleId": item.code,
            "ruleIndex": codes.index(item.code),
            "level": _LEVEL[item.severity],
            "message": {"text": f"{item.what} {item.do}"},
            "locations": [_location(item)],
        }
        for item in findings
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _location(finding: Finding) -> dict[str, Any]:
    from urllib.parse import quote

    place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.path.replace("\\", "/"))}}
    if finding.line:
        place["region"] = {"startLine": finding.line}
    return {"physicalLocation": place}
