"""Describes rules and their findings.

A finding has exactly the fields that `doctor --json` and `lint --json` promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from floodmark.rules.mend import Mend
from floodmark.screen import ShownInALine
from floodmark.secret_text import redacted


class Severity(str, Enum):
    """How bad a finding is."""

    ERROR = "error"
    """Spark does not start, or records are lost or repeated."""
    WARNING = "warning"
    """It works until something else happens."""
    ADVICE = "advice"
    """It works, but could cost less or be safer."""


@dataclass(frozen=True, repr=False)
class Finding(ShownInALine):
    """What a rule has found, and what to do about it."""

    code: str
    """FM1xx checkpoint, FM2xx code, FM3xx compatibility, FM4xx a start."""
    rule: str
    """The rule's name: `--allow` and `floodmark explain` take it."""
    severity: Severity
    """`error` and `warning` end with exit status 1."""
    path: str
    """The file, in the checkpoint or of the code."""
    line: int | None
    """The line of code."""
    what: str
    """What was found."""
    why: str
    """Why it matters, and what Spark does."""
    do: str
    """What to do next; a command can be pasted as it is."""
    repairable: bool
    """Whether `floodmark repair` can repair it."""


@dataclass(frozen=True, repr=False)
class Rule(ShownInALine):
    """A rule with its name and explanation. It is named after the problem: 'allow <rule>' reads
    well.
    """

    code: str
    """FM and three digits."""
    name: str
    """The bad thing, in a few words."""
    severity: Severity
    """The severity of its worst finding."""
    finds: str
    """What it finds."""
    matters: str
    """Why that matters."""
    restart: str
    """What Spark does when the query is started like this."""
    instead: str
    """What to do instead."""
    repairable: bool = False
    """Whether `repair` can mend it."""
    mends: tuple[Mend, ...] = ()
    """What `repair` can do about its findings."""
    passing: bool = False
    """Whether waiting may help: for example a broker that does not answer now."""

    def finding(
        self,
        path: str,
        what: str,
        *,
        line: int | None = None,
        why: str | None = None,
        do: str | None = None,
        severity: Severity | None = None,
        repairable: bool | None = None,
    ) -> Finding:
        """A finding of this rule."""
        return Finding(
            self.code,
            self.name,
            severity or self.severity,
            path,
            line,
            # Code and checkpoints name addresses, and a report of findings goes elsewhere.
            redacted(what),
            redacted(why) if why is not None else f"{self.matters} {self.restart}",
            redacted(do) if do is not None else self.instead,
            self.repairable if repairable is None else repairable,
        )


_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.ADVICE: 2}


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings, the worst ones first, then by rule and place."""
    return tuple(
        sorted(
            findings,
            key=lambda item: (
                _RANK[item.severity],
                item.code,
                _natural(item.path),
                item.line or 0,
            ),
        )
    )


def _natural(path: str) -> list[tuple[int, int, str]]:
    """Return a sort key that puts offsets/9 before offsets/10."""
    parts = path.replace(".", "/").split("/")
    return [
        (0, int(part), "")
        if part.isascii() and part.isdecimal() and len(part) < 19
        else (1, 0, part)
        for part in parts
    ]


def is_bad(findings: Iterable[Finding]) -> bool:
    """Whether the answer is no; advice alone is no reason to stop a job."""
    return any(item.severity is not Severity.ADVICE for item in findings)
