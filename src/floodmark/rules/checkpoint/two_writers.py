"""Finds entries that a single query cannot have written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from floodmark.checkpoint.evidence import Evidence, NotedStart
from floodmark.checkpoint.layout import COMMITS, OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM133",
    "two-writers",
    Severity.WARNING,
    finds="A batch that was planned no later than the batch before it, or with a lower watermark; "
    "noted starts of two queries, or of two runs, that alternate.",
    matters="One query's batches follow each other in time. Two queries that share a checkpoint, "
    "or an entry taken from elsewhere, break the order; so does a driver's clock that went back.",
    restart="Nothing guards a checkpoint against a second application: both go on until one "
    "fails with CONCURRENT_STREAM_LOG_UPDATE; until then both read the records.",
    instead="Find the other query (`floodmark lint` finds shared checkpoints in code) and give "
    "it a checkpoint of its own.",
)
_WATERMARK = '"nextBatchWatermarkMs"'


def check(evidence: Evidence) -> Iterator[Finding]:
    yield from _interleaved(evidence.starts)
    commits = evidence.checkpoint.commits
    entries = sorted(
        (batch, entry)
        for batch, entry in evidence.checkpoint.offsets.items()
        if f"{OFFSETS}/{batch}" not in evidence.faults
    )
    for (before, old), (batch, new) in pairwise(entries):
        # The same entry twice is a stand-in, which a change writes for a missing one.
        if old.metadata is None or new.metadata is None or old == new:
            continue
        was, now = old.metadata, new.metadata
        if 0 < now.batch_timestamp_ms <= was.batch_timestamp_ms:
            late = was.batch_timestamp_ms - now.batch_timestamp_ms
            when = f"{late:,} ms before" if late else "at the same moment as"
            yield RULE.finding(
                f"{OFFSETS}/{batch}", f"Batch {batch} was planned {when} batch {before}."
            )
        elif now.batch_watermark_ms < was.batch_watermark_ms:
            yield RULE.finding(
                f"{OFFSETS}/{batch}",
                f"Batch {batch} has an earlier watermark ({now.batch_watermark_ms}) than batch "
                f"{before} ({was.batch_watermark_ms}).",
            )
        elif batch == before + 1 and before in commits and _WATERMARK in commits[before].text:
            handed_on = commits[before].next_batch_watermark_ms
            if now.batch_watermark_ms != handed_on:
                yield RULE.finding(
                    f"{COMMITS}/{before}",
                    f"commits/{before} hands on watermark {handed_on}, but batch {batch} began "
                    f"with {now.batch_watermark_ms}.",
                )


def _interleaved(starts: Sequence[NotedStart]) -> Iterator[Finding]:
    """Find an id that is there again after another one: both ran at the same time."""
    for what, ids in (
        ("query", [start.query_id for start in starts]),
        ("run", [start.run_id for start in starts]),
    ):
        for at in range(2, len(ids)):
            if ids[at] != ids[at - 1] and ids[at] in ids[: at - 1]:
                yield RULE.finding(
                    starts[at].path,
                    f"{what.capitalize()} {ids[at]} has started here again, after {what} "
                    f"{ids[at - 1]} did.",
                )
                break
