"""A rule's description and its findings.

A finding has the fields that `doctor --json` and `lint --json` promise, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from floodmark.rules.mend import Mend
from floodmark.screen import fields_html, line_text
from floodmark.secret_text import redacted


class Severity(str, Enum):
    ERROR = "error"
    """Spark does not start, or records are lost or repeated."""
    WARNING = "warning"
    """It goes well until something else happens."""
    ADVICE = "advice"
    """It works, and could cost less or be safer."""


@dataclass(frozen=True)
class Finding:
    code: str
    """FM1xx checkpoint, FM2xx code, FM3xx compatibility, FM4xx a start."""
    rule: str
    """The rule's name: `--allow` and `floodmark explain` take it."""
    severity: Severity
    """error and warning end with exit status 1."""
    path: str
    """The file, in the checkpoint or of the code."""
    line: int | None
    """The line of code."""
    what: str
    """What was found."""
    why: str
    """Why it matters, and what Spark does."""
    do: str
    """What to do next; a command works as it stands."""
    repairable: bool
    """`floodmark repair` can mend it."""

    __repr__ = line_text
    _repr_html_ = fields_html


@dataclass(frozen=True)
class Rule:
    """A rule's name and story. It is named after the bad thing: 'allow <rule>' reads well."""

    code: str
    name: str
    severity: Severity
    """Of its worst finding."""
    finds: str
    matters: str
    restart: str
    """What Spark does when the query is started like this."""
    instead: str
    repairable: bool = False
    mends: tuple[Mend, ...] = ()
    """What `repair` can do about a finding."""
    passing: bool = False
    """Time alone may mend it: a broker that does not answer now."""

    __repr__ = line_text
    _repr_html_ = fields_html

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
    """The worst first; then by rule and place."""
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
    """offsets/9 before offsets/10."""
    parts = path.replace(".", "/").split("/")
    return [
        (0, int(part), "")
        if part.isascii() and part.isdecimal() and len(part) < 19
        else (1, 0, part)
        for part in parts
    ]


def is_bad(findings: Iterable[Finding]) -> bool:
    """True where the answer is no: advice alone is no reason to stop a job."""
    return any(item.severity is not Severity.ADVICE for item in findings)
