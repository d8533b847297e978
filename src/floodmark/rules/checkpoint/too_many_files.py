"""Finds a checkpoint of very many small files."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.checkpoint.evidence import Evidence
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM139",
    "too-many-files",
    Severity.ADVICE,
    finds="More than 100,000 files whose average is below 64 kB.",
    matters="Each batch writes a file a partition and store. Listing them slows every start, "
    "burdens an HDFS name node and costs requests on object stores.",
    restart="The start lists and loads more than it has to.",
    instead="`floodmark compact CP` removes what nothing needs. Fewer partitions "
    "(`floodmark repartition`), RocksDB with changelogs, a longer "
    "trigger interval, or a smaller spark.sql.streaming.minBatchesToRetain.",
)
_MANY = 100_000
_SMALL = 64_000


def check(evidence: Evidence) -> Iterator[Finding]:
    files = evidence.checkpoint.files
    if len(files) > _MANY and evidence.checkpoint.bytes < len(files) * _SMALL:
        average = evidence.checkpoint.bytes // len(files)
        yield RULE.finding(".", f"{len(files):,} files, of {average:,} bytes on average.")
