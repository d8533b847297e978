"""Finds a state schema file that does not parse."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OPERATOR_METADATA, STATE_SCHEMA
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM123",
    "state-schema-unreadable",
    Severity.ERROR,
    finds="A schema file of the state that is empty, cut short or garbled.",
    matters="Without it a changed query cannot be compared with its state.",
    restart="The first batch fails while comparing schemas, unless "
    "spark.sql.streaming.stateStore.stateSchemaCheck is false.",
    instead="Restore the file from a backup. If the query is unchanged, the file can be removed: "
    "Spark writes it again.",
    mends=(Mend.DESCRIPTION,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    for path, fault in evidence.faults.items():
        if path.endswith(f"/{OPERATOR_METADATA}/schema") or f"/{STATE_SCHEMA}/" in path:
            # A schema that operator metadata names by path must exist: Spark writes no other one.
            plain = path.endswith(f"/{OPERATOR_METADATA}/schema") and not fault.newer
            yield RULE.finding(
                path,
                f"The state's schema {path} cannot be read: {fault.reason}.",
                repairable=plain,
            )
