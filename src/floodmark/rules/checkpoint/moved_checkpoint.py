"""Finds a checkpoint whose own files point to another place."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OPERATOR_METADATA, STATE, STATE_SCHEMA
from floodmark.checkpoint.places.plain_place import comparable_place
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM136",
    "moved-checkpoint",
    Severity.WARNING,
    finds="Operator metadata whose absolute schema paths lie outside this checkpoint.",
    matters="transformWithState and joins of format 3 write down where their schema files are; a "
    "copy still points to the original.",
    restart="Spark does not fail: it treats the state as if it had no schema, compares nothing, "
    "numbers schemas from 0 again (rows in Avro are then misread), and makes empty folders "
    "at the old place.",
    instead="Copy with `floodmark copy`, which rewrites the paths.",
    repairable=True,
    mends=(Mend.SCHEMA_PATHS,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    here = {comparable_place(place) for place in evidence.places}
    for operator, metadata in sorted(evidence.checkpoint.operators.items()):
        marker = f"/state/{operator}/{STATE_SCHEMA}/"
        elsewhere = sorted(
            {
                path.partition(marker)[0]
                for store in metadata.stores
                for path in store.schema_paths
                if marker in path and comparable_place(path.partition(marker)[0]) not in here
            }
        )
        if elsewhere and here:
            yield RULE.finding(
                f"{STATE}/{operator}/{OPERATOR_METADATA}",
                f"Operator {operator} has its schema files at {elsewhere[0]}, which is not this "
                "checkpoint.",
            )
