"""Finds an operator's description that does not parse."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OPERATOR_METADATA
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM125",
    "operator-metadata-unreadable",
    Severity.WARNING,
    finds="A file in state/<operator>/_metadata that is empty, cut short or garbled.",
    matters="Spark 4.0 and later compare it with the query's plan before the first batch.",
    restart="Spark only logs a warning and skips the comparison, at every start: a query whose "
    "operators changed starts on another operator's state. The statestore reader fails.",
    instead="Restore the file from a backup, or remove it while the query is unchanged: Spark "
    "writes it again.",
    mends=(Mend.DESCRIPTION,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    operators = len(evidence.checkpoint.state_operators)
    for path, fault in evidence.faults.items():
        parts = path.split("/")
        if (
            len(parts) > 3
            and parts[0] == "state"
            and parts[2] == OPERATOR_METADATA
            and not fault.newer
        ):
            # If only some operators have metadata, Spark does not start.
            alone = path.endswith(f"/{OPERATOR_METADATA}/metadata") and operators == 1
            yield RULE.finding(path, f"{path} cannot be read: {fault.reason}.", repairable=alone)
