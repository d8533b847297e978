"""Builds findings about damaged log entries: their severity depends on the batch."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence, Fault, log_entry
from floodmark.rules.finding import Finding, Rule, Severity


def damaged_entries(evidence: Evidence) -> Iterator[tuple[str, str, Fault]]:
    """Yield (path, the entry in words, the fault) for each damaged entry."""
    for path, fault in evidence.faults.items():
        entry = log_entry(path)
        if entry is not None:
            yield path, f"The entry of batch {entry[1]} in {entry[0]}/", fault


def entry_finding(
    rule: Rule, evidence: Evidence, path: str, what: str, do_if_old: str | None = None
) -> Finding:
    """Return an error if Spark opens the entry at a start, otherwise a warning."""
    can_mend = evidence.can_mend_entry(path)
    if path in evidence.deciding:
        return rule.finding(path, what, repairable=can_mend, severity=Severity.ERROR)
    return rule.finding(
        path,
        what,
        repairable=can_mend,
        severity=Severity.WARNING,
        why=f"{rule.matters} Spark does not open it at a start, because later batches exist; "
        "going back to this batch is not possible.",
        do=do_if_old,
    )
