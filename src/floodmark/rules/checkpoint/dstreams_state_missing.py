"""Finds missing state that a DStreams application names."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.dstreams.folder import rdd_folder
from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM154",
    "dstreams-state-missing",
    Severity.ERROR,
    finds="A saved RDD that the newest checkpoint file names and that is not in the folder.",
    matters="The RDD is the state of updateStateByKey, mapWithState or a window after one batch. "
    "Spark itself removes it if a context is killed again while it makes up for missed "
    "batches.",
    restart="Spark fails ('Checkpoint directory does not exist' or 'Invalid checkpoint "
    "directory'), or computes the state again from input that may be gone.",
    instead="Restore the folder from a backup. Otherwise begin again with the newest state that "
    "exists: floodmark run APP.py --fresh-with-state.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.checkpoint.dstreams
    if found is None or not evidence.checkpoint.complete:
        return
    for at, location in found.gone_rdds:
        yield RULE.finding(
            rdd_folder(location),
            f"{found.restart_file} names {location} as the state of stream {at}, but the folder "
            "has no such RDD.",
        )
