"""Finds a DStreams application that saves its state with every batch."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM156",
    "dstreams-saved-too-often",
    Severity.WARNING,
    finds="A stream whose state is saved with every batch of less than 10 seconds.",
    matters="Spark writes the whole state each time. If that takes longer than a batch, batches "
    "queue up. Spark also creates and removes thousands of small files.",
    restart="A restart is not affected: the application is saved with every batch anyway.",
    instead="Call DStream.checkpoint with 5 to 10 batch intervals in a new context: a recovered "
    "context keeps its saved interval.",
)
_LONG_ENOUGH_MS = 10_000


def check(evidence: Evidence) -> Iterator[Finding]:
    found = evidence.checkpoint.dstreams
    if found is None or not found.batch_ms or found.batch_ms >= _LONG_ENOUGH_MS:
        return
    for at, stream in enumerate(found.streams):
        interval = stream.checkpoint_interval_ms
        if interval is not None and interval <= found.batch_ms:
            yield RULE.finding(
                found.restart_file or "",
                f"Stream {at} ({stream.kind}) saves its state every {interval / 1000:g} s, which "
                f"is every batch.",
            )
