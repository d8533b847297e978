"""Finds a pinned setting that changed between batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from floodmark.checkpoint.conf_keys import SHUFFLE_PARTITIONS
from floodmark.checkpoint.evidence import Evidence
from floodmark.checkpoint.layout import OFFSETS
from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.mend import Mend

RULE = Rule(
    "FM126",
    "conf-changed",
    Severity.WARNING,
    finds="A setting in the offset entries' conf whose value differs from one batch to the next.",
    matters="These settings say how the state is written. Spark pins them for the life of a "
    "checkpoint, so something else changed them: an editor, or a second query.",
    restart="Spark goes on with the newest entry's values and reads state that was written with "
    "others.",
    instead="Put the value that the state files were written with back into the entries. "
    "`repair` does so for the codec and the provider, because the files themselves show "
    "these.",
    mends=(Mend.SETTINGS,),
)


def check(evidence: Evidence) -> Iterator[Finding]:
    entries = sorted(evidence.checkpoint.offsets.items())
    for (_, before), (batch, entry) in pairwise(entries):
        if before.metadata is None or entry.metadata is None:
            continue
        old, new = before.metadata.conf, entry.metadata.conf
        if old is new:
            continue
        for key in sorted(old.keys() & new.keys() - {SHUFFLE_PARTITIONS}):
            # A change of the partition count is a repartition, which rules of its own watch.
            if old[key] != new[key]:
                yield RULE.finding(
                    f"{OFFSETS}/{batch}",
                    f"{key} is {new[key]} from batch {batch} on, and was {old[key]} before.",
                    repairable=evidence.written_with(key) is not None,
                )
