"""Finds entries or state files of two formats side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import STATE
from floodmark.rules.finding import Finding, Rule, Severity

RULE = Rule(
    "FM137",
    "mixed-formats",
    Severity.WARNING,
    finds="Offset entries of two versions, commits with and without unique ids, or a store with "
    "files of both kinds of names or of both providers.",
    matters="A Spark with another configuration continued the checkpoint: the state checkpoint "
    "format, the offset log's format or the provider was changed on an existing checkpoint.",
    restart="Spark 4.0 and 4.1 open only the commit version that their configuration implies; "
    "4.2 starts and then fails in the state store (CANNOT_COMMIT).",
    instead="Start with the configuration that wrote the older entries; change provider and "
    "format with `floodmark convert`.",
)


def check(evidence: Evidence) -> Iterator[Finding]:
    checkpoint = evidence.checkpoint
    planned = {batch: entry.version for batch, entry in checkpoint.offsets.items()}
    yield from _changes("offsets", planned)
    # Version 3 adds names of sinks to both formats; only the ids differ.
    ids = {
        batch: 2 if entry.state_unique_ids else 1
        for batch, entry in checkpoint.commits.items()
        if entry.version != 2 or entry.state_unique_ids
    }
    yield from _changes("commits", ids)
    yield from _stores(evidence)


def _changes(log: str, versions: dict[int, int]) -> Iterator[Finding]:
    batches = sorted(versions)
    for before, batch in pairwise(batches):
        if versions[before] != versions[batch]:
            what = "version" if log == "offsets" else "state format"
            yield RULE.finding(
                f"{log}/{batch}",
                f"{log}/{batch} has {what} {versions[batch]}, but {log}/{before} has "
                f"{versions[before]}.",
            )


def _stores(evidence: Evidence) -> Iterator[Finding]:
    kinds: dict[tuple[int, str], set[tuple[str, bool]]] = defaultdict(set)
    for file in evidence.checkpoint.state_files:
        kinds[file.operator, file.store].add((file.provider, file.unique_id is not None))
    for (operator, store), found in sorted(kinds.items()):
        providers = {provider for provider, _ in found}
        if len(providers) > 1:
            yield RULE.finding(
                f"{STATE}/{operator}",
                f"Operator {operator}, store {store} has files of both providers, HDFS and "
                "RocksDB.",
            )
        elif len(found) > 1:
            yield RULE.finding(
                f"{STATE}/{operator}",
                f"Operator {operator}, store {store} has files with and without unique ids.",
            )
