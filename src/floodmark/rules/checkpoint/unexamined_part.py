"""Finds parts that nobody looked at: links, pipes, closed folders, unreadable own files."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import NOTES
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM164",
    "unexamined-part",
    Severity.WARNING,
    finds="A link, a named pipe, or something that this user may not read, in the place of files. "
    "Also floodmark's own journal or lease where it cannot be read.",
    matters="What lies there was not examined, and changes of this checkpoint are refused. "
    "floodmark follows no links inside a checkpoint, because they may lead anywhere.",
    restart="Spark follows links, and may run as another user, so it may start and work. Whether "
    "it does is not known.",
    instead="Put the file or folder itself in the place of the link, or make it readable. "
    "Then run `floodmark doctor CP` again.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint, listed = evidence.checkpoint, evidence.mtimes
    notes = (
        item
        for item in checkpoint.unreadable
        # Spark never looks here, but every change does.
        if item.path.partition("/")[0] == NOTES and item.path not in listed
    )
    for item in (*checkpoint.unexamined, *notes):
        yield RULE.finding(item.path, f"{item.path} was not examined: {item.reason.rstrip('.')}.")
    for path, reason in evidence.own_unreadable.items():
        yield RULE.finding(
            path,
            f"{path} cannot be read, so every change is refused: {reason.rstrip('.')}.",
            why="Spark does not read this file: only floodmark does, and it says there what it "
            "changes, or which run holds the checkpoint.",
            do="Restore the file. If no run holds the checkpoint and no change stopped midway, "
            "remove it. Then run `floodmark doctor CP` again.",
        )
