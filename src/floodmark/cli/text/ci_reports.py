"""Prints findings in the forms of CI systems: GitHub, GitLab, SARIF, JUnit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from floodmark.cli import options
from floodmark.cli.text import echo, finding
from floodmark.rules.finding import Finding, Severity

if TYPE_CHECKING:
    from floodmark.rules.restarts.reason import Judgement

_Function = TypeVar("_Function", bound=Callable[..., Any])
FORMS = ("github", "gitlab", "sarif", "junit")
_GITLAB = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.ADVICE: "info"}


def option(*others: str) -> Callable[[_Function], _Function]:
    """Add --format with these forms and a CI's."""
    return click.option(
        "--format",
        "form",
        type=click.Choice([*others, *FORMS]),
        help="For CI: github is annotations, gitlab a code quality report, sarif code scanning, "
        "junit test results.",
    )


def refuse_two_forms(form: str | None, as_json: bool) -> None:
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} are two forms: give one of them")


def show(found: Sequence[Finding], form: str) -> None:
    """Print `found` to stdout, in one of FORMS."""
    if form == "sarif":
        options.show_json(finding.sarif(found))
    elif form == "gitlab":
        options.show_json(gitlab(found))
    elif form == "junit":
        echo(junit(found))
    elif found:
        echo(finding.github(found), commands=True)


def of_judgement(judgement: Judgement, application: str) -> list[Finding]:
    """Return a verdict's reasons as findings in the application's file."""
    from floodmark.rules.restarts.reason import Verdict

    # NAME of FILE:NAME is not part of the path.
    head, _, name = application.rpartition(":")
    path = head if head and name.isidentifier() else application
    found = []
    for one in judgement.reasons:
        severity = Severity.ERROR
        if one.verdict.is_yes:
            severity = Severity.ADVICE
        elif one.verdict is Verdict.UNKNOWN:
            severity = Severity.WARNING
        found.append(
            Finding(
                one.code,
                one.rule,
                severity,
                _relative(path),
                None,
                f"{one.verdict.value}: {one.what}",
                one.why,
                one.do,
                False,
            )
        )
    return found


def _relative(path: str) -> str:
    """Return the path in the repository, as a pull request shows only findings with such paths."""
    try:
        return Path(path).resolve().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path


def gitlab(found: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return GitLab's code quality report."""
    import hashlib

    return [
        {
            "description": f"{one.what} {one.do}",
            "check_name": f"{one.rule} ({one.code})",
            "fingerprint": hashlib.sha256(
                f"{one.code} {one.path} {one.what}".encode(errors="replace")
            ).hexdigest(),
            "severity": _GITLAB[one.severity],
            "location": {"path": one.path, "lines": {"begin": one.line or 1}},
        }
        for one in found
    ]


def junit(found: Sequence[Finding]) -> str:
    """Return JUnit's XML: a finding is a test case, which fails unless it is advice."""
    from html import escape

    from floodmark.visible import visible

    bad = [one for one in found if one.severity is not Severity.ADVICE]
    cases = []
    for one in found:
        where = one.path if one.line is None else f"{one.path}:{one.line}"
        name, path = (escape(visible(text)) for text in (f"{one.rule} ({one.code})", where))
        words = visible(f"{one.what}\n{one.why}\n{one.do}")
        told = (
            f'<failure message="{escape(visible(one.what))}">{escape(words)}</failure>'
            if one in bad
            else f"<system-out>{escape(words)}</system-out>"
        )
        cases.append(f'  <testcase classname="{path}" name="{name}">{told}</testcase>')
    if not found:
        cases.append('  <testcase classname="floodmark" name="no findings"/>')
    count = max(len(found), 1)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuite name="floodmark" tests="{count}" failures="{len(bad)}">',
            *cases,
            "</testsuite>",
        ]
    )
