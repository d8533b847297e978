"""Finds a stateful operator without its metadata."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.conf_keys import STATE_ENCODING
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OPERATOR_METADATA, STATE
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM124",
    "operator-metadata-missing",
    Severity.WARNING,
    finds="State without `_metadata`, by a Spark that writes it (4.0 and later).",
    matters="It names the operator; Spark compares the names with the query's plan.",
    restart="Spark skips the comparison and writes the names of the new operators: a query whose "
    "operators changed starts on another operator's state. If other operators still have "
    "theirs, the start fails (STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA).",
    instead="Restore the file from a backup before the next start: `floodmark repair CP "
    "--from-backup REPO`. An unchanged query with this one operator does not need it.",
)
_SINCE_4_0 = STATE_ENCODING


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    # An upgraded query gets the file in its first batch on 4.0: that entry is the proof.
    first = next((entry for _, entry in sorted(checkpoint.offsets.items())), None)
    if first is None or first.metadata is None or _SINCE_4_0 not in first.metadata.conf:
        return
    for operator in sorted({file.operator for file in checkpoint.state_files}):
        folder = f"{STATE}/{operator}/{OPERATOR_METADATA}/"
        if not any(
            path.startswith(folder) and not path.rsplit("/", 1)[-1].startswith(".")
            for path in evidence.sizes
        ):
            yield RULE.finding(
                f"{folder}metadata", f"Operator {operator} has state, but no {folder}metadata."
            )
